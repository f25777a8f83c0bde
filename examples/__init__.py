"""Examples that run in about a minute each; `python -m examples.demo` is the one to start with."""
