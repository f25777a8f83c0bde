"""Passes, the manager that runs them, and the instruments that watch."""
