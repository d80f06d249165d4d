"""How fast a running engine was beside what is predicted, from the throughput lines of its log. Pure.

Such a line sums up ten seconds and tells only what ran at their end, so most lines prove nothing: a request may have
come or gone, kernels may have been compiled, the engine may have waited. Used are windows of which the neighbours show
that nothing changed, and only if several in a row agree:

    decoding   the same requests at both ends, none waiting, no prompt finished, tokens generated
    prompts    requests waiting at both ends, hardly a token generated, no prefix reused, many prompts in one window
"""

from __future__ import annotations

import bisect
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from casemate.checkpoint.facts import Checkpoint
from casemate.doctor.log.facts import EngineLog, Throughput
from casemate.plan.launch import Launch
from casemate.plan.memory import Budget
from casemate.plan.rates import Rates
from casemate.plan.roofline import Workload, speed

WINDOW_S = 10.0
"""How often vLLM prints its throughput (`VLLM_LOG_STATS_INTERVAL`, by default)."""
_AGREEING = 3
"""Windows in a row that have to agree."""
_APART = 1.1
_RUNS_APART = 1.5
_HARDLY = 0.02
_MANY_PROMPTS = 10
"""Prompts are counted when they are done: with so many in a window the ones at its ends weigh little."""
_NO_TIME_S = 1e-9
_MOST_STEPS = 64
_MOST_SAMPLES = 256
"""The latest; more tell nothing more."""
SLOWEST, FASTEST = 5.0, 0.2
"""A factor beyond these tells of something else than the pace of the cards."""


@dataclass(frozen=True, slots=True)
class Paced:
    """Factors on the predicted time of prompts and of tokens, None where the log does not tell; and why, in lines."""

    prefill: float | None
    decode: float | None
    notes: tuple[str, ...]


def paced(log: EngineLog, checkpoint: Checkpoint, *, launch: Launch, rates: Rates | None, found: Budget) -> Paced:
    """Compare the steady windows of a log with the prediction.

    Args:
        log: its samples.
        checkpoint: the model.
        launch: the values it was started with.
        rates: of the cards; None where they are not known.
        found: the memory of the launch as measured: a request's length is told from the share of the cache in use.
    """
    if not log.samples:
        return Paced(None, None, ("speed: not corrected, nothing ran while the log was written",))
    if rates is None or launch.speculation or launch.layout.data > 1:
        why = "what the cards can do is not known" if rates is None else "drafts or several engines hide single steps"
        return Paced(None, None, (f"speed: not corrected, {why}",))

    def decoding(sample: Throughput, length: int) -> float:
        middle = Workload(1, 2 * length, sample.running)  # in the middle of such an answer a request is that long
        predicted = speed(checkpoint, launch, rates=rates, workload=middle).tpot_s
        return sample.running / sample.generation_tokens_per_s / predicted

    def reading(sample: Throughput, length: int) -> float:
        tokens = max(length, launch.batched_tokens, 2)
        whole, one = (
            speed(checkpoint, launch, rates=rates, workload=Workload(many, 0, 1)).ttft_s for many in (tokens, 1)
        )  # their difference is without what a request costs once
        return (tokens - 1) / sample.prompt_tokens_per_s / max(whole - one, _NO_TIME_S)

    samples = tuple(sample for sample in log.samples if sample.running <= launch.sequences)[-_MOST_SAMPLES:]
    lengths = {sample: _length(sample, launch, found=found) for sample in samples}
    decode, why_decode = _factor(
        _runs(samples, _is_decoding, figure="generation_tokens_per_s"), lengths, ratio=decoding
    )
    many = {
        sample: length if length and _fills(sample, length, batched=launch.batched_tokens) else None
        for sample, length in lengths.items()
    }
    prefill, why_prefill = _factor(_runs(samples, _is_reading, figure="prompt_tokens_per_s"), many, ratio=reading)
    notes = (f"decoding: {why_decode}", f"prompts: {why_prefill}")
    return Paced(prefill, decode, notes)


def _fills(sample: Throughput, length: int, *, batched: int) -> bool:
    """Whether many prompts of that length were read in the window, and each in a number of steps that can be added."""
    many = sample.prompt_tokens_per_s * WINDOW_S >= _MANY_PROMPTS * length
    return many and length <= _MOST_STEPS * batched


def _is_decoding(before: Throughput, after: Throughput) -> bool:
    still = 0 < before.running == after.running and before.waiting == after.waiting == 0
    return still and after.prompt_tokens_per_s == 0 and after.generation_tokens_per_s > 0 and after.preemptions == 0


def _is_reading(before: Throughput, after: Throughput) -> bool:
    busy = before.waiting > 0 < after.waiting and after.running > 0 and after.preemptions == 0
    reads = after.prompt_tokens_per_s > 0 and after.generation_tokens_per_s <= _HARDLY * after.prompt_tokens_per_s
    return busy and reads and not after.prefix_hit_rate


def _runs(
    samples: tuple[Throughput, ...], steady: Callable[[Throughput, Throughput], bool], *, figure: str
) -> Iterator[tuple[Throughput, ...]]:
    """Windows in a row that are steady and agree."""
    run: list[Throughput] = []
    for before, after in pairwise(samples):
        goes_on = steady(before, after)
        if goes_on and run:
            rates = [getattr(sample, figure) for sample in (*run, after)]
            goes_on = max(rates) <= min(rates) * _APART and run[-1].running == after.running
        if not goes_on:
            yield tuple(run)
            run = []
        if steady(before, after):
            run.append(after)
    yield tuple(run)


def _factor(
    runs: Iterator[tuple[Throughput, ...]],
    lengths: dict[Throughput, int | None],
    *,
    ratio: Callable[[Throughput, int], float],
) -> tuple[float | None, str]:
    """The median over the runs that are long enough, and the reason for it or for none."""
    found, windows = [], 0
    for run in runs:
        told = [ratio(sample, length) for sample in run if (length := lengths[sample])]
        if len(told) >= _AGREEING:
            found.append(statistics.median(told))
            windows += len(told)
    if not found:
        return None, f"not corrected, no {_AGREEING} steady windows in a row"
    if max(found) > min(found) * _RUNS_APART:
        return None, f"not corrected, {len(found)} steady stretches disagree ({min(found):.2f} to {max(found):.2f})"
    factor = statistics.median(found)
    if not FASTEST <= factor <= SLOWEST:
        return None, f"not corrected, {factor:.2f} times the predicted time is not the cards' pace"
    return factor, f"{factor:.2f} times the predicted time, by {windows} steady windows"


def _length(sample: Throughput, launch: Launch, *, found: Budget) -> int | None:
    """Tokens of a running request, from the cache in use; None where the line does not tell it."""
    if not sample.kv_usage or not sample.running or found.kv_bytes <= 0:
        return None
    blocks = sample.kv_usage * (found.kv_bytes // found.pool.block_bytes) / sample.running
    lengths = range(1, launch.context + 1)
    return min(bisect.bisect_left(lengths, blocks, key=lambda tokens: found.pool.blocks(tokens, 0)) + 1, launch.context)
