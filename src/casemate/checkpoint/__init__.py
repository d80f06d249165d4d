"""Facts of a model file, read from its header."""
