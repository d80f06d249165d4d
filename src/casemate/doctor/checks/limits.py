"""What the system allows a process: shared memory, locked memory, open files, the host's memory."""

from __future__ import annotations

from collections.abc import Iterator

from casemate.doctor.checks.check import Check, Question, gib, reason, usable
from casemate.doctor.machine import Machine

_MIB = 1 << 20
_SHM_NEEDED_BYTES = 1 << 30
"""For NCCL between cards. A container has 64 MiB by default, and the first all-reduce then fails (vllm#1710)."""

_MEMLOCK_WANTED_BYTES = 64 * _MIB
_FILES_WANTED = 4096
_HOST_LEAST_BYTES = 2 << 30
"""A 1.5-billion model in 4 bits, its cache and the graph need about this much on the CPU engine."""

SHM = Question("limits.shared-memory", "Shared memory", "df -h /dev/shm")
_MEMLOCK = Question("limits.locked-memory", "Locked memory", "ulimit -l")
_FILES = Question("limits.open-files", "Open files", "ulimit -n; ulimit -Hn")
_MEMORY = Question("limits.memory", "The host's memory", "free -g")


def checks(machine: Machine) -> Iterator[Check]:
    """The checks of this theme."""
    yield _memory(machine)
    yield _files(machine)
    if machine.cards:
        yield shared_memory(machine)
        yield _locked(machine)


def shared_memory(machine: Machine) -> Check:
    """Room in /dev/shm: workers of one engine talk through it."""
    total, free = machine.surroundings.shm_total_bytes, machine.surroundings.shm_free_bytes
    if total is None:
        return SHM.unknown("not told", remedy="run the command below")
    told = f"{_size(total)}, {_size(free)} free" if free is not None else _size(total)
    if min(total, total if free is None else free) >= _SHM_NEEDED_BYTES:
        return SHM.ok(told)
    contained = bool(machine.surroundings.container)
    remedy = (
        "start the container with `--ipc=host`, or `--shm-size 16g` (Kubernetes: a memory-backed emptyDir at /dev/shm)"
        if contained
        else "`mount -o remount,size=16g /dev/shm` as root, or remove what lies in it"
    )
    why = "NCCL keeps its buffers between cards here: with less than 1 GiB the first all-reduce of several cards fails."
    answer = SHM.fail if len(usable(machine)) > 1 else SHM.warn
    return answer(told, why=why, remedy=remedy)


def _locked(machine: Machine) -> Check:
    limit = machine.surroundings.memlock_bytes
    if limit is None and machine.surroundings.open_files is None:
        return _MEMLOCK.unknown("not told", remedy="run the command below")
    if limit is None:
        return _MEMLOCK.ok("unlimited")
    if limit < _MEMLOCK_WANTED_BYTES:
        return _MEMLOCK.warn(
            _size(limit),
            why="On one box this seldom matters; transfers between nodes (RDMA) and some KV-cache offloading pin "
            "memory and fail with `Cannot allocate memory`.",
            remedy="`--ulimit memlock=-1` for a container, `LimitMEMLOCK=infinity` in a unit, or limits.conf",
        )
    return _MEMLOCK.ok(_size(limit))


def _files(machine: Machine) -> Check:
    limit = machine.surroundings.open_files
    if limit is None:  # the kernel has an upper bound of its own (fs.nr_open): "unlimited" is not told of files
        return _FILES.unknown("not told", remedy="run the command below")
    if limit < _FILES_WANTED:
        return _FILES.warn(
            str(limit),
            why="Each request holds sockets, each shard of a model a file; at the limit requests fail with `Too many "
            "open files`. An engine raises the soft limit by itself as far as the hard one allows.",
            remedy="`ulimit -n 65536` before the start, `LimitNOFILE=65536` in a unit, `--ulimit nofile=65536` for a "
            "container",
        )
    return _FILES.ok(str(limit))


def _memory(machine: Machine) -> Check:
    if words := reason(machine.unknown, "memory_available_bytes", "memory_total_bytes"):
        return _MEMORY.unknown(f"not told: {words}", remedy="run the command below")
    told = (
        f"{gib(machine.memory_available_bytes)} available of {gib(machine.memory_total_bytes)}, {machine.cores} cores"
    )
    if machine.memory_available_bytes < _HOST_LEAST_BYTES:
        return _MEMORY.warn(
            told,
            why="Too little for the default model of the CPU engine; an engine on cards loads through it, too.",
            remedy="end what holds memory, raise the container's limit, or let the platform take its smaller model",
        )
    return _MEMORY.ok(told)


def _size(count: int) -> str:
    return gib(count) if count >= 1 << 30 else f"{count // _MIB} MiB" if count >= _MIB else f"{count // 1024} KiB"
