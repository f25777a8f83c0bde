"""How rewrites are stated: patterns, sources of ids, and groups of nodes to pack."""
