"""The summaries of all files as one project, and the search from sinks back to sources."""
