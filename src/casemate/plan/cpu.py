"""How to run a GGUF file on the CPU: Machine, Gguf and Intent become a CpuPlan, or a Refusal with every reason."""

from __future__ import annotations

from collections.abc import Iterator

from casemate.checkpoint.facts import Gguf
from casemate.doctor.machine import Machine
from casemate.plan.decision import GIB, CpuPlan, Intent, Refusal

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


def plan(machine: Machine, checkpoint: Gguf, *, intent: Intent) -> CpuPlan | Refusal:
    """Decide how to run a GGUF checkpoint on the CPU.

    Args:
        machine: measured facts.
        checkpoint: the model file's facts.
        intent: what is wanted.

    Returns:
        The CpuPlan, or a Refusal that lists every reason.
    """
    context = min(intent.context, checkpoint.context_length)
    tokens = max(context, 0) * max(intent.concurrency, 0)
    need_bytes = memory_bytes(checkpoint.weights_bytes, cache_bytes=tokens * checkpoint.kv_bytes_per_token)
    obstacles = tuple(_obstacles(machine, checkpoint, intent=intent, need_bytes=need_bytes))
    if obstacles:
        reasons, remedies = zip(*obstacles, strict=True)
        return Refusal(model=checkpoint.name, reasons=reasons, remedy="; ".join(dict.fromkeys(remedies)))
    threads = intent.threads or machine.cores
    return CpuPlan(
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


def _obstacles(machine: Machine, checkpoint: Gguf, *, intent: Intent, need_bytes: int) -> Iterator[tuple[str, str]]:
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


def _explained(machine: Machine, checkpoint: Gguf, *, intent: Intent, need_bytes: int) -> Iterator[tuple[str, str]]:
    """Each value of the CpuPlan by its field name, with the reason for it."""
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
