"""The graph's pages: search, a node with its neighbourhood, the ways between two; each with a JSON twin."""
