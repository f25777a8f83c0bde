"""Facts about a graph that passes ask for; nothing here changes anything."""
