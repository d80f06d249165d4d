"""Which model to run: the first of several that fits and can be had, with a note for each step down. Pure.

The roof turns it into a loop: choose, fetch; if the fetch fails, `without_source` and choose again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from casemate.doctor.machine import Machine
from casemate.plan.cpu import memory_bytes, spare_bytes
from casemate.plan.decision import GIB, Intent


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model that could run.

    `fetch_bytes` is the disk space still needed to have it (0: it is there), `weights_bytes` its file's size,
    `kv_bytes_per_token` its cache for one token. `unreachable` says why no source gave it; empty while none was asked.
    """

    name: str
    fetch_bytes: int
    weights_bytes: int
    kv_bytes_per_token: int
    unreachable: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """What to run, None for rules only; `notes` has one line for each step down, in order, and none without a step."""

    candidate: Candidate | None
    notes: tuple[str, ...] = ()


def choose(machine: Machine, candidates: tuple[Candidate, ...], *, intent: Intent) -> Choice:
    """Take the first candidate that fits this machine.

    Args:
        machine: measured facts.
        candidates: from the best down.
        intent: what is wanted of the model.

    Returns:
        The choice, with every reason why a better one was passed over.
    """
    notes: list[str] = []
    for index, candidate in enumerate(candidates):
        reasons = tuple(_against(machine, candidate, intent=intent))
        if not reasons:
            return Choice(candidate, tuple(notes))
        below = candidates[index + 1].name if index + 1 < len(candidates) else "rules only"
        notes.append(f"{candidate.name} → {below}: " + ", and ".join(reasons))
    return Choice(None, tuple(notes))


def without_source(candidates: tuple[Candidate, ...], name: str, *, why: str) -> tuple[Candidate, ...]:
    """The candidates after a fetch of `name` failed: the same, with that one marked unreachable."""
    return tuple(
        replace(candidate, unreachable=why) if candidate.name == name else candidate for candidate in candidates
    )


def _against(machine: Machine, candidate: Candidate, *, intent: Intent) -> Iterator[str]:
    cache_bytes = intent.context * intent.concurrency * candidate.kv_bytes_per_token
    need_bytes, free_bytes = memory_bytes(candidate.weights_bytes, cache_bytes=cache_bytes), spare_bytes(machine)
    if need_bytes > free_bytes:
        yield f"memory: needs {need_bytes / GIB:.2f} GiB, {free_bytes / GIB:.2f} GiB are free"
    if candidate.fetch_bytes > machine.disk_free_bytes:
        yield f"disk: needs {candidate.fetch_bytes / GIB:.2f} GiB, {machine.disk_free_bytes / GIB:.2f} GiB are free"
    if candidate.unreachable:
        yield f"source: {candidate.unreachable}"
