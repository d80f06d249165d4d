"""The code audit: rules find, gates check, the model explains."""
