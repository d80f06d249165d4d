"""The cards as a stream: a child asks the driver at every interval, and here its newest answer is taken.

The driver is asked in a process of its own, because a wedged one keeps whoever asks; the child ends with its standard
input, and with us.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import IO, Any, Protocol, Self

from casemate import process
from casemate.doctor import codec
from casemate.doctor.watch.sample import CardSample
from casemate.errors import CasemateError, UsageError

_READ_BYTES = 64 << 10
_MOST_BYTES = 4 << 20
_GONE_S = 0.5
START_S = 20.0
"""A driver that is not kept loaded takes seconds a card to come up."""


class _Child(Protocol):
    pid: int
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    def poll(self) -> int | None: ...


class Cards:
    """A stream of samples. Use as `with Cards(interval_s=1.0, variables=…) as cards`.

    Args:
        interval_s: over how many seconds a sample goes.
        variables: the environment that the library sees.
    """

    def __init__(self, *, interval_s: float, variables: Mapping[str, str]) -> None:
        self._interval_s = interval_s
        self._environment = {**variables, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._closing = ExitStack()
        self._child: _Child | None = None
        self._rest = b""
        self._newest: tuple[CardSample, ...] = ()
        self._told_at = time.monotonic()
        self._step = "starting"
        self._error = ""

    def __enter__(self) -> Self:
        argv = [sys.executable, "-P", "-m", "casemate.doctor.watch.nvml_live", str(self._interval_s)]
        ours, theirs = socket.socketpair()
        with theirs, ExitStack() as if_it_fails:
            if_it_fails.enter_context(ours)
            try:
                self._child = process.start(argv, stdin=theirs, environment=self._environment)
            except CasemateError as error:
                self._error = error.what
                return self
            self._closing.push(if_it_fails.pop_all())
        for pipe in filter(None, (self._child.stdout, self._child.stderr)):
            os.set_blocking(pipe.fileno(), False)
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()
        if self._child is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)  # its own session, so its pid is its group
        until = time.monotonic() + _GONE_S  # one that sleeps in a wedged driver is left to the kernel
        while self._child.poll() is None and time.monotonic() < until:
            time.sleep(0.002)
        for pipe in filter(None, (self._child.stdout, self._child.stderr)):
            pipe.close()

    @property
    def settled(self) -> bool:
        """Whether it is known by now what there is to watch."""
        self._hear()
        return bool(self._newest or self._error)

    def newest(self) -> tuple[tuple[CardSample, ...], str]:
        """The last interval's samples, and why there are none; both empty while the first are awaited."""
        self._hear()
        silent_s = time.monotonic() - self._told_at
        if not self._error and silent_s > START_S + self._interval_s:
            return (), f"the driver does not answer ({self._step})"
        if not self._error and self._newest and silent_s > 3 * self._interval_s + 1:
            return (), f"the driver has not answered for {silent_s:.0f} s"
        return ((), self._error) if self._error else (self._newest, "")

    def _hear(self) -> None:
        if self._child is None:
            return
        for line in self._lines():
            self._take(line)
        if self._child.poll() is not None and not self._error:
            self._error = "the process that asks the driver ended"

    def _lines(self) -> list[bytes]:
        if self._child is None or self._child.stdout is None or self._child.stderr is None:
            return []
        _read(self._child.stderr.fileno())  # a library's complaints; unread they would block it
        data = self._rest + _read(self._child.stdout.fileno())
        *whole, self._rest = data.split(b"\n")
        self._rest = self._rest if len(self._rest) < _MOST_BYTES else b""
        return whole

    def _take(self, line: bytes) -> None:
        told = _object(line)
        self._step = str(told.get("asking", self._step))
        if "unknown" in told:
            self._error = str(told["unknown"])
        if isinstance(cards := told.get("cards"), list):
            self._told_at = time.monotonic()
            self._newest = tuple(found for card in cards if (found := _card(card)))
            if not cards:
                self._error = "the driver lists none"


def _read(number: int) -> bytes:
    """What a pipe holds now."""
    parts: list[bytes] = []
    while len(parts) * _READ_BYTES < _MOST_BYTES:
        try:
            part = os.read(number, _READ_BYTES)
        except BlockingIOError:
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts)


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}  # a library may print
    return value if isinstance(value, dict) else {}


def _card(value: object) -> CardSample | None:
    try:
        return codec.facts(CardSample, value)
    except UsageError:
        return None
