"""The only file that starts processes and pools.

Three ways, told apart by who must end the process:

    run     a program that ends by itself, within a time limit
    each    a function over many items, in workers with limits on time and memory
    start   a long-lived program that the caller owns; `engine.child` puts a keeper over it (`start_kept`)

Nothing goes through a shell. Our own modules start with `-P`: the working folder may be an audited tree, and a
`struct.py` that lies there must not be imported.
"""

from __future__ import annotations

import ctypes
import functools
import os
import pickle
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from io import BufferedRWPair
from pathlib import Path
from typing import Any, TypeVar

from casemate.errors import CasemateError

T = TypeVar("T")
R = TypeVar("R")

_PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
_SILENT = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
_PIPES_CLOSE_S = 1.0
"""After a kill: how long we wait for pipes that a process outside the killed group may still hold."""
_SLACK_S = 10.0
"""A worker's own timer ends it in time; we step in this much later, should it never have come so far."""
_OUT_OF_MEMORY = 77
"""Status of a worker that has no memory left to say so."""
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program ended: its status (negative for a signal) and all that it wrote."""

    code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool


@dataclass(frozen=True, slots=True)
class Limits:
    """What one item may cost: seconds, and address space of its worker; `processes` work at once."""

    time_s: float
    memory_bytes: int
    processes: int


@dataclass(frozen=True, slots=True)
class Broken:
    """An item without a result, and why: a limit, a crash, or an error of the function."""

    reason: str


def run(argv: Sequence[str], *, timeout_s: float, environment: Mapping[str, str], cwd: Path | None = None) -> Finished:
    """Run a program to its end. Its stdin is empty; both its pipes are read at once, however much comes.

    Nothing in its process group outlives this call, however it is left; after a `kill -9` of us its pipes break.

    Args:
        argv: program and arguments.
        timeout_s: after this its process group is killed, and what it wrote so far is returned.
        environment: all of its environment; ours, with its secrets, is never handed on unseen.
        cwd: where it runs.

    Raises:
        CasemateError: the program cannot be started.
    """
    process = _start(argv, stdin=subprocess.DEVNULL, **_PIPES, env=environment, cwd=cwd)
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
        return Finished(process.returncode, stdout, stderr, timed_out=False)
    except subprocess.TimeoutExpired:
        stdout, stderr = _killed(process)
        return Finished(process.returncode, stdout, stderr, timed_out=True)
    finally:
        _killed(process)  # whatever interrupts us; and if it ended by itself, whom it left behind


def each(function: Callable[[T], R], items: Sequence[T], *, limits: Limits) -> Iterator[tuple[T, R | Broken]]:
    """Map a function over items in worker processes; whatever an item does to its worker, we go on.

    Workers are fresh interpreters, not forks: the fork of a process with threads (the embedder's, aiohttp's) may
    deadlock, and Python 3.12 warns of it. Two fresh ones cost 0.09 s together and take every following item; a
    fork server costs the same first interpreter. A worker that broke is replaced. Its items may be hostile, so of
    our environment it gets nothing but the way to our modules.

    Args:
        function: defined in an importable module (not `__main__`); it may start no process of its own.
        items: picklable, as the results must be.
        limits: what one item may cost; imports of a new worker are not counted.

    Yields:
        Each item with its result or a Broken, in the order of `items`. Closing the iterator ends every worker.
    """
    pool = _Pool(function, limits)
    try:
        yield from pool.map(items)
    finally:
        pool.close()


def start(argv: Sequence[str], *, stdin: socket.socket, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a long-lived program; the caller reads both its pipes and ends it. Raises as `run` does."""
    return _start(argv, stdin=stdin, **_PIPES, env=environment)


def start_kept(argv: Sequence[str], *, stdin: int) -> subprocess.Popen[bytes]:
    """Start a keeper's child; it shares our output, and the kernel kills it when we end. Raises as `run` does."""
    keeper = os.getpid()
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def die_with_keeper() -> None:
        if libc:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:  # it went before the line above took hold
            os._exit(1)

    return _start(argv, stdin=stdin, preexec_fn=die_with_keeper)  # safe: a keeper has one thread


def _start(argv: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(argv, start_new_session=True, **options)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise CasemateError(f"cannot start {argv[0]!r}: {reason}", where=str(options.get("cwd") or "")) from error


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):  # nobody is left; macOS says the latter
        os.killpg(process.pid, signal.SIGKILL)  # its own session, so its pid is its group


