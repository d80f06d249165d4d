"""What a run of the audit leaves for the next one, so that only what changed is analysed again."""
