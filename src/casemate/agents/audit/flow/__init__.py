"""The walk over one file: statements, expressions, calls, guards."""
