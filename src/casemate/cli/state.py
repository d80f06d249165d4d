"""The running platform as the other commands see it: a small file in the home folder."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from casemate.errors import PlatformError
from casemate.finding import ModelNote


@dataclass(frozen=True, slots=True)
class Running:
    """A platform that is up: its process, its address, and which model speaks."""

    pid: int
    born: str
    """The process's start time in clock ticks since boot: with the pid it names one process for ever."""
    url: str
    model: str
    note: str
    ready: bool
    """Whether the engine has made a token; until then the platform is starting."""


@contextmanager
def claimed(path: Path) -> Iterator[None]:
    """The right to be the platform of this home folder, for the length of the block or of our life.

    Raises:
        PlatformError: another process has it.
    """
    folder = _locked(path)
    try:
        yield
    finally:
        remove(path)
        os.close(folder)


def write(path: Path, *, url: str, note: ModelNote, ready: bool) -> None:
    """Leave our own address there, readable by us alone, at once or not at all."""
    running = Running(os.getpid(), _born(os.getpid()), url, note.name, note.note, ready)
    draft = path.with_suffix(".new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(asdict(running), file)
    draft.replace(path)


def read(path: Path) -> Running | None:
    """The platform that runs now; None if the file is absent, foreign, or left by a process that is gone."""
    try:
        running = Running(**json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None
    except (OSError, ValueError, TypeError):
        return None
    return running if running and _is_sound(running) and alive(running) else None


def remove(path: Path) -> None:
    """Take our address away; another's stays."""
    running = read(path)
    if running is None or running.pid == os.getpid():
        path.unlink(missing_ok=True)


def alive(running: Running) -> bool:
    """Whether that very process still lives: a recycled pid does not count."""
    return bool(running.born) and _born(running.pid) == running.born


def _locked(path: Path) -> int:
    """A lock on the folder itself, which ends with us however we end; a file for it would be left behind."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(folder)
        other = read(path)
        where = other.url if other else str(path.parent)
        raise PlatformError("the platform runs already", where=where, remedy="casemate down ends it") from error
    return folder


def _is_sound(running: Running) -> bool:
    return all(isinstance(value, str) for value in (running.born, running.url, running.model, running.note))


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
