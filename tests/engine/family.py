"""What lives below a process, and whether it still does."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path


def descendants(pid: int) -> set[int]:
    parents = {int(folder.name): _stat(int(folder.name)) for folder in Path("/proc").iterdir() if folder.name.isdigit()}
    found: set[int] = set()
    below = {pid}
    while below := {child for child, (_, parent) in parents.items() if parent in below} - found:
        found |= below
    return found


def only_child(pid: int) -> int:
    (child,) = (other for other in descendants(pid) if _stat(other)[1] == pid)
    return child


def living(pids: Iterable[int]) -> set[int]:
    """Those that still run; one that has ended and waits for its parent does not."""
    return {pid for pid in pids if _stat(pid)[0] not in ("", "Z", "X")}


def port_is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as every server does
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def eventually(fact: Callable[[], bool], *, within_s: float = 10.0) -> bool:
    deadline = time.monotonic() + within_s
    while not fact() and time.monotonic() < deadline:
        time.sleep(0.02)
    return fact()


def _stat(pid: int) -> tuple[str, int]:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "", 0
    return fields[0], int(fields[1])
