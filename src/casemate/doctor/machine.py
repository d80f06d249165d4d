"""Facts of a host, as values. Who measured them is `doctor.probe`; what they mean is `doctor.checks`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Machine:
    """A host as measured. Bytes are bytes; `memory_available_bytes` honours a container's limit."""

    cores: int
    memory_total_bytes: int
    memory_available_bytes: int
    disk_free_bytes: int
    system: str
    architecture: str
