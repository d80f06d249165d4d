"""An engine's log, read: lines, tracebacks, signatures, facts, profiles. The world's files are opened by the roof."""
