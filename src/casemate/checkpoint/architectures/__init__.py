"""How model families are built: one module a family, each from a config's keys to an `Anatomy`."""
