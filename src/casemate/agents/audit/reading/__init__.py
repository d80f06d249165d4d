"""Material in: which files there are, how they are decoded and read, and why one was not."""
