"""What the host and the engine's log come to over a window. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from casemate.doctor.watch.sample import HostSample, Sample


@dataclass(frozen=True, slots=True)
class HostFigures:
    """The host over a window; None is "not told".

    Attributes:
        busy: share of all cores.
        hottest: name of the engine's process with the busiest thread, and its pid.
        hottest_thread: what that thread took of one core.
        serving_thread: the same, of the process that listens at the engine's address.
        engine_cores: all of the engine's processes together.
        compiling: share of the samples in which a compiler ran, one had run, or the log told of one.
        children_cores: cores that children of the engine's processes used before they ended.
        faults_per_s: pages that the engine's processes touched for the first time.
        compile_lines: in the log.
        last_compile: the last of them.
    """

    cores: int | None = None
    busy: float | None = None
    hottest: str = ""
    hottest_pid: int | None = None
    hottest_thread: float | None = None
    serving_thread: float | None = None
    engine_cores: float | None = None
    compiling: float | None = None
    children_cores: float | None = None
    faults_per_s: float | None = None
    compile_lines: int | None = None
    last_compile: str = ""
    max_num_seqs: int | None = None


_A_CHILD_WORKED = 0.05
"""Cores from which a child that came and went is taken for more than a shell's `true`."""


def host(window: Sequence[Sample]) -> HostFigures:
    """The host over the samples that tell of it."""
    told = [sample.host for sample in window if sample.host]
    logs = [sample.log for sample in window if sample.log]
    threads = _threads(told)
    hottest = max(threads, key=lambda pid: threads[pid][1], default=None)
    signs = [sign for sample in window if (sign := _compiles(sample)) is not None]
    lines = [log.last for log in logs if log.last]
    return HostFigures(
        cores=told[-1].cores if told else None,
        busy=_mean(one.busy for one in told),
        hottest=threads[hottest][0] if hottest is not None else "",
        hottest_pid=hottest,
        hottest_thread=threads[hottest][1] if hottest is not None else None,
        serving_thread=_mean(worker.hottest_thread for one in told for worker in one.workers if worker.serves),
        engine_cores=_mean(sum(worker.cores for worker in one.workers) for one in told if one.workers),
        compiling=_mean(map(float, signs)),
        children_cores=_mean(one.children_cores for one in told),
        faults_per_s=_mean(one.faults_per_s for one in told),
        compile_lines=sum(log.compile_lines for log in logs) if logs else None,
        last_compile=lines[-1] if lines else "",
        max_num_seqs=next((one.max_num_seqs for one in told if one.max_num_seqs), None),
    )


def _compiles(sample: Sample) -> bool | None:
    """Whether anything tells of a compiler at this moment; None if nobody could tell."""
    signs = []
    if sample.log:
        signs.append(sample.log.compiling or sample.log.compile_lines > 0)
    if sample.host and sample.host.compilers is not None:
        signs.append(sample.host.compilers > 0 or (sample.host.children_cores or 0.0) > _A_CHILD_WORKED)
    return any(signs) if signs else None


def _threads(told: Sequence[HostSample]) -> dict[int, tuple[str, float]]:
    """By process: its name, and the mean of its busiest thread over all samples, in which it may not have been."""
    sums: dict[int, tuple[str, float]] = {}
    for one in told:
        for worker in one.workers:
            _, before = sums.get(worker.pid, ("", 0.0))
            sums[worker.pid] = (worker.name, before + (worker.hottest_thread or 0.0))
    return {pid: (name, total / len(told)) for pid, (name, total) in sums.items()}


def _mean(values: Iterable[float | None]) -> float | None:
    held = [value for value in values if value is not None]
    return sum(held) / len(held) if held else None
