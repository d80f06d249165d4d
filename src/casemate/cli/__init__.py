"""The command line: one file a verb; composes, prints, sets exit codes."""
