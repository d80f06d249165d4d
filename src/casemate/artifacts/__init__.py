"""Pinned bytes: official address, model hub, or a package wheel as a carrier; verified, never executed."""
