"""Runs a program that a broken driver may hold for ever, and comes back in time whatever happens to it.

`process.run` waits until what it killed is gone. A process that sleeps inside a wedged driver is never gone: no signal
reaches it. So here the wait has an end too; such a process is left to the kernel, and its pipes are closed.
"""

from __future__ import annotations

import math
import os
import select
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Protocol

from casemate import process
from casemate.errors import CasemateError

_GONE_S = 0.5
"""How long a killed program may take to vanish before we leave it."""
_BY_ITSELF_S = 0.05
_CHUNK_BYTES = 1 << 16
_MOST_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Heard:
    """What a program wrote until it ended or its time did; `broken` says why it is not all, empty if it is."""

    stdout: str
    stderr: str
    broken: str = ""


class _Child(Protocol):
    pid: int
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    def poll(self) -> int | None: ...


def hear(argv: Sequence[str], *, limit_s: float, environment: Mapping[str, str], quiet_s: float = math.inf) -> Heard:
    """Run a program to its end, or for `limit_s` seconds, and return what it wrote. It never raises.

    With `quiet_s` its time is over, too, when it has written nothing for so long.
    """
    ours, theirs = socket.socketpair()
    try:
        with ours, theirs:
            child = process.start(argv, stdin=theirs, environment=environment)
    except CasemateError as error:
        return Heard("", "", error.what)
    try:
        texts, whole = _read(child, deadline=time.monotonic() + limit_s, quiet_s=quiet_s)
    finally:
        code = _end(child)
    stdout, stderr = (text.decode(errors="replace") for text in texts)
    if not whole:
        return Heard(stdout, stderr, f"no end within {min(limit_s, quiet_s):g} s")
    return Heard(stdout, stderr, f"ended with status {code}" if code else "")


def _read(child: _Child, *, deadline: float, quiet_s: float) -> tuple[list[bytearray], bool]:
    """Both pipes until both are closed, and whether that came about in time and within reason."""
    texts = {pipe.fileno(): bytearray() for pipe in (child.stdout, child.stderr) if pipe}
    waiting = select.poll()
    for number in texts:
        waiting.register(number, select.POLLIN | select.POLLHUP)
    still_open = set(texts)
    while still_open and sum(map(len, texts.values())) < _MOST_BYTES:
        ready = waiting.poll(min(quiet_s, max(0.0, deadline - time.monotonic())) * 1000)
        if not ready:
            break
        for number, _ in ready:
            chunk = os.read(number, _CHUNK_BYTES)
            texts[number] += chunk
            if not chunk:
                waiting.unregister(number)
                still_open.discard(number)
    return list(texts.values()), not still_open


def _end(child: _Child) -> int | None:
    """Its status; None if not even a kill ends it."""
    deadline = time.monotonic() + _GONE_S
    code = child.poll()
    if code is None:  # its pipes are closed already, or its time is over: a moment to end by itself, or none
        code = _settled(child, until=time.monotonic() + _BY_ITSELF_S)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)  # its own session, so its pid is its group
    if code is None:
        code = _settled(child, until=deadline)
    for pipe in filter(None, (child.stdout, child.stderr)):
        pipe.close()
    return code


def _settled(child: _Child, *, until: float) -> int | None:
    while (code := child.poll()) is None and time.monotonic() < until:
        time.sleep(0.002)
    return code
