"""What an engine comes to over a window: means, rates and shares. Pure.

Rates come from differences of counters. A counter that is less than before has started anew with its process: it then
counts from zero, and the restart is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from casemate.doctor.watch.sample import EngineSample, Sample

_COUNTERS = ("prompt_tokens", "generation_tokens", "iterations", "preemptions", "finished", "prefix_queries")
"""Whoever of these moves, the engine lives."""
_TOKENS = ("prompt_tokens", "generation_tokens")


@dataclass(frozen=True, slots=True)
class EngineFigures:
    """An engine over a window, from the first request in it on. None: not told, or nothing to divide by.

    Attributes:
        loaded: share of all answers in which requests ran or waited.
        engaged: the same, from the first such answer on: a load that began in the midst has no gaps, a light one has.
        running_at_top: share of the answers with as many running as ever in the window.
        waited: share of the answers in which requests waited for room.
        computed_per_s: prompt tokens that no cache held.
        large_steps: share of the tokens that came in steps large enough to be bound by arithmetic.
        serving_cores: processor time of the process that serves HTTP.
        still_s: for how long requests have been there and nothing moved, up to the window's end.
        stalled: share of the loaded time in which nothing moved.
        longest_still_s: the longest of such spells.
        restarts: how often counters began anew.
        uneven_engines: of several engines behind the address, what a perfect spread would gain: 1 - mean / most.
    """

    kind: str = ""
    loaded: float | None = None
    engaged: float | None = None
    running: float | None = None
    running_most: float | None = None
    running_at_top: float | None = None
    waiting: float | None = None
    waited: float | None = None
    deferred: float | None = None
    kv_usage: float | None = None
    kv_usage_most: float | None = None
    prompt_per_s: float | None = None
    computed_per_s: float | None = None
    generated_per_s: float | None = None
    preemptions_per_s: float | None = None
    prefix_hits: float | None = None
    acceptance: float | None = None
    steps_per_s: float | None = None
    tokens_per_step: float | None = None
    large_steps: float | None = None
    queue_s: float | None = None
    first_token_s: float | None = None
    between_tokens_s: float | None = None
    flops_per_s: float | None = None
    memory_bytes_per_s: float | None = None
    serving_cores: float | None = None
    still_s: float = 0.0
    longest_still_s: float = 0.0
    stalled: float = 0.0
    restarts: int = 0
    uneven_engines: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """From one answer to the next: how long, whether requests were there throughout, whether anything moved."""

    begin: Sample
    end: Sample
    one: EngineSample
    other: EngineSample
    moved: bool

    @property
    def time_s(self) -> float:
        """How long it took."""
        return self.end.time_s - self.begin.time_s

    @property
    def loaded(self) -> bool:
        """Whether requests were there at both ends."""
        return load(self.one) > 0 and load(self.other) > 0

    @property
    def still(self) -> bool:
        """Whether requests were there and nothing moved."""
        return self.loaded and not self.moved


def load(engine: EngineSample) -> float:
    """Requests that are there, running or not."""
    return (engine.running or 0.0) + (engine.waiting or 0.0)


def steps(window: Sequence[Sample]) -> list[Step]:
    """Every step between answers that follow each other."""
    answered = [(sample, sample.engine) for sample in window if sample.engine]
    return [
        Step(begin, end, one, other, _moved(one, other))
        for (begin, one), (end, other) in pairwise(answered)
        if end.time_s > begin.time_s
    ]


def _moved(one: EngineSample, other: EngineSample) -> bool:
    """Whether the engine did anything; an engine that does not count its tokens is not accused of standing still."""
    if all(getattr(other, name) is None for name in _TOKENS):
        return True
    return one.kv_usage != other.kv_usage or any(getattr(one, name) != getattr(other, name) for name in _COUNTERS)


def engine(window: Sequence[Sample], between: Sequence[Step]) -> EngineFigures:
    """The engine over a window and the steps in it."""
    everything = [sample.engine for sample in window if sample.engine]
    if not everything:
        return EngineFigures()
    told = everything[next((place for place, one in enumerate(everything) if load(one) > 0), 0) :]
    running = [one.running for one in told if one.running is not None]
    waits = [_room(one) for one in told if one.waiting is not None]
    kv = [one.kv_usage for one in told if one.kv_usage is not None]
    rate = _Rates(_from_first(between))
    prompt, hits = rate.of("prompt_tokens"), rate.of("prefix_hits")
    small = rate.ratio("small_step_tokens", "iteration_tokens")
    return EngineFigures(
        kind=told[-1].kind,
        loaded=_mean(float(load(one) > 0) for one in everything if one.running is not None),
        engaged=_mean(float(load(one) > 0) for one in told if one.running is not None),
        running=_mean(running),
        running_most=max(running, default=None),
        running_at_top=_mean(float(one >= max(running)) for one in running),
        waiting=_mean(one.waiting for one in told if one.waiting is not None),
        waited=_mean(float(one > 0) for one in waits),
        deferred=_mean(one.waiting_deferred for one in told if one.waiting_deferred is not None),
        kv_usage=_mean(kv),
        kv_usage_most=max(kv, default=None),
        prompt_per_s=prompt,
        computed_per_s=None if prompt is None else max(0.0, prompt - (hits or 0.0)),
        generated_per_s=rate.of("generation_tokens"),
        preemptions_per_s=rate.of("preemptions"),
        prefix_hits=_share(rate.ratio("prefix_hits", "prefix_queries")),
        acceptance=_share(rate.ratio("accepted_tokens", "draft_tokens")),
        steps_per_s=rate.of("iterations"),
        tokens_per_step=rate.ratio("iteration_tokens", "iterations"),
        large_steps=None if small is None else max(0.0, 1 - small),
        queue_s=rate.ratio("queue_s", "queued"),
        first_token_s=rate.ratio("first_token_s", "first_tokens"),
        between_tokens_s=rate.ratio("between_tokens_s", "between_tokens"),
        flops_per_s=rate.of("flops") or None,  # a counter of zero belongs to an engine that does not estimate
        memory_bytes_per_s=rate.of("memory_bytes") or None,
        serving_cores=rate.of("cpu_s"),
        still_s=_still(window, between),
        longest_still_s=_longest(between),
        stalled=_stalled(between),
        restarts=sum(_restarted(step.one, step.other) for step in between),
        uneven_engines=_uneven(told),
    )


def _share(ratio: float | None) -> float | None:
    """A share, or not told: a part larger than its whole is a mistake of who counts, and says nothing."""
    return ratio if ratio is not None and 0 <= ratio <= 1 else None


def _from_first(between: Sequence[Step]) -> Sequence[Step]:
    """Without the time before the first request, which would thin every rate; all of it where none came."""
    first = next((place for place, step in enumerate(between) if load(step.other) > 0), 0)
    return between[first:]


def _room(engine: EngineSample) -> float:
    """How many wait for room, and not for something else."""
    return (engine.waiting or 0.0) - (engine.waiting_deferred or 0.0)


class _Rates:
    """Growth of counters over the steps in which both ends told them."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps

    def of(self, name: str) -> float | None:
        """A second."""
        grown, time_s = self._grown(name)
        return grown / time_s if time_s else None

    def ratio(self, over: str, under: str) -> float | None:
        """Of the growth of two counters."""
        above, time_s = self._grown(over)
        below, _ = self._grown(under)
        return above / below if time_s and below else None

    def _grown(self, name: str) -> tuple[float, float]:
        grown = time_s = 0.0
        for step in self._steps:
            one, other = getattr(step.one, name), getattr(step.other, name)
            if one is None or other is None:
                continue
            anew = other < one or _restarted(step.one, step.other)
            grown += other if anew else other - one
            time_s += step.time_s
        return grown, time_s


