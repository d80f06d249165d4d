"""Asks the world what this machine is. The answers are a `Machine`; nothing here judges them.

Files are read below one root, so that a recorded tree can be measured like the real one.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from casemate.doctor import driver as drivers
from casemate.doctor import nvidia_smi_run, packages, pci, surroundings
from casemate.doctor.driver import Answers
from casemate.doctor.machine import Driver, Machine, Surroundings
from casemate.doctor.toolkit import toolkit

Reasons = tuple[tuple[str, str], ...]
"""A fact's name, and why it is not known."""

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


def examine(
    folder: Path,
    *,
    root: Path = Path("/"),
    model_folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
    environment: Path | None = None,
) -> Machine:
    """Measure this host with its cards, their driver, and all that decides whether an engine starts on them.

    It needs no root, no torch, no nvidia-smi and no card, and it comes back in time from a driver that does not answer.

    Args:
        folder: see `measure`.
        root: where `proc`, `sys` and `dev` are; another one for a recorded tree, which holds no driver to be asked.
        model_folder: where the model lies or is to lie; only noted.
        variables: those of `surroundings.VARIABLES` that are set. Without PATH no program is found.
        environment: the virtual environment of the Python that runs the engine; else that of VIRTUAL_ENV or
            CONDA_PREFIX, before this Python's own packages.

    Returns:
        The facts. What could not be found out is None or empty, and why stands in `unknown`: `driver`, `cards`,
        `driver.nvml`, `driver.cuinit`, `nvidia-smi`, `packages.NAME.capabilities`, `surroundings.FIELD`.
    """
    variables = variables or {}
    answers = _ask(variables, root)
    module = surroundings.kernel_module(root)
    driver = answers.driver or (Driver(version=module) if module else None)
    found = packages.installed(_folders(variables, environment, root=root))
    around, refusals = _around(variables, answers, root=root)
    cards = tuple(
        replace(card, numa_node=pci.numa_node(card.bus, root) if card.bus else None) for card in answers.cards
    )
    return replace(
        measure(folder, root=root),
        cards=cards,
        pairs=answers.pairs,
        driver=drivers.of_kernel(driver, module) if driver else None,
        packages=found.packages,
        surroundings=around,
        model_folder=str(model_folder or ""),
        unknown=(*_reasons(answers, driver), *refusals, *found.unknown),
    )


def _ask(variables: Mapping[str, str], root: Path) -> Answers:
    """The libraries, and nvidia-smi where they tell of no card although there is something of a driver."""
    if root != Path("/"):
        return Answers(unknown=(("driver", "a recorded tree has no driver that could be asked"),))
    answers = drivers.ask(variables)
    if answers.cards or dict(answers.unknown).get("cards"):
        return answers  # among them a driver that hangs: nvidia-smi would wait with it
    more = nvidia_smi_run.ask(variables)
    return replace(
        answers,
        cards=more.cards,
        pairs=more.pairs,
        driver=_both(answers.driver, more.driver),
        unknown=tuple((dict(more.unknown) | dict(answers.unknown)).items()),
    )


def _both(asked: Driver | None, printed: Driver | None) -> Driver | None:
    if not asked or not printed:
        return asked or printed
    known = asked if asked.cuda else replace(asked, cuda=printed.cuda, cuda_from=printed.cuda_from)
    nvml = asked.nvml if asked.nvml is not None else printed.nvml or None
    return replace(known, version=asked.version or printed.version, nvml=nvml)


def _reasons(answers: Answers, found: Driver | None) -> tuple[tuple[str, str], ...]:
    """Why there is no driver or no card, in the words of whoever should have known."""
    told = dict(answers.unknown)
    why = told.get("driver.nvml") or told.get("driver.cuinit") or "the driver lists none"
    if not found:
        told.setdefault("driver", why)
    if not answers.cards:
        told.setdefault("cards", told.get("driver", why))
    return tuple(told.items())


def _around(variables: Mapping[str, str], answers: Answers, *, root: Path) -> tuple[Surroundings, Reasons]:
    around = surroundings.surroundings(variables, root=root)
    tools = toolkit(variables, root=root)
    denied = tuple(sorted({*around.device_nodes_denied, *(node for node, _ in answers.denied)}))
    refusals = [(f"surroundings.device_nodes_denied {node}", why) for node, why in answers.denied]
    if around.shm_total_bytes is None:
        refusals.append(("surroundings.shm_total_bytes", "there is no /dev/shm to measure"))
    whole = replace(
        around,
        device_nodes_denied=denied,
        nvcc=tools.nvcc,
        nvcc_path=tools.nvcc_path,
        cuda_home=tools.cuda_home,
        compilers=tools.compilers,
    )
    return whole, tuple(refusals)


def _folders(variables: Mapping[str, str], environment: Path | None, *, root: Path) -> Iterator[Path]:
    """Where the engine's Python looks for packages."""
    if environment:
        yield from packages.site_folders(environment)
        return
    if root != Path("/"):
        return
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if variables.get(name):
            yield from packages.site_folders(Path(variables[name]))
    yield from (Path(folder) for folder in sys.path if folder)


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
