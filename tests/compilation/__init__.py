"""Tests of the passes about what XLA compiles."""
