"""The engine's flags by version: recorded tables, an installed engine's source, and the text of its `--help`."""
