"""What to run: Machine, Checkpoint and Intent become a Plan, or a Refusal that names every reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from casemate.checkpoint.facts import Checkpoint
from casemate.doctor.machine import Machine

GIB = 1 << 30
LEAST_CONTEXT = 512
"""Tokens; below this no question with its passages fits."""
HEADROOM_BYTES = GIB // 2
"""Kept free for the gateway, the graph and the system."""
_BUFFERS_BYTES = 256 << 20
"""What llama.cpp takes beside weights and cache: compute buffers, vocabulary, prompt cache, the process itself."""
_REPACKED_SHARE = 0.6
"""llama.cpp keeps a second copy of the weights that it can reorder for the CPU, at most this share of them.

Both figures: measured 2026-11-30, docs/decisions/0003-step-down.md.
"""


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


def plan(machine: Machine, checkpoint: Checkpoint, *, intent: Intent) -> Plan | Refusal:
    """Decide how to run a GGUF checkpoint on the CPU.

    Args:
        machine: measured facts.
        checkpoint: the model file's facts.
        intent: what is wanted.

    Returns:
        The Plan, or a Refusal that lists every reason.
    """
    context = min(intent.context, checkpoint.context_length)
    tokens = max(context, 0) * max(intent.concurrency, 0)
    need_bytes = memory_bytes(checkpoint.weights_bytes, cache_bytes=tokens * checkpoint.kv_bytes_per_token)
    obstacles = tuple(_obstacles(machine, checkpoint, intent=intent, need_bytes=need_bytes))
    if obstacles:
        reasons, remedies = zip(*obstacles, strict=True)
        return Refusal(model=checkpoint.name, reasons=reasons, remedy="; ".join(dict.fromkeys(remedies)))
    threads = intent.threads or machine.cores
    return Plan(
        engine="llamacpp",
        model=checkpoint.name,
        path=checkpoint.path,
        context=context,
        slots=intent.concurrency,
        threads=threads,
        memory_bytes=need_bytes,
        reasons=tuple(_explained(machine, checkpoint, intent=intent, need_bytes=need_bytes)),
    )


def memory_bytes(weights_bytes: int, *, cache_bytes: int) -> int:
    """What a GGUF model takes on the CPU at most: weights, their reordered copy, cache of all slots, buffers."""
    return weights_bytes + int(weights_bytes * _REPACKED_SHARE) + cache_bytes + _BUFFERS_BYTES


def spare_bytes(machine: Machine) -> int:
    """Memory that a model may take on this machine."""
    return max(machine.memory_available_bytes - HEADROOM_BYTES, 0)


def _obstacles(
    machine: Machine, checkpoint: Checkpoint, *, intent: Intent, need_bytes: int
) -> Iterator[tuple[str, str]]:
    """Each reason why not, with its remedy."""
    if intent.context < LEAST_CONTEXT:
        yield (
            f"a context of {intent.context} tokens is below the {LEAST_CONTEXT} that a question needs",
            "ask for more context",
        )
    if checkpoint.context_length < LEAST_CONTEXT:
        yield (
            f"trained for {checkpoint.context_length} tokens, at least {LEAST_CONTEXT} are needed",
            "take another model",
        )
    if intent.concurrency < 1:
        yield f"{intent.concurrency} requests at once are none", "ask for at least one slot"
    if intent.threads < 0:
        yield f"{intent.threads} threads cannot be had", "ask for 0 threads to take every core"
    if need_bytes > (free_bytes := spare_bytes(machine)):
        yield (
            f"needs {need_bytes / GIB:.2f} GiB of memory, {free_bytes / GIB:.2f} GiB are free",
            "free memory, ask for less context or fewer slots, or take a smaller model",
        )


def _explained(
    machine: Machine, checkpoint: Checkpoint, *, intent: Intent, need_bytes: int
) -> Iterator[tuple[str, str]]:
    """Each value of the Plan by its field name, with the reason for it."""
    context = min(intent.context, checkpoint.context_length)
    cache_bytes = context * intent.concurrency * checkpoint.kv_bytes_per_token
    yield "context", f"{context} tokens: wanted {intent.context}, trained for {checkpoint.context_length}"
    yield "slots", f"{intent.concurrency} requests at once, {cache_bytes / GIB:.2f} GiB of cache"
    yield (
        "threads",
        (
            f"{intent.threads}: as asked, {machine.cores} cores are ours"
            if intent.threads
            else f"{machine.cores}: every core that we may use"
        ),
    )
    yield (
        "memory_bytes",
        (
            f"{need_bytes / GIB:.2f} GiB at most: {checkpoint.weights_bytes / GIB:.2f} of weights and up to"
            f" {_REPACKED_SHARE:.0%} of them again in the CPU's own order, {cache_bytes / GIB:.2f} of cache,"
            f" {_BUFFERS_BYTES / GIB:.2f} of buffers; {spare_bytes(machine) / GIB:.2f} GiB are free"
        ),
    )
