"""A long-lived child under its keeper, seen from our event loop."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Self

from casemate import process
from casemate.engine.interface import Launch
from casemate.settings import child_environment

_TAIL_LINES = 200
_LINE_BYTES = 8 << 10
_READ_BYTES = 64 << 10
_KEEPER_OVERTIME_S = 15.0
"""On top of the grace period: then the keeper has given up, and so do we."""
_LAST_READS = 64
"""A pipe holds less than this many reads; a process that goes on writing shall not hold us."""
_TURN_S = 0.02
_GROUP_TURNS = 100


class Child:
    """A process, and everything that it starts, for as long as we want it.

    Use as `async with Child(launch, on_line=…) as child`; after the block nothing of it lives. Nothing of it lives
    either if we die, of whatever signal; see `engine.keeper` for how, and for what remains.

    Args:
        launch: what to start.
        on_line: gets every line that it writes to stdout or stderr, cut at 8 KiB.
        grace_s: what each process gets between SIGTERM and SIGKILL.
    """

    def __init__(self, launch: Launch, *, on_line: Callable[[str], None], grace_s: float = 10.0) -> None:
        self._launch = launch
        self._on_line = on_line
        self._grace_s = grace_s
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._words = Lines()
        self._pipes: dict[int, Lines] = {}
        self._ended = asyncio.Event()
        self._gone = asyncio.Event()
        self.code = 0
        self.pid = 0

    @property
    def tail(self) -> tuple[str, ...]:
        """The last lines that it wrote, oldest first."""
        return tuple(self._tail)

    async def ended(self) -> int:
        """Wait for the child's end; its status as in `subprocess`. Its own children may still be ending."""
        await self._ended.wait()
        return self.code

    async def __aenter__(self) -> Self:
        argv = [sys.executable, "-P", "-m", "casemate.engine.keeper", str(self._grace_s), *self._launch.argv]
        self._control, theirs = socket.socketpair()
        with theirs, ExitStack() as if_it_fails:
            if_it_fails.enter_context(self._control)
            environment = child_environment(**dict(self._launch.environment))
            self._keeper = process.start(argv, stdin=theirs, environment=environment)
            if_it_fails.pop_all()
        self._listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        """End it all, however often we are cancelled meanwhile."""
        ending = asyncio.ensure_future(self._end())
        cancelled: asyncio.CancelledError | None = None
        while not ending.done():
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled:
            raise cancelled

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        self._control.settimeout(0)
        loop.add_reader(self._control, self._hear_keeper)
        for pipe in filter(None, (self._keeper.stdout, self._keeper.stderr)):
            os.set_blocking(pipe.fileno(), False)
            self._pipes[pipe.fileno()] = Lines()
            loop.add_reader(pipe.fileno(), self._hear_child, pipe.fileno())

    def _hear_child(self, pipe: int) -> bytes:
        """Take what one pipe holds now; nothing if it is empty or at its end."""
        try:
            data = os.read(pipe, _READ_BYTES)
        except BlockingIOError:
            return b""
        loop = asyncio.get_running_loop()
        if not data:
            loop.remove_reader(pipe)
        for line in self._pipes[pipe].feed(data):
            self._tail.append(line)
            loop.call_soon(self._on_line, line)  # an error of theirs is no error of ours
        return data

    def _hear_keeper(self) -> None:
        try:
            data = self._control.recv(_READ_BYTES)
        except ConnectionError:
            data = b""
        for word in self._words.feed(data):
            match word.split():
                case ["pid", number]:
                    self.pid = int(number)
                case ["exit", number]:
                    self._has_ended(int(number))
        if not data:
            self._keeper_has_ended()

    def _has_ended(self, code: int) -> None:
        for pipe in self._pipes:
            for _ in range(_LAST_READS):
                if not self._hear_child(pipe):
                    break
        self.code = code
        self._ended.set()

    def _keeper_has_ended(self) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._control)
        status = self._keeper.wait()
        if not self._ended.is_set():  # it was killed: nobody has ended the family
            self._signal_group(signal.SIGKILL)
            self._has_ended(status)
        for pipe in filter(None, (self._keeper.stdout, self._keeper.stderr)):
            loop.remove_reader(pipe.fileno())
            pipe.close()
        self._control.close()
        self._gone.set()

    async def _end(self) -> None:
        with suppress(OSError):  # the keeper has gone already
            self._control.shutdown(socket.SHUT_WR)
        try:
            async with asyncio.timeout(self._grace_s + _KEEPER_OVERTIME_S):
                await self._gone.wait()
        except TimeoutError:
            self._keeper.kill()
            await self._gone.wait()
        for _ in range(_GROUP_TURNS):
            if not self._signal_group(0):
                return
            await asyncio.sleep(_TURN_S)

    def _signal_group(self, number: int) -> bool:
        """Whether the child's process group was there to get the signal."""
        try:
            os.killpg(self.pid, number) if self.pid else None
        except ProcessLookupError:
            return False
        return bool(self.pid)


class Lines:
    """Cuts bytes into lines. Memory is bounded: what goes beyond 8 KiB in one line is dropped."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """The lines that `data` completes; empty data is the end, and completes the last."""
        lines = []
        *whole, rest = data.split(b"\n") if data else [b"", b""]
        for part in whole:
            lines.append(self._add(part).decode(errors="replace").rstrip("\r"))
            self._rest = b""
        self._add(rest)
        return lines if data or lines != [""] else []

    def _add(self, part: bytes) -> bytes:
        self._rest += part[: _LINE_BYTES - len(self._rest)]
        return self._rest
