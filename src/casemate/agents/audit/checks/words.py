"""The words of an identifier. Pure."""

from __future__ import annotations

import functools
import re

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@functools.lru_cache(maxsize=4096)
def words(name: str) -> frozenset[str]:
    """The lower-case words of an identifier or of any text."""
    return frozenset(word.lower() for word in _WORDS.findall(name))
