"""Secrets do not show: the one way in which a text of the audited code is masked. Pure."""

from __future__ import annotations

from collections.abc import Iterable


def masked(text: str, secrets: Iterable[str]) -> str:
    """The text with each secret cut to its first characters (a quarter of it, at most four)."""
    for secret in sorted(secrets, key=len, reverse=True):
        for line in secret.splitlines() or [secret]:
            if len(line) >= 4 and line in text:
                text = text.replace(line, line[: min(4, len(line) // 4)] + "…(masked)")
    return text
