"""Mistyped words of a question → the words of the graph that they were meant to be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from rapidfuzz import process
from rapidfuzz.distance import OSA

_SHORTEST = 4
"""Shorter words have too many neighbours."""
_LONG = 6
"""From this length on two slips are forgiven, below it one."""
_RARE = 1
"""A word of so few nodes may itself be a slip; it is looked for as it stands all the same."""
_MOST = 2


class Speller:
    """Knows the words of a graph, and how many nodes use each."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = counts
        self._by_initial: dict[str, list[str]] = defaultdict(list)
        for word, count in counts.items():
            if count > _RARE and len(word) >= _SHORTEST and word.isalpha():
                self._by_initial[word[0]].append(word)

    def meant(self, word: str) -> tuple[str, ...]:
        """The nearest known words with the same first letter, commonest first; none if the word is known or like none.

        Distance counts insertions, deletions, changes and swaps of neighbours (optimal string alignment).
        """
        if len(word) < _SHORTEST or not word.isalpha() or self._counts.get(word, 0) > _RARE:
            return ()
        slips = 2 if len(word) >= _LONG else 1
        choices = [known for known in self._by_initial[word[0]] if abs(len(known) - len(word)) <= slips]
        found = process.extract(word, choices, scorer=OSA.distance, score_cutoff=slips, limit=8)
        nearest = [known for known, distance, _ in found if distance == found[0][1]]
        nearest.sort(key=lambda known: (-self._counts[known], known))
        return tuple(nearest[:_MOST])
