"""The citation gate's parts: what is cited, what is said of it, and whether the graph agrees."""
