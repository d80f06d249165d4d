"""What the usual tools print about a host, found wherever it stands in a text. Pure: a text in, facts out.

The tools: `lscpu`, `free`, `df`, `ls -l /dev`, `ulimit -a`, `env`, `nvcc --version`, `pip list`, and torch's
`collect_env`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from casemate.doctor import nvidia_smi, packages
from casemate.doctor.machine import Card, Package

_GIB: Final = 1 << 30
_SIZES: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50, "": 1 << 10}
_SMALLEST_FREE_IN_MIB: Final = 16 << 10
_SMALLEST_FREE_IN_KIB: Final = 4 << 20

Facts = dict[str, Any]


def host(text: str) -> Facts:
    """Fields of Machine: cores, memory, free disk, system, architecture."""
    facts: Facts = _found(text, _HOST)
    if free := re.search(
        r"^Mem:[ \t]+(\d{1,15}(?:\.\d{1,3})?)([KMGTP]?)i?[ \t].*?[ \t](\d{1,15}(?:\.\d{1,3})?)([KMGTP]?)i?[ \t]*$",
        text,
        re.MULTILINE,
    ):
        total, available = _free(free[1], free[2]), _free(free[3], free[4])
        facts = {"memory_total_bytes": total, "memory_available_bytes": min(total, available)} | facts
    facts.setdefault("memory_available_bytes", facts.get("memory_total_bytes"))
    return {name: value for name, value in facts.items() if value is not None}


def around(text: str, names: Sequence[str]) -> Facts:
    """Fields of Surroundings. Of `env` only the named variables are taken."""
    facts = _found(text, _AROUND)
    if shared := _df(text, "/dev/shm"):  # noqa: S108 - its size is read, nothing is put there
        facts["shm_total_bytes"], facts["shm_free_bytes"] = shared
    nodes = re.findall(r"^c[rwx-]{9}.*\s(/dev/nvidia\S{0,200})$", text, re.MULTILINE)
    if nodes:
        facts["device_nodes"] = tuple(sorted(set(nodes)))
    variables = re.findall(r"^([A-Z][A-Z0-9_]*)=(.*)$", text, re.MULTILINE)
    kept = tuple(sorted((name, value[:4096]) for name, value in dict(variables).items() if name in names))
    return facts | ({"variables": kept} if kept else {})


def kernel_module(text: str) -> str:
    """The version in `/proc/driver/nvidia/version`."""
    found = re.search(r"^NVRM version:.*Kernel Module(?: for \S+)?\s+(\d{1,6}(?:\.\d{1,6}){1,4})", text, re.MULTILINE)
    return found[1] if found else ""


def installed(text: str) -> tuple[Package, ...]:
    """Packages of `pip list`, `pip freeze` and of collect_env, which knows torch's build."""
    bare = re.sub(r"^\[(?:pip3|conda)\]\s*", "", text, flags=re.MULTILINE)
    found = {package.name: package for package in packages.listed(bare)}
    if torch := re.search(r"^PyTorch version: (\S{1,80})$", text, re.MULTILINE):
        package = Package("torch", torch[1], packages.built_for(torch[1]))
        if built := re.search(r"^CUDA used to build PyTorch: (\d{1,4})\.(\d{1,4})$", text, re.MULTILINE):
            package = replace(package, cuda=(int(built[1]), int(built[2])))
        found["torch"] = replace(package, cuda_major=package.cuda[0] if package.cuda else None)
    return tuple(found.values())


def queried(text: str) -> tuple[Card, ...]:
    """Cards of a `nvidia-smi --query-gpu` with its heading, wherever it stands."""
    lines = text.splitlines()
    for place, line in enumerate(lines):
        if re.match(r"^[a-z_.]+(?: \[[^\]]*\])?(?:, [a-z_.]+(?: \[[^\]]*\])?)+$", line) and "name" in line:
            width = line.count(",")
            end = place + 1
            while end < len(lines) and lines[end].count(",") == width:
                end += 1
            return nvidia_smi.query("\n".join(lines[place:end]))
    return ()


