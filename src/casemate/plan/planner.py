"""What to run: Machine, Checkpoint and Intent become a Plan, or a Refusal that names every reason."""

from __future__ import annotations

from dataclasses import dataclass, field

from casemate.checkpoint.facts import Checkpoint
from casemate.doctor.machine import Machine

GIB = 1 << 30
_HEADROOM_BYTES = GIB // 2
"""Kept free for the gateway, the graph and the system."""
_COMPUTE_BYTES = 400 << 20
"""llama.cpp's compute and output buffers at a batch of 512; measured 2026-11-30, see docs/decisions/0003."""


@dataclass(frozen=True, slots=True)
class Intent:
    """What the user wants: context in tokens per request, requests at once, threads (0: all cores)."""

    context: int = 4096
    concurrency: int = 2
    threads: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """A launch decision. `reasons` explains each value by its own field name."""

    engine: str
    model: str
    path: str
    context: int
    slots: int
    threads: int
    memory_bytes: int
    reasons: tuple[tuple[str, str], ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why it cannot run here, every reason, and what would make it fit."""

    model: str
    reasons: tuple[str, ...]
    remedy: str


def plan(machine: Machine, checkpoint: Checkpoint, intent: Intent) -> Plan | Refusal:
    """Decide how to run a GGUF checkpoint on the CPU.

    Args:
        machine: measured facts.
        checkpoint: the model file's facts.
        intent: what is wanted.

    Returns:
        The Plan, or a Refusal that lists every reason.
    """
    context = min(intent.context, checkpoint.context_length)
    slots = intent.concurrency
    cache_bytes = context * slots * checkpoint.kv_bytes_per_token
    need_bytes = checkpoint.weights_bytes + cache_bytes + _COMPUTE_BYTES
    spare_bytes = machine.memory_available_bytes - _HEADROOM_BYTES
    if need_bytes > spare_bytes:
        return Refusal(
            model=checkpoint.name,
            reasons=(f"needs {need_bytes / GIB:.2f} GiB of memory, {max(spare_bytes, 0) / GIB:.2f} GiB are free",),
            remedy="free memory, ask for less context, or take a smaller model",
        )
    threads = intent.threads or machine.cores
    return Plan(
        engine="llamacpp",
        model=checkpoint.name,
        path=checkpoint.path,
        context=context,
        slots=slots,
        threads=threads,
        memory_bytes=need_bytes,
        reasons=(
            ("context", f"{context} tokens: wanted {intent.context}, trained for {checkpoint.context_length}"),
            ("slots", f"{slots} requests at once, {cache_bytes / GIB:.2f} GiB of cache"),
            ("threads", f"{threads}: " + ("as asked" if intent.threads else "every core that we may use")),
        ),
    )