def _restarted(one: EngineSample, other: EngineSample) -> bool:
    if one.started_s is not None and other.started_s is not None and other.started_s > one.started_s:
        return True
    pairs = [(getattr(one, name), getattr(other, name)) for name in _TOKENS]
    return any(before is not None and after is not None and after < before for before, after in pairs)


def _still(window: Sequence[Sample], steps: Sequence[Step]) -> float:
    """Seconds up to the last answer; whoever answers no more is not still but silent."""
    since = None
    for step in reversed(steps):
        if not step.still:
            break
        since = step.begin.time_s
    last = next((sample.time_s for sample in reversed(window) if sample.engine), 0.0)
    return 0.0 if since is None else last - since


def _longest(steps: Iterable[Step]) -> float:
    longest = now = 0.0
    for step in steps:
        now = now + step.time_s if step.still else 0.0
        longest = max(longest, now)
    return longest


def _stalled(steps: Iterable[Step]) -> float:
    loaded = still = 0.0
    for step in steps:
        loaded += step.time_s * step.loaded
        still += step.time_s * step.still
    return still / loaded if loaded else 0.0


def _uneven(told: Sequence[EngineSample]) -> float | None:
    """From means over the window: what comes and goes evens out, what stays is uneven."""
    sums: dict[str, float] = {}
    for engine in told:
        for name, running in engine.running_by_engine:
            sums[name] = sums.get(name, 0.0) + running
    most = max(sums.values(), default=0.0)
    return 1 - sum(sums.values()) / len(sums) / most if most and len(sums) > 1 else None


def _mean(values: Iterable[float]) -> float | None:
    held = list(values)
    return sum(held) / len(held) if held else None