def benchmarked(value: object) -> Facts:
    """Fields of Card in the JSON of a measurement with torch: `sm`, `sms`, `mem` (CUDA's total in bytes)."""
    if not isinstance(value, dict):
        return {}
    facts: Facts = {}
    capability = re.fullmatch(r"(\d{1,3})\.(\d{1,3})", str(value.get("sm", ""))[:20])
    if capability:
        facts["compute_capability"] = (int(capability[1]), int(capability[2]))
    for name, field in (("sms", "multiprocessors"), ("mem", "memory_cuda_bytes")):
        if isinstance(value.get(name), int) and not isinstance(value[name], bool) and 0 < value[name] < 1 << 60:
            facts[field] = value[name]
    return facts


def _found(text: str, patterns: Sequence[tuple[str, str, Callable[[str], Any]]]) -> Facts:
    facts: Facts = {}
    for name, pattern, read in patterns:
        match = re.search(pattern, text, re.MULTILINE)
        if match and name not in facts:
            facts[name] = read(match[1])
    return facts


def _free(number: str, unit: str) -> int:
    """Bytes in a cell of `free`. Without a unit its option decides, and the size tells which that was."""
    value = float(number)
    if unit:
        return int(value * _SIZES[unit])
    if value < _SMALLEST_FREE_IN_MIB:
        return int(value * _GIB)
    return int(value * (_SIZES["M"] if value < _SMALLEST_FREE_IN_KIB else _SIZES["K"]))


def _df(text: str, mount: str) -> tuple[int, int] | None:
    """Size and free bytes of a mounted file system in what `df` printed, with or without `-h`."""
    cell = r"(\d{1,15}(?:\.\d{1,3})?)([KMGTP]?)"
    match = re.search(rf"^\S+\s+{cell}\s+\S+\s+{cell}\s+\d+%\s+{re.escape(mount)}$", text, re.MULTILINE)
    return (_sized(match[1], match[2]), _sized(match[3], match[4])) if match else None


def _sized(number: str, unit: str) -> int:
    return int(float(number) * _SIZES[unit])


def _disk(line: str) -> int | None:
    found = _df(line, "/")
    return found[1] if found else None


def _kib(number: str) -> int:
    return int(number) << 10


def _limit(word: str) -> int | None:
    return int(word) if word.isdigit() else None


_HOST: Final = (
    ("cores", r"^\s*CPU\(s\):\s+(\d{1,5})$", int),
    ("memory_total_bytes", r"^MemTotal:\s+(\d{1,15}) kB$", _kib),
    ("memory_available_bytes", r"^MemAvailable:\s+(\d{1,15}) kB$", _kib),
    ("disk_free_bytes", r"^(\S+\s+\S+\s+\S+\s+\S+\s+\d+%\s+/)$", _disk),
    ("architecture", r"^Architecture:\s+(\S{1,40})$", str),
    ("system", r"^Python platform: ([A-Za-z]{1,40})-", str),
)
_AROUND: Final = (
    ("glibc", r"^Libc version: glibc-(\S{1,40})$", str),
    ("python", r"^Python version: (\d+\.\d+\.\d+)", str),
    ("kernel", r"^Python platform: Linux-(.{1,120}?)-(?:x86_64|aarch64)-with", str),
    ("nvcc", r"release \d+\.\d+, V(\d{1,6}(?:\.\d{1,6}){1,4})", str),
    ("nvcc", r"^CUDA runtime version: (\d+\.\d+\.\d+)$", str),
    ("cuda_home", r"^CUDA_HOME=(/\S{0,1000})$", str),
    ("memlock_bytes", r"^max locked memory\s.*\(kbytes, -l\)\s+(\d{1,15})$", _kib),
    ("memlock_bytes", r"^Max locked memory\s+(\d{1,15}|unlimited)\s", _limit),
    ("open_files", r"^open files\s.*\(-n\)\s+(\d{1,15}|unlimited)$", _limit),
    ("open_files", r"^Max open files\s+(\d{1,15}|unlimited)\s", _limit),
)
