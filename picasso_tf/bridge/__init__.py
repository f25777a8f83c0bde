"""Python's side of the plugin: load the library, hand graphs to a Python function, take them back."""
