"""Who may use the engine now, who waits, and who is asked to come back."""

from __future__ import annotations

import math
from asyncio import Future, get_running_loop
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from casemate.errors import ModelError

_FIRST_GUESS_S = 5.0
_SMOOTHING = 0.2
_LONGEST_WAIT_S = 120


class Admission:
    """A bounded number of requests at once and a bounded queue, first come first served.

    Args:
        slots: requests that the engine works on at once.
        queue: requests that may wait; further ones are refused.
    """

    def __init__(self, slots: int, queue: int) -> None:
        self._slots = slots
        self._queue = queue
        self._waiting: deque[Future[None]] = deque()
        self._stay_s = _FIRST_GUESS_S
        self.running = 0

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._waiting)

    @property
    def retry_after_s(self) -> int:
        """When a place should be free, in whole seconds: the queue before a newcomer, at the measured pace."""
        return min(_LONGEST_WAIT_S, max(1, math.ceil(self._stay_s * (self.waiting + 1) / self._slots)))

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[None, None]:
        """Wait for a slot and hold it for the block. Whoever is cancelled while waiting leaves the queue.

        Raises:
            ModelError: status 503; the queue is full.
        """
        await self._enter()
        loop = get_running_loop()
        start = loop.time()
        try:
            yield
        finally:
            self._stay_s += _SMOOTHING * (loop.time() - start - self._stay_s)
            self._leave()

    async def _enter(self) -> None:
        if self.running < self._slots:
            self.running += 1
            return
        if self.waiting >= self._queue:
            remedy = f"try again in {self.retry_after_s} s"
            raise ModelError("every slot is taken and the queue is full", status=503, remedy=remedy)
        turn: Future[None] = get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self._leave()  # the slot came in the same moment as the cancellation: hand it on
            else:
                self._waiting.remove(turn)
            raise

    def _leave(self) -> None:
        """Hand the slot to the first in the queue; free it if nobody waits."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.running -= 1
