"""Looks at the host between two samples: the processor, and the engine's own processes, from `/proc`.

The engine's processes are those that listen at its address and all that they started; where nobody is seen to listen
(another user's, another container's), those on the cards. What is not visible is not spoken of.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from casemate.doctor.watch.sample import HostSample, Worker

_MOST_PROCESSES: Final = 512
_MOST_THREADS: Final = 2048
_TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
_KIB: Final = 1024
_LISTENS: Final = "0A"
_COMPILERS: Final = re.compile(
    r"nvcc|cicc|ptxas|cc1|cc1plus|cudafe\+\+|fatbinary|nvlink|ninja|clang(\+\+)?|g\+\+|gcc|ld(\.\w+)?|as|hipcc"
)
"""Programs that turn source into kernels: CUDA's, the host's that they call, and the builder over them."""
_SEATS: Final = re.compile(r"--(?:max[-_]num[-_]seqs|parallel)[= \0](\d{1,6})(?=[ \0]|$)|\0-np\0(\d{1,6})(?=\0|$)")


@dataclass(frozen=True, slots=True)
class _Process:
    """One reading of `/proc/PID/stat`: ticks of itself and of children that it waited for, and first touches."""

    pid: int
    parent: int
    name: str
    ticks: int
    children_ticks: int
    faults: int
    started: int


@dataclass(frozen=True, slots=True)
class _Reading:
    time_s: float
    busy: tuple[int, int]
    processes: Mapping[int, _Process]
    threads: Mapping[int, Mapping[int, int]] = field(default_factory=dict)


class Host:
    """The host over the time between calls.

    Args:
        port: where the engine listens on this host; 0 if it is elsewhere.
        root: where `proc` is.
    """

    def __init__(self, *, port: int = 0, root: Path = Path("/")) -> None:
        self._proc = root / "proc"
        self._port = port
        self._serving: frozenset[int] = frozenset()
        self._before = self._read(())

    def sample(self, on_cards: Iterable[int] = ()) -> HostSample:
        """What happened since the last call.

        Args:
            on_cards: pids that the driver sees on the cards; those of another container mean nothing here.
        """
        if not self._serving or not all((self._proc / str(pid)).exists() for pid in self._serving):
            self._serving = frozenset(self._listening())
        before, now = self._before, self._read(self._serving or on_cards)
        self._before = now
        both = [(before.processes[pid], one) for pid, one in now.processes.items() if _same(before, one)]
        time_s = max(now.time_s - before.time_s, 1e-6)
        alive, total = (other - one for one, other in zip(before.busy, now.busy, strict=True))
        visible = bool(now.threads)
        family = [(one, other) for one, other in both if other.pid in now.threads]
        return HostSample(
            cores=os.cpu_count() or 1,
            busy=alive / total if total > 0 else None,
            memory_available_bytes=self._available(),
            workers=tuple(self._worker(one, other, before=before, now=now) for one, other in family),
            compilers=sum(bool(_COMPILERS.fullmatch(now.processes[pid].name)) for pid in now.threads)
            if visible
            else None,
            children_cores=_growth(family, "children_ticks") * _TICK_S / time_s if visible else None,
            faults_per_s=_growth(self._inner(family), "faults") / time_s if visible else None,
            max_num_seqs=self._seats(now.threads),
        )

    def _inner(self, family: list[tuple[_Process, _Process]]) -> list[tuple[_Process, _Process]]:
        """Without the process that serves, which takes in requests however the engine is; all if it is the engine."""
        return [pair for pair in family if pair[1].pid not in self._serving] or family

    def _worker(self, one: _Process, other: _Process, *, before: _Reading, now: _Reading) -> Worker:
        time_s = max(now.time_s - before.time_s, 1e-6)
        earlier = before.threads.get(other.pid, {})
        threads = [ticks - earlier[thread] for thread, ticks in now.threads[other.pid].items() if thread in earlier]
        return Worker(
            pid=other.pid,
            name=other.name,
            cores=(other.ticks - one.ticks) * _TICK_S / time_s,
            hottest_thread=max(threads) * _TICK_S / time_s if threads else None,
            serves=other.pid in self._serving,
        )

    def _read(self, roots: Iterable[int]) -> _Reading:
        processes = {one.pid: one for one in self._processes()}
        family = _family(processes, roots)
        threads = {}
        left = _MOST_THREADS
        for pid in family:
            threads[pid] = dict(self._threads(pid, left))
            left -= len(threads[pid])
        return _Reading(time.monotonic(), self._ticks(), processes, threads)

    def _processes(self) -> Iterator[_Process]:
        for folder in _numbers(self._proc):
            if (one := _process(_text(self._proc / folder / "stat"))) is not None:
                yield one

    def _threads(self, pid: int, most: int) -> Iterator[tuple[int, int]]:
        for thread in list(_numbers(self._proc / str(pid) / "task"))[: max(0, most)]:
            if (one := _process(_text(self._proc / str(pid) / "task" / thread / "stat"))) is not None:
                yield one.pid, one.ticks

    def _ticks(self) -> tuple[int, int]:
        """Of all cores: at work, and in all. Waiting for a disk is not work."""
        words = _text(self._proc / "stat").partition("\n")[0].split()[1:9]
        numbers = [int(word) for word in words if word.isdigit()]
        if len(numbers) < 5:
            return 0, 0
        return sum(numbers) - numbers[3] - numbers[4], sum(numbers)

    def _available(self) -> int | None:
        match = re.search(r"^MemAvailable:\s+(\d+)", _text(self._proc / "meminfo"), re.MULTILINE)
        return int(match[1]) * _KIB if match else None

    def _listening(self) -> Iterator[int]:
        """Who listens at the port, by the socket's number in its open files."""
        if not self._port:
            return
        sockets = {f"socket:[{number}]" for name in ("tcp", "tcp6") for number in self._sockets(name)}
        for folder in _numbers(self._proc) if sockets else ():
            if any(link in sockets for link in _links(self._proc / folder / "fd")):
                yield int(folder)

    def _sockets(self, name: str) -> Iterator[str]:
        for line in _text(self._proc / "net" / name).splitlines()[1:]:
            words = line.split()
            if len(words) > 9 and words[3] == _LISTENS and int(words[1].rpartition(":")[2], 16) == self._port:
                yield words[9]

    def _seats(self, pids: Iterable[int]) -> int | None:
        """The limit of running requests that the engine was started with."""
        for pid in pids:
            if match := _SEATS.search(_text(self._proc / str(pid) / "cmdline")):
                return int(match[1] or match[2])
        return None


