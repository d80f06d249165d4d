"""Engines behind one port, and the supervisor that owns the end of what it starts."""
