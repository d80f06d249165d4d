"""A small process between us and an engine, which ends the engine's whole family when we are gone.

    python -P -m casemate.engine.keeper GRACE_S PROGRAM ARGUMENT…

On Linux it is a *subreaper*: whatever the engine starts, and whatever leaves the engine's group or session, becomes the
keeper's child when its own parent ends, so that walking down from the keeper finds all of it. Elsewhere it knows the
engine's process group only.

Its stdin is a socket to the process that owns it. It writes `pid N` when the child has started, `exit N` when the
child has ended, and closes after the last of the family. It ends the family (SIGTERM, GRACE_S seconds, SIGKILL) when
the child has ended, when the socket closes (its owner is done with it, or died of whatever), or on SIGTERM or SIGINT.
Its own status is the child's.

What remains: if the keeper itself dies of SIGKILL, the kernel kills its child and the owner kills the child's process
group, but a grandchild that has left that group lives on.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from casemate import process
from casemate.errors import CasemateError

_CONTROL = 0
_PR_SET_CHILD_SUBREAPER = 36
_STOP = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
_TURN_S = 0.02
_OWNER_CHECK_S = 1.0
_GIVE_UP_S = 10.0
"""After SIGKILL: a process that the kernel cannot end in this time hangs in a device, and nobody can end it."""
_CANNOT_START = 127
_PROC = Path("/proc")


def main(argv: list[str]) -> int:
    """Keep one child until it or its owner ends. Returns the child's status, 128 + N for signal N."""
    grace_s, *program = argv
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    signals = _signals()
    stdin, held = os.pipe()  # a child that reads its stdin sees there that we are gone
    try:
        child = process.start_kept(program, stdin=stdin)
    except CasemateError as error:
        os.write(sys.stderr.fileno(), f"{error}\n".encode())
        _say(f"exit {_CANNOT_START}")
        return _CANNOT_START
    os.close(stdin)
    _say(f"pid {child.pid}")
    family = _Family(child.pid)
    _wait(family, signals)
    family.end(float(grace_s))
    os.close(held)
    child.returncode = family.status  # the family has reaped it
    return family.status if family.status >= 0 else 128 - family.status


class _Family:
    """The child and everything below it. `status` is the child's (as in `subprocess`); `ended` whether it is known."""

    def __init__(self, child: int) -> None:
        self._child = child
        self.status = 0
        self.ended = False

    def reap(self) -> None:
        """Collect who has ended, orphans that became ours included; report the child's end at once."""
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == self._child:
                    self.status, self.ended = os.waitstatus_to_exitcode(found[1]), True
                    _say(f"exit {self.status}")

    def end(self, grace_s: float) -> None:
        """Ask everyone to end, then make them; returns when nobody is left."""
        kill_at = time.monotonic() + grace_s
        self._signal(signal.SIGTERM)
        while self._members() and time.monotonic() < kill_at + _GIVE_UP_S:
            if time.monotonic() >= kill_at:
                self._signal(signal.SIGKILL)
            time.sleep(_TURN_S)
            self.reap()

    def _signal(self, number: int) -> None:
        for member in self._members():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(member, number)

    def _members(self) -> list[int]:
        """Numbers of all descendants; a negative one is a process group, where there is no /proc."""
        if _PROC.is_dir():
            return _descendants(os.getpid(), _parents())
        try:
            os.killpg(self._child, 0)
        except ProcessLookupError:
            return []
        return [-self._child]


def _wait(family: _Family, signals: int) -> None:
    """Until the child has ended, the owner is gone, or somebody says stop."""
    owner = os.getppid()
    while not family.ended:
        readable, _, _ = select.select([_CONTROL, signals], [], [], _OWNER_CHECK_S)
        if _CONTROL in readable and not _heard(_CONTROL):
            return
        if signals in readable and _STOP & set(os.read(signals, 1024)):
            return
        if os.getppid() != owner:  # should anybody else hold the socket's other end
            return
        family.reap()


def _signals() -> int:
    """A pipe on which every signal that concerns us appears as one byte, its number."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, *_STOP):
        signal.signal(number, lambda *_: None)
    return reader


def _heard(control: int) -> bytes:
    try:
        return os.read(control, 1024)
    except ConnectionError:
        return b""


def _say(word: str) -> None:
    with suppress(OSError):  # the owner may be gone
        os.write(_CONTROL, f"{word}\n".encode())


def _descendants(root: int, parents: dict[int, int]) -> list[int]:
    found: set[int] = set()
    below = {root}
    while below := {pid for pid, parent in parents.items() if parent in below} - found:
        found |= below
    return sorted(found)


def _parents() -> dict[int, int]:
    """The parent of every process."""
    found = {}
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # it ended while we looked
                stat = (folder / "stat").read_bytes()
                # the name in parentheses may hold anything, so count from its end
                found[int(folder.name)] = int(stat.rpartition(b")")[2].split()[1])
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
