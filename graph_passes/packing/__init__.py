"""Passes that turn many small ops into a few packed ones."""
