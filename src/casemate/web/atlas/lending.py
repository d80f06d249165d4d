"""The built graph, lent to whoever reads it, and opened anew when its file was replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from casemate.errors import KnowledgeError
from casemate.knowledge.graph import Graph
from casemate.knowledge.search import Search


@dataclass(frozen=True, slots=True)
class Reading:
    """An open graph and the search over it, for the length of a loan."""

    graph: Graph
    search: Search


Lender = Callable[[], AbstractContextManager[Reading]]
"""What the pages read from: a block with the newest graph, or a KnowledgeError that says why there is none."""


def no_graph() -> AbstractContextManager[Reading]:
    """No graph is served.

    Raises:
        KnowledgeError: always.
    """
    raise KnowledgeError("there is no graph", remedy="casemate kb build")


class Lending:
    """The graph at a path. Once a build has swapped the file, loans are of the new one; the old closes after its last.

    Safe for several threads. Nothing is opened before the first loan.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._copy: _Copy | None = None

    @contextmanager
    def lent(self) -> Iterator[Reading]:
        """The newest graph, open until the end of the block.

        Raises:
            KnowledgeError: it is not there, is no graph, or is of another edition of Casemate.
        """
        with self._lock:
            copy = self._newest()
            copy.loans += 1
        try:
            yield copy.reading
        finally:
            with self._lock:
                copy.loans -= 1
                self._tidy(copy)

    def close(self) -> None:
        """Let go of the file as soon as nobody reads it; a later loan opens it again."""
        with self._lock:
            self._retire()

    def _newest(self) -> _Copy:
        stamp = _stamp(self._path)
        if self._copy is None or self._copy.stamp != stamp:
            self._retire()
            self._copy = _Copy(_opened(self._path), stamp)
        return self._copy

    def _retire(self) -> None:
        copy, self._copy = self._copy, None
        if copy is not None:
            self._tidy(copy)

    def _tidy(self, copy: _Copy) -> None:
        if copy is not self._copy and not copy.loans:
            copy.reading.graph.close()


@dataclass(slots=True)
class _Copy:
    reading: Reading
    stamp: tuple[int, ...]
    loans: int = 0


def _opened(path: Path) -> Reading:
    graph = Graph.open(path)
    try:
        return Reading(graph, Search(graph))
    except KnowledgeError:
        graph.close()
        raise


def _stamp(path: Path) -> tuple[int, ...]:
    """What changes when a file is replaced; the same for every file that is not there."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size
