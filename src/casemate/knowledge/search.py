"""Search over the graph: exact ids and names first, then words and meaning, fused by rank.

Fusion is reciprocal rank fusion (Cormack, Clarke, Büttcher 2009) with k = 60.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

from casemate.chat.wire import Passage
from casemate.knowledge import mentions, passages, words
from casemate.knowledge.curated import tables
from casemate.knowledge.graph import Graph
from casemate.knowledge.node import State

_K = 60
_DEPTH = 40
"""How many places of each ranking take part in the fusion."""
_MEANING = 0.15
"""Weight of meaning against words. Measured: more of it loses named things faster than it finds paraphrases."""
_KEPT = 512
"""How many passages stay in memory; together less than a megabyte."""
_MAX_CHARS = 2000
"""What is read of a question: pasted code beyond it would only dilute the words."""


class Neighbours(Protocol):
    """Nearest nodes in meaning. `embed.Dense` is the real one."""

    def nearest(self, text: str, limit: int) -> Sequence[str]:
        """Ids of the nodes nearest to a text, nearest first."""
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

    def search(self, text: str, limit: int = 5) -> list[Passage]:
        """The passages that bear on a text in either language, best first.

        Score 1.0 means that the text names the node by id or alias; below 1.0 it is the fused rank.
        """
        text = text[:_MAX_CHARS]
        scores = dict.fromkeys((*self._by_id(text), *self._by_name(text)), 1.0)
        if len(scores) < limit:
            for id_, score in self._fused(text):
                scores.setdefault(id_, score)
        return [found for id_ in list(scores)[:limit] if (found := self._passage(id_, scores[id_]))]

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
        rankings: list[tuple[float, Sequence[str]]] = [(1.0, self._by_words(text))]
        if self._embedder is not None:
            rankings.append((_MEANING, self._embedder.nearest(text, _DEPTH)))
        scores: dict[str, float] = {}
        for weight, ranking in rankings:
            for rank, id_ in enumerate(ranking, 1):
                scores[id_] = scores.get(id_, 0.0) + weight / (_K + rank)
        best = sum(weight for weight, _ in rankings) / (_K + 1)
        ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        return [(id_, 0.99 * score / best) for id_, score in ranked]

    def _by_words(self, text: str) -> tuple[str, ...]:
        folded = words.fold(text)
        english = words.latin(text)
        for match in words.longest(folded, tables.glossary(), limit=self._longest_word):
            english += words.latin(tables.glossary()[match.term])
        terms = [f'"{word}"' for word in dict.fromkeys(english)]
        terms += [f'pairs : "{pair}"' for pair in dict.fromkeys(words.pairs(text))]
        return self._graph.passages(" OR ".join(terms), _DEPTH) if terms else ()

    def _passage(self, id_: str, score: float) -> Passage | None:
        found = self._cached(id_)
        return replace(found, score=score) if found else None

    def _read(self, id_: str) -> Passage | None:
        node = self._graph.node(id_)
        return passages.passage(node, self._graph, score=0.0) if node else None


def _weight(term: str) -> int:
    """A Chinese character says as much as two letters."""
    return len(term) + sum(1 for character in term if not character.isascii())
