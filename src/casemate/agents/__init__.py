"""Work on material: audit code, answer questions. Deterministic first; the model explains and never decides."""
