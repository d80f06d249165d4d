"""Asks the world what this machine is. The answers are a `Machine`; nothing here judges them.

Everything comes from files below one root, so that a recorded tree can be measured like the real one.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

from casemate.doctor.machine import Machine

_KIB = 1 << 10


def measure(folder: Path, *, root: Path = Path("/")) -> Machine:
    """Measure this host.

    Args:
        folder: where large files are to lie; its disk is measured. It need not be there yet.
        root: where `proc` and `sys` are; another one for a recording.

    Returns:
        The facts. Cores are those that we may use: affinity and a container's quota, rounded down, at least one.
        Available memory is what the system can give without swapping, or what a container's limit leaves, whichever is
        less. A system without `/proc` (macOS) tells no available memory; half of what is built in is taken for it.
    """
    total_bytes, available_bytes = _memory(root)
    return Machine(
        cores=_cores(root),
        memory_total_bytes=total_bytes,
        memory_available_bytes=available_bytes,
        disk_free_bytes=_disk_free(folder),
        system=platform.system(),
        architecture=platform.machine(),
    )


def _cores(root: Path) -> int:
    allowed = _field(root / "proc/self/status", "Cpus_allowed_list")
    cores = _count(allowed) if allowed else os.cpu_count() or 1
    quotas = [quota for folder in _groups(root, "cpu") if (quota := _quota(folder)) is not None]
    return max(1, min([cores, *(int(quota) for quota in quotas)]))


def _count(ranges: str) -> int:
    """How many processors a list such as `0-3,8` names."""
    total = 0
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1
    return total


def _quota(group: Path) -> float | None:
    """Cores that a control group may use (2.5), None for no limit. Version 2 writes `cpu.max`, version 1 two files."""
    match _text(group / "cpu.max").split():
        case [quota, period] if quota.isdigit() and int(period):
            return int(quota) / int(period)
    quota, period = _text(group / "cpu.cfs_quota_us"), _text(group / "cpu.cfs_period_us")
    return int(quota) / int(period) if quota.isdigit() and int(period or 0) else None


def _memory(root: Path) -> tuple[int, int]:
    """Bytes in all, and bytes that we may still take."""
    total_bytes = _kib(root / "proc/meminfo", "MemTotal")
    if not total_bytes:
        total_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return total_bytes, total_bytes // 2
    available_bytes = _kib(root / "proc/meminfo", "MemAvailable") or _kib(root / "proc/meminfo", "MemFree")
    for group in _groups(root, "memory"):
        if (limit_bytes := _limit(group)) is not None:
            total_bytes = min(total_bytes, limit_bytes)
            available_bytes = min(available_bytes, max(limit_bytes - _taken(group), 0))
    return total_bytes, available_bytes


def _limit(group: Path) -> int | None:
    """Bytes that a control group may take; None for no limit (version 1 writes a number close to 2**63)."""
    text = _text(group / "memory.max") or _text(group / "memory.limit_in_bytes")
    return int(text) if text.isdigit() and int(text) < 1 << 60 else None


def _taken(group: Path) -> int:
    """Bytes that a control group holds and would not give up for the asking: file cache out of use is left out."""
    text = _text(group / "memory.current") or _text(group / "memory.usage_in_bytes")
    cache = _field(group / "memory.stat", "total_inactive_file") or _field(group / "memory.stat", "inactive_file")
    return max(int(text or 0) - int(cache or 0), 0)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The folders of our control group and of all above it, for version 2 and for version 1's `controller`."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            mounts = (root / "sys/fs/cgroup", root / "sys/fs/cgroup/unified")
        elif controller in controllers.split(","):
            mounts = (root / "sys/fs/cgroup" / controllers, root / "sys/fs/cgroup" / controller)
        else:
            continue
        # In a container the path is often that of the host, which is not mounted: the mount itself is then our group.
        inside = Path(path.lstrip("/"))
        for mount in mounts:
            yield from (mount / folder for folder in (inside, *inside.parents))


def _disk_free(folder: Path) -> int:
    nearest = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    return shutil.disk_usage(nearest).free


def _kib(path: Path, name: str) -> int:
    words = _field(path, name).split()
    return int(words[0]) * _KIB if words else 0


def _field(path: Path, name: str) -> str:
    """The value of `name: value` or `name value` in a file of such lines; empty if it is not there."""
    for line in _text(path).splitlines():
        key, _, value = line.partition(":") if ":" in line else line.partition(" ")
        if key == name:
            return value.strip()
    return ""


def _text(path: Path) -> str:
    """What a file says; nothing if there is none, or we may not ask."""
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
