"""Pure arithmetic: Machine, Checkpoint and Intent become a Plan or a Refusal."""
