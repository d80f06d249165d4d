"""Search over the graph: exact ids and names first, then words and meaning.

Fusion adds bm25 and how far a node's closeness stands out, each with its weight. By ranks alone (reciprocal rank
fusion) a clear match in words counts no more than a faint one; measured in decision 0007.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Protocol

import numpy as np

from casemate.chat.wire import Passage
from casemate.knowledge import passages, words
from casemate.knowledge.curated import tables
from casemate.knowledge.gate import mentions
from casemate.knowledge.graph import Graph
from casemate.knowledge.node import State
from casemate.knowledge.spelling import Speller

_DEPTH = 60
"""How many places of each ranking take part in the fusion."""
_RENOWN = 0.05
"""Of two nodes that fit about as well, the one that is met more often is meant: 3 % more hits (measured)."""
_STRENGTH = 0.05
"""Weight of a point of bm25."""
_STANDING = 0.02
"""Weight of a standard deviation of closeness. Measured: from twice as much on, more questions are lost than found."""
_KEPT = 512
"""How many passages stay in memory; together less than a megabyte."""
_MAX_CHARS = 2000
"""What is read of a question: pasted code beyond it would only dilute the words."""


class Neighbours(Protocol):
    """Nearest nodes in meaning. `embed.Dense` is the real one."""

    def nearest(self, text: str, limit: int) -> Sequence[tuple[str, float]]:
        """Ids of the nodes nearest to a text, nearest first, each with how far it stands out."""
        ...


class Search:
    """Answers from one graph; safe to use from several threads.

    Args:
        graph: the open graph; the caller closes it.
        embedder: nearest nodes in meaning; None where the dense index is not built or not wanted.
    """

    def __init__(self, graph: Graph, embedder: Neighbours | None = None) -> None:
        self._graph = graph
        self._embedder = embedder
        self._longest_term = max(map(len, graph.terms), default=0)
        self._cached = lru_cache(_KEPT)(self._read)
        self._longest_word = max(map(len, tables.glossary()), default=0)
        self._speller = Speller(graph.vocabulary)

    def search(self, text: str, limit: int = 5) -> list[Passage]:
        """The passages that bear on a text in either language, best first.

        Score 1.0 means that the text names the node by id or alias; below 1.0 it is the fused rank.
        """
        text = text[:_MAX_CHARS]
        scores = dict.fromkeys((*self._by_id(text), *self._by_name(text)), 1.0)
        if len(scores) < limit:
            for id_, score in self._fused(text):
                scores.setdefault(id_, score)
        chinese = words.has_han(text)
        found = (self._passage(id_, scores[id_], chinese=chinese) for id_ in list(scores)[:limit])
        return [passage for passage in found if passage]

    def _by_id(self, text: str) -> Iterable[str]:
        for mention in mentions.find(text):
            node = self._graph.node(mention.id)
            if node is None:
                continue
            yield node.id
            if node.state is not State.LIVE:
                yield from (edge.end for edge in self._graph.around(node.id, "replaced-by") if edge.start == node.id)

    def _by_name(self, text: str) -> list[str]:
        """Named nodes, the most telling (longest) name first."""
        found = list(words.longest(words.fold(text), self._graph.terms, limit=self._longest_term))
        found.sort(key=lambda match: -_weight(match.term))
        return [self._graph.terms[match.term][0] for match in found]

    def _fused(self, text: str) -> list[tuple[str, float]]:
        scores = {id_: strength * _STRENGTH for id_, strength in self._by_words(text)}
        if self._embedder is not None:
            for id_, standing in self._embedder.nearest(text, _DEPTH):
                scores[id_] = scores.get(id_, 0.0) + standing * _STANDING
        ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        return [(id_, score / (1 + score)) for id_, score in ranked]

    def _by_words(self, text: str) -> list[tuple[str, float]]:
        """The nodes that hold the words of a text, strongest first."""
        ids, renown = self._graph.documents
        strengths = np.zeros(len(ids), dtype=np.float32)
        for places, added in self._graph.postings(self._terms(text)):
            strengths[places] += added
        strengths *= 1 + _RENOWN * renown
        best = np.argsort(-strengths, kind="stable")[:_DEPTH]
        return [(ids[place], float(strengths[place])) for place in best if strengths[place] > 0]

    def _terms(self, text: str) -> set[str]:
        """A text's own terms, those of what its mistyped words were meant to be, and of the English of its Chinese."""
        meant = chain.from_iterable(map(self._speller.meant, words.latin(text)))
        glossary = tables.glossary()
        english = (
            glossary[match.term] for match in words.longest(words.fold(text), glossary, limit=self._longest_word)
        )
        return {*words.terms(text), *words.terms(" ".join((*meant, *english)))}

    def _passage(self, id_: str, score: float, *, chinese: bool) -> Passage | None:
        found = self._cached(id_, chinese=chinese)
        return replace(found, score=score) if found else None

    def _read(self, id_: str, *, chinese: bool) -> Passage | None:
        node = self._graph.node(id_)
        return passages.passage(node, self._graph, score=0.0, chinese=chinese) if node else None


def _weight(term: str) -> int:
    """A Chinese character says as much as two letters."""
    return len(term) + sum(1 for character in term if not character.isascii())
