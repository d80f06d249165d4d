"""The graph: what may be cited, where it comes from, and how to find it."""
