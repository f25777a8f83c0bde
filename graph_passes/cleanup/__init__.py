"""Passes that bring a graph into one form, and tidy it afterwards."""
