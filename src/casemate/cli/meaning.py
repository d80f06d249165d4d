"""Search by meaning beside search by words: off until the dense index is whole, which a platform sees to by and by."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from casemate.knowledge import embed
from casemate.knowledge.embed import Dense, Embedder
from casemate.knowledge.graph import Graph

_LOWEST = 19


class Meaning:
    """Nearest nodes in meaning, as `Search` wants them; none while the index of the graph is not whole."""

    def __init__(self, graph: Graph, embedder: Embedder) -> None:
        self._graph = graph
        self._embedder = embedder
        self._stopping = threading.Event()
        self._dense: Dense | None = embed.open_dense(graph, embedder)

    @property
    def whole(self) -> bool:
        """Whether it answers."""
        return self._dense is not None

    def nearest(self, text: str, limit: int) -> tuple[tuple[str, float], ...]:
        """Ids of the nodes nearest to a text, nearest first, each with how far it stands out."""
        dense = self._dense
        return dense.nearest(text, limit) if dense else ()

    @contextmanager
    def growing(self) -> Iterator[None]:
        """Embeds what is missing, in a thread of the lowest priority, for the length of the block.

        What was done when the block ends is kept; the next time goes on from there.
        """
        if self.whole:
            yield
            return
        self._stopping.clear()
        worker = threading.Thread(target=self._grow, name="embedding")
        worker.start()
        try:
            yield
        finally:
            self._stopping.set()
            worker.join()

    def _grow(self) -> None:
        # on Linux the priority is that of the thread, and of those that it starts
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST)
        embed.build_index(self._graph, self._embedder, going=lambda: not self._stopping.is_set())
        if not self._stopping.is_set():
            self._dense = embed.open_dense(self._graph, self._embedder)