def _family(processes: Mapping[int, _Process], roots: Iterable[int]) -> list[int]:
    """The roots that are visible, and all that they started."""
    children: dict[int, list[int]] = {}
    for one in processes.values():
        children.setdefault(one.parent, []).append(one.pid)
    found: dict[int, None] = {}
    waiting = [pid for pid in roots if pid in processes]
    while waiting and len(found) < _MOST_PROCESSES:
        pid = waiting.pop()
        if pid not in found:
            found[pid] = None
            waiting += children.get(pid, [])
    return list(found)


def _process(stat: str) -> _Process | None:
    """A line of `stat` (proc_pid_stat(5)); the name stands in parentheses and may hold some itself."""
    head, _, rest = stat.rpartition(")")
    pid, _, name = head.partition(" (")
    words = rest.split()
    if not pid.isdigit() or len(words) < 20:
        return None
    numbers = [int(word) for word in (words[1], words[7], *words[11:15], words[19])]
    parent, faults, user, system, children_user, children_system, started = numbers
    return _Process(int(pid), parent, name, user + system, children_user + children_system, faults, started)


def _same(before: _Reading, one: _Process) -> bool:
    """Whether it was there before; a number is given again, a start is not."""
    earlier = before.processes.get(one.pid)
    return earlier is not None and earlier.started == one.started


def _growth(pairs: Iterable[tuple[_Process, _Process]], name: str) -> float:
    return float(sum(getattr(other, name) - getattr(one, name) for one, other in pairs))


def _numbers(folder: Path) -> Iterator[str]:
    try:
        names = [entry.name for entry in folder.iterdir()]
    except OSError:
        return
    yield from (name for name in names if name.isdigit())


def _links(folder: Path) -> Iterator[str]:
    for name in _numbers(folder):
        try:
            yield str((folder / name).readlink())
        except OSError:
            continue


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
