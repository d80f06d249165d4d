"""Facts of a machine and what they mean."""
