"""Places that are weak by themselves or by what they compare."""