def _killed(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """End its group and read both pipes; a descendant that left the group may keep them open, so not for long."""
    _kill_group(process)
    try:
        return process.communicate(timeout=_PIPES_CLOSE_S)
    except subprocess.TimeoutExpired as error:
        for pipe in filter(None, (process.stdout, process.stderr)):
            pipe.close()
        return error.stdout or b"", error.stderr or b""
    finally:
        process.wait()


class _Pool:
    """The workers of one `each`; started when there is something to do, ended with it."""

    def __init__(self, function: Callable[[Any], Any], limits: Limits) -> None:
        self._hello = pickle.dumps((function, limits.time_s, limits.memory_bytes))
        self._limits = limits
        self._workers: set[_Worker] = set()
        self._idle: list[_Worker] = []
        self._busy: dict[_Worker, int] = {}

    def map(self, items: Sequence[T]) -> Iterator[tuple[T, Any]]:
        waiting = deque(enumerate(items))
        done: dict[int, Any] = {}
        for index, item in enumerate(items):
            while index not in done:
                while waiting and len(self._busy) < self._limits.processes:
                    self._give(*waiting.popleft())
                done.update(self._collect())
            yield item, done.pop(index)

    def close(self) -> None:
        for worker in self._workers:
            worker.end()

    def _give(self, index: int, item: object) -> None:
        if not self._idle:
            self._idle.append(_Worker(self._limits))
            self._workers.update(self._idle)  # from here on `close` ends it
            self._idle[0].give(self._hello)
        worker = self._idle.pop()
        self._busy[worker] = index
        worker.give(pickle.dumps(item))

    def _collect(self) -> Iterator[tuple[int, Any]]:
        """Wait until something is done, and hand it out by its index."""
        poll = select.poll()
        for worker in self._busy:
            poll.register(worker.channel, select.POLLIN)
        patience_s = max(0.0, min(worker.deadline for worker in self._busy) - time.monotonic())
        readable = {number for number, _ in poll.poll(patience_s * 1000)}
        for worker in list(self._busy):
            if worker.channel.fileno() in readable or worker.deadline <= time.monotonic():
                yield self._busy.pop(worker), self._outcome(worker)

    def _outcome(self, worker: _Worker) -> Any:
        outcome = worker.take()
        if isinstance(outcome, Broken):
            worker.end()
            self._workers.remove(worker)
        else:
            self._idle.append(worker)
        return outcome


class _Worker:
    """One worker process, seen from here; it holds one item at a time."""

    def __init__(self, limits: Limits) -> None:
        self.deadline = 0.0
        self._limits = limits
        way = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # an empty entry would be the working folder
        self.channel, theirs = socket.socketpair()
        with theirs, ExitStack() as if_it_fails:
            if_it_fails.enter_context(self.channel)
            self._process = _start([sys.executable, "-P", "-m", "casemate.process"], stdin=theirs, **_SILENT, env=way)
            if_it_fails.pop_all()
        self._answers = self.channel.makefile("rb")

    def give(self, message: bytes) -> None:
        self.deadline = time.monotonic() + self._limits.time_s + _SLACK_S
        self.channel.settimeout(self._limits.time_s + _SLACK_S)
        with suppress(OSError):  # it is gone; `take` finds out why
            self.channel.sendall(message)

    def take(self) -> Any:
        """The result, or a Broken; after a Broken the worker must be ended."""
        self.channel.settimeout(max(0.001, self.deadline - time.monotonic()))
        try:
            fine, value = pickle.load(self._answers)  # noqa: S301 - our own function wrote it, in our own worker
        except TimeoutError:
            return Broken(f"time limit of {self._limits.time_s:g} s")
        except (EOFError, OSError, pickle.UnpicklingError):
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_PIPES_CLOSE_S)
            return Broken(self._cause(self.end()))
        return value if fine else Broken(value)

    def end(self) -> int:
        self._answers.close()
        self.channel.close()
        if self._process.returncode is None:  # else its number may already belong to somebody else
            _kill_group(self._process)
        return self._process.wait()

    def _cause(self, code: int) -> str:
        if code == -signal.SIGALRM:
            return f"time limit of {self._limits.time_s:g} s"
        if code == _OUT_OF_MEMORY:
            return f"memory limit of {self._limits.memory_bytes / (1 << 20):g} MiB"
        return f"crashed with {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"


def _work() -> None:
    """A worker's life: learn the task, then item by item until the channel closes.

    The kernel keeps the time: the timer's signal has no handler, so it ends us even inside C code, and even if our
    parent has died. An error of the function reaches the hook, which tells it; then we end.
    """
    file = socket.socket(fileno=sys.stdin.fileno()).makefile("rwb")
    sys.excepthook = functools.partial(_tell, file)
    function, time_s, memory_bytes = pickle.load(file)  # noqa: S301 - our parent wrote it, on a channel of its own
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    while file.peek(1):
        item = pickle.load(file)  # noqa: S301 - our parent wrote it too
        signal.setitimer(signal.ITIMER_REAL, time_s)
        answer = pickle.dumps((True, function(item)))
        signal.setitimer(signal.ITIMER_REAL, 0)
        file.write(answer)
        file.flush()


def _tell(file: BufferedRWPair, *happened: Any) -> None:
    kind, error, _ = happened
    if issubclass(kind, MemoryError):
        os._exit(_OUT_OF_MEMORY)
    file.write(pickle.dumps((False, f"{kind.__name__}: {error}")))
    file.flush()


if __name__ == "__main__":
    _work()
