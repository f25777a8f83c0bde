"""Passes about what XLA compiles: they take its calls apart, and hand back to it what it does best."""
