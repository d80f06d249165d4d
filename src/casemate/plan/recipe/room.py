"""Judgements on memory and batches: what is left for the cache, what a step may hold, what goes to the host."""

from __future__ import annotations

from collections.abc import Iterator

from casemate.finding import Severity
from casemate.plan.recipe.problem import Kind, Problem
from casemate.plan.recipe.situation import Situation

_CACHE = "vllm 0.33.0 wheel, vllm/config/cache.py"
_SCHEDULER = "vllm 0.33.0 wheel, vllm/config/scheduler.py"
_OLD_RULE = "vllm 0.6.3 wheel, vllm/engine/arg_utils.py and vllm/config.py"
_LARGEST_DEFAULT = 1024
_LEAST_PERCENT = 10
"""A number from here on up to 100 was meant as a percentage; 1.2 was not."""
_ALWAYS_CHUNKED = (0, 8)
"""From here on (the V1 engine) prefill is cut into chunks unless it is said not to."""
_AUTOMATIC_ABOVE = 32_768
"""Before that, only contexts longer than this were cut by themselves."""


def room(situation: Situation) -> Iterator[Problem]:
    """Everything about memory and batches."""
    yield from _utilization(situation)
    yield from _context(situation)
    yield from _batch(situation)
    yield from _sequences(situation)
    yield from _swap(situation)


def _utilization(situation: Situation) -> Iterator[Problem]:
    share = situation.number("gpu-memory-utilization")
    name = "gpu-memory-utilization"
    if share is not None and not 0 < share <= 1:
        says = "It is a share of the card's memory, above 0 and at most 1."
        percent = _LEAST_PERCENT <= share <= 100
        says += "" if percent else " Which share is meant cannot be told, so the default counts."
        mend = (f"--{name}", f"{share / 100:g}") if percent else ()
        yield from situation.told(name, Problem(Kind.INVALID, Severity.HIGH, says, _CACHE, mend))
    elif share is not None and share > 0.98:
        says = (
            "The driver's context and CUDA graphs need memory outside this share; above 0.98 capturing runs out of it."
        )
        source = "https://github.com/vllm-project/vllm/issues/45178"
        yield from situation.told(name, Problem(Kind.HARMFUL, Severity.MEDIUM, says, source, (f"--{name}", "0.95")))


def _context(situation: Situation) -> Iterator[Problem]:
    length, checkpoint = situation.number("max-model-len"), situation.checkpoint
    if length and checkpoint and checkpoint.context_length and length > checkpoint.context_length:
        says = f"The model has positions for {checkpoint.context_length:,} tokens; the engine refuses a longer context."
        mend = ("--max-model-len", str(checkpoint.context_length))
        source = "vllm 0.33.0 wheel, vllm/config/model.py"
        yield from situation.told("max-model-len", Problem(Kind.REFUSED, Severity.HIGH, says, source, mend))


def _batch(situation: Situation) -> Iterator[Problem]:
    """A step smaller than the context needs prefill in chunks."""
    tokens, length = situation.number("max-num-batched-tokens"), situation.number("max-model-len")
    chunked = situation.on("enable-chunked-prefill")
    if not tokens or not length or tokens >= length or chunked:
        return
    name = "max-num-batched-tokens"
    if situation.version and situation.version < _ALWAYS_CHUNKED and chunked is None and length <= _AUTOMATIC_ABOVE:
        says = (
            f"{situation.table.version} cuts prefill into chunks by itself only above {_AUTOMATIC_ABOVE:,} tokens of "
            f"context; here it does not, and refuses a step ({tokens:,.0f}) below the context ({length:,.0f})."
        )
        switch = situation.table.get("enable-chunked-prefill")
        mend = ("--max-num-batched-tokens", f"{tokens:.0f}", *(("--enable-chunked-prefill",) if switch else ()))
        yield from situation.told(name, Problem(Kind.REFUSED, Severity.HIGH, says, _OLD_RULE, mend))
    elif chunked is False:
        says = (
            f"Without chunked prefill a step must hold the whole context; {tokens:,.0f} is below {length:,.0f}: "
            "refused."
        )
        yield from situation.told(
            "enable-chunked-prefill", Problem(Kind.CONTRADICTORY, Severity.HIGH, says, _SCHEDULER)
        )


def _sequences(situation: Situation) -> Iterator[Problem]:
    sequences, tokens = situation.number("max-num-seqs"), situation.number("max-num-batched-tokens")
    if not sequences:
        return
    if tokens and sequences > tokens:
        says = f"A step of {tokens:,.0f} tokens cannot hold {sequences:,.0f} sequences; the engine refuses."
        mend = ("--max-num-seqs", f"{tokens:.0f}")
        yield from situation.told("max-num-seqs", Problem(Kind.CONTRADICTORY, Severity.HIGH, says, _SCHEDULER, mend))
    elif sequences > _LARGEST_DEFAULT:
        says = (
            f"It is above any version's default ({_LARGEST_DEFAULT}); each sequence takes buffers and graph sizes, and "
            "requests that find no cache are preempted and computed again."
        )
        yield from situation.told("max-num-seqs", Problem(Kind.HARMFUL, Severity.LOW, says, _SCHEDULER))


def _swap(situation: Situation) -> Iterator[Problem]:
    if situation.number("swap-space") and situation.version >= (0, 11):
        says = "The V1 engine does not swap; the option is taken and nothing happens."
        source = "vllm 0.16.0 wheel, vllm/engine/arg_utils.py"
        yield from situation.told("swap-space", Problem(Kind.NEEDLESS, Severity.LOW, says, source))
