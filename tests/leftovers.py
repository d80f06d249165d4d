"""What a test may leave behind in the system: processes and listening sockets, read from /proc (Linux)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

MARK = ("HOUSE_TEST_RUN", uuid4().hex)
"""Environment variable that every process started by this test run inherits, orphans included."""

_PROC = Path("/proc")
_LIVES_AS_LONG_AS_WE_DO = "multiprocessing.resource_tracker"
_TCP_LISTENS = "0A"
_UNIX_LISTENS = 0x10000


@dataclass(frozen=True, slots=True)
class Trace:
    """A process or a socket; `pid` is 0 for a socket."""

    kind: str
    name: str
    pid: int = 0

    def __str__(self) -> str:
        return f"{self.kind} {self.pid or ''} {self.name}".replace("  ", " ")


def traces() -> frozenset[Trace]:
    """Every process that this run started and that still exists, and every socket that we listen on."""
    return frozenset(_processes()) | frozenset(_listeners())


def left_since(before: frozenset[Trace], *, patience_s: float = 3.0) -> frozenset[Trace]:
    """What exists now and did not before; what is just ending gets a moment to do so."""
    deadline = time.monotonic() + patience_s
    while (left := traces() - before) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def _processes() -> Iterator[Trace]:
    mark = "=".join(MARK).encode()
    parents = dict(_parents())
    for pid in parents:
        if pid == os.getpid():
            continue
        if _descends(pid, parents) or mark in _read(pid, "environ").split(b"\0"):
            name = _read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace").strip()
            if _LIVES_AS_LONG_AS_WE_DO not in name:
                yield Trace("process", name or "(ended, nobody waited for it)", pid)


def _parents() -> Iterator[tuple[int, int]]:
    for folder in _PROC.iterdir():
        if folder.name.isdigit() and (stat := _read(int(folder.name), "stat")):
            # the name in parentheses may hold anything, so count from its end
            yield int(folder.name), int(stat.rpartition(b")")[2].split()[1])


def _descends(pid: int, parents: dict[int, int]) -> bool:
    while pid := parents.get(pid, 0):
        if pid == os.getpid():
            return True
    return False


def _read(pid: int, name: str) -> bytes:
    try:
        return (_PROC / str(pid) / name).read_bytes()
    except OSError:  # it ended while we looked, or belongs to somebody else
        return b""


def _listeners() -> Iterator[Trace]:
    ours = set(_own_sockets())
    for table in ("tcp", "tcp6"):
        for row in _rows(table):
            if row[3] == _TCP_LISTENS and row[9] in ours:
                yield Trace("listening socket", f"{table} port {int(row[1].rpartition(':')[2], 16)}")
    for row in _rows("unix"):
        if int(row[3], 16) & _UNIX_LISTENS and row[6] in ours:
            yield Trace("listening socket", "unix " + (row[7] if len(row) > 7 else "(no name)"))


def _rows(table: str) -> list[list[str]]:
    path = _PROC / "self" / "net" / table
    return [line.split() for line in path.read_text().splitlines()[1:]] if path.exists() else []


def _own_sockets() -> Iterator[str]:
    for descriptor in (_PROC / "self" / "fd").iterdir():
        try:
            target = str(descriptor.readlink())
        except OSError:  # the descriptor of this very listing
            continue
        if target.startswith("socket:["):
            yield target.removeprefix("socket:[").rstrip("]")
