"""BM25 worked out beforehand: for each term the documents that hold it, and how strongly. Pure.

Okapi BM25 (Robertson, Zaragoza 2009, "The Probabilistic Relevance Framework") over weighted fields: a word in a name
counts as many times as the name's weight. With some thousand documents a question is then a few additions of arrays;
SQLite's full-text index, which works the same numbers out at each question, took four times as long (decision 0007).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import log

import numpy as np
from numpy.typing import NDArray

_SATURATION = 1.2
_LENGTH = 0.75

Places = NDArray[np.uint16]
Strengths = NDArray[np.float32]


class Postings:
    """Takes documents one after another, then gives every term's places and strengths."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[int, float]] = defaultdict(dict)
        self._lengths: list[int] = []

    def add(self, fields: Iterable[tuple[float, Sequence[str]]]) -> None:
        """Take the next document: its fields as weight and terms."""
        place, length = len(self._lengths), 0
        for weight, terms in fields:
            length += len(terms)
            for term in terms:
                counts = self._counts[term]
                counts[place] = counts.get(place, 0.0) + weight
        self._lengths.append(length)

    def packed(self) -> Iterator[tuple[str, bytes, bytes]]:
        """Each term with its places (uint16) and strengths (float32), in one order."""
        lengths = np.array(self._lengths, dtype=np.float64)
        damping = _SATURATION * (1 - _LENGTH + _LENGTH * lengths / (lengths.mean() if len(lengths) else 1.0))
        for term, counts in sorted(self._counts.items()):
            places = np.fromiter(counts, dtype=np.uint16)
            often = np.fromiter(counts.values(), dtype=np.float64)
            rarity = log(1 + (len(lengths) - len(counts) + 0.5) / (len(counts) + 0.5))
            strengths = rarity * often * (_SATURATION + 1) / (often + damping[places])
            yield term, places.tobytes(), strengths.astype(np.float32).tobytes()


def unpacked(places: bytes, strengths: bytes) -> tuple[Places, Strengths]:
    """The two arrays of a term."""
    return np.frombuffer(places, dtype=np.uint16), np.frombuffer(strengths, dtype=np.float32)
