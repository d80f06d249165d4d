"""The running platform as the other commands see it: a small file in the home folder."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Running:
    """A platform that is up: its process, its address, and which model speaks."""

    pid: int
    born: str
    """The process's start time in clock ticks since boot: with the pid it names one process for ever."""
    url: str
    model: str
    note: str


def write(path: Path, *, url: str, model: str, note: str) -> None:
    """Leave our own address there, readable by us alone, at once or not at all."""
    running = Running(os.getpid(), _born(os.getpid()), url, model, note)
    draft = path.with_suffix(".new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(asdict(running), file)
    draft.replace(path)


def read(path: Path) -> Running | None:
    """The platform that runs now; None if the file is absent, foreign, or left by a process that is gone."""
    try:
        running = Running(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return running if alive(running) else None


def remove(path: Path) -> None:
    """Take our address away; another's stays."""
    running = read(path)
    if running is None or running.pid == os.getpid():
        path.unlink(missing_ok=True)


def alive(running: Running) -> bool:
    """Whether that very process still lives: a recycled pid does not count."""
    return bool(running.born) and _born(running.pid) == running.born


def _born(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return _signalled(pid)
    state, *fields = stat.rpartition(")")[2].split()
    return "" if state == "Z" else fields[18]


def _signalled(pid: int) -> str:
    """Where there is no /proc: whether a signal would reach it is all that can be known."""
    if Path("/proc/self").exists():
        return ""
    try:
        os.kill(pid, 0)
    except OSError:
        return ""
    return "alive"
