"""Our own tables, as files that a person can review; facts of others stand with their source."""
