"""Pinned bytes."""
