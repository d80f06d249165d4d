"""What one start-up of an engine says of a plan's arithmetic: the log's facts become a Correction, or reasons why not.

Pure. The same launch is worked out as if it were planned, and held against what was printed. Weights, the peak of a
step and graphs give ratios; what is then left beside the cache is memory outside the allocator, so that the corrected
arithmetic gives this launch the cache that it had.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from casemate.checkpoint.facts import Checkpoint
from casemate.doctor.log.facts import EngineLog
from casemate.doctor.machine import Machine
from casemate.plan.accounting import Accounting, accounting
from casemate.plan.catalogue import Chip
from casemate.plan.correction import (
    NOTHING,
    Correction,
    Entry,
    Found,
    Host,
    Shape,
    host_of,
    matching,
    release_of,
    shape_of,
)
from casemate.plan.decision import GIB, Intent
from casemate.plan.fitting import place
from casemate.plan.launch import Launch
from casemate.plan.layout import Seats, seated
from casemate.plan.measured import Measured, impossible, launch_of, layout_of, measured, missing, unknown_to_the_plan
from casemate.plan.memory import Budget, budgets
from casemate.plan.overhead import activation_terms
from casemate.plan.pacing import FASTEST, SLOWEST, paced
from casemate.plan.rates import rates
from casemate.plan.roofline import Pace
from casemate.plan.weights import stage_bytes

_SAME_CARD = 0.03
_SAME_MODEL = 0.15
"""Loaded weights further off than this are another model's."""
_PEAK_LEAST, _PEAK_MOST = 0.2, 5.0
_GRAPHS_LEAST, _GRAPHS_MOST = 0.1, 10.0
BOUNDS = {
    "weights": (1 - _SAME_MODEL, 1 + _SAME_MODEL),
    **dict.fromkeys(("forward", "sampling", "pictures"), (_PEAK_LEAST, _PEAK_MOST)),
    **dict.fromkeys(("graphs", "graphs_estimate"), (_GRAPHS_LEAST, _GRAPHS_MOST)),
    **dict.fromkeys(("prefill", "decode"), (FASTEST, SLOWEST)),
}
"""Least and most of each factor of a correction that a start-up is believed."""
_OTHER_LEAST_BYTES = 64 << 20
_OTHER_SLACK_BYTES = GIB // 4
"""Where the peak was not printed: how far memory outside the allocator takes the difference, before the peak does."""
OTHER_MOST_SHARE = 0.1
"""Of a card, that memory outside the allocator is believed to take."""
_ROUNDING_BYTES = GIB // 10


@dataclass(frozen=True, slots=True)
class Row:
    """One part of a rank's memory in bytes: as planned, as printed (None: not printed), as planned after correction."""

    name: str
    predicted_bytes: int
    measured_bytes: int | None
    corrected_bytes: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a start-up corrects, ready to be stored, with each part before and after; `notes` say what it leaves."""

    entry: Entry
    rows: tuple[Row, ...]
    launch: Launch
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why a log corrects nothing: what it lacks, or why it is not of this machine and model."""

    reasons: tuple[str, ...]


def calibrated(
    log: EngineLog, checkpoint: Checkpoint, *, machine: Machine, date: str, chips: tuple[Chip, ...]
) -> Calibration | Unusable:
    """Hold a start-up against the plan's arithmetic.

    Args:
        log: the facts of its log.
        checkpoint: the model that it loaded.
        machine: that it ran on.
        date: day of the start-up, as 2026-11-30.
        chips: the known kinds of cards, for its speed.

    Raises:
        UsageError: the engine is older than any that can be planned for.
    """
    if reasons := tuple(missing(log)):
        return Unusable(reasons)
    engine, layout = accounting(log.engine_version), layout_of(log)
    seats = seated(machine, checkpoint, engine=engine)
    if reasons := tuple(_foreign(log, checkpoint, seats=seats)):
        return Unusable(reasons)
    where = place(layout, seats, intent=Intent())
    engine = where.rules(engine)
    launch, told = launch_of(log, checkpoint, where=where, engine=engine), measured(log, layout)

    def worked_out(correction: Correction) -> Budget:
        rules = replace(engine, correction=correction)
        card_bytes = seated(machine, checkpoint, engine=rules).smallest_bytes(layout.cards)
        return budgets(checkpoint, launch, card_bytes=card_bytes, engine=rules, multicast=where.multicast)[told.stage]

    cold = worked_out(NOTHING)
    share = _weights_factor(told, stage_bytes(checkpoint, launch, engine=engine))
    if abs(share - 1) > _SAME_MODEL:
        loaded = "/".join(f"{size / GIB:.2f}" for _, size in told.weights)
        return Unusable((f"{loaded} GiB of weights were loaded, this model comes to {cold.weights_bytes / GIB:.2f}",))
    first = replace(NOTHING, date=date, weights=share, card_bytes=told.card_bytes)
    bare = worked_out(first)
    beside = bare.kv_bytes + bare.activation_bytes + bare.graphs_bytes + bare.other_bytes - told.kv_bytes
    terms = activation_terms(checkpoint, launch, engine=engine)
    correction, other = _corrected(first, told, cold=cold, terms=terms, beside=beside)
    if wrong := _does_not_add_up(other, where.card_bytes):
        return Unusable((wrong,))
    other = max(other, 0)
    correction = replace(correction, ranks_bytes=other) if layout.tensor > 1 else replace(correction, alone_bytes=other)
    warm = worked_out(correction)
    cards = tuple(seat.card.index for seat in seats.seats[: layout.cards])
    speeds = paced(log, checkpoint, launch=launch, rates=rates(machine, cards, known=chips), found=warm)
    entry = Entry(
        host=_host(seats, machine),
        shape=shape_of(checkpoint),
        release=release_of(log.engine_version),
        correction=replace(correction, prefill=speeds.prefill, decode=speeds.decode),
        tensor=layout.tensor,
        pipeline=layout.pipeline,
        batched_tokens=launch.batched_tokens,
        context=launch.context,
    )
    notes = (*_left(told, launch, engine=engine), *speeds.notes)
    return Calibration(entry, tuple(_rows(cold, told, warm=warm)), launch, notes)


def find(entries: tuple[Entry, ...], machine: Machine, *, checkpoint: Checkpoint, version: str) -> Found:
    """The stored correction for a plan, `NOTHING` if there is none; and notes on what was measured nearby.

    Args:
        entries: all that is stored.
        machine: to plan for.
        checkpoint: the model.
        version: of the engine, such as `0.33.0`.
    """
    host, shape = key_of(machine, checkpoint, version=version)
    return matching(entries, host, shape=shape, version=version)


def key_of(machine: Machine, checkpoint: Checkpoint, *, version: str) -> tuple[Host, Shape]:
    """What a correction is stored under beside the release: the cards that this model may use, and the model."""
    seats = seated(machine, checkpoint, engine=accounting(version))
    return _host(seats, machine), shape_of(checkpoint)


def with_entry(entries: tuple[Entry, ...], entry: Entry) -> tuple[Entry, ...]:
    """The entries with this one in place of an older one for the same; what only the older start-up measured stays."""
    older = [old for old in entries if _is_same(old, entry)]
    merged = replace(entry, correction=entry.correction.after(older[-1].correction)) if older else entry
    return (*(old for old in entries if old not in older), merged)


def pace_of(correction: Correction) -> Pace:
    """A correction of speed for `roofline.speed`. Its narrower band is claimed only if both factors were measured."""
    both = correction.prefill is not None and correction.decode is not None
    return Pace(correction.prefill or 1.0, correction.decode or 1.0, f"a log of {correction.date}" if both else "")


def _foreign(log: EngineLog, checkpoint: Checkpoint, *, seats: Seats) -> Iterator[str]:
    """Why the log is not of this model on this machine, or not of what a plan can work out."""
    layout = layout_of(log)
    if not seats.seats:
        yield "this machine has no card for this model" + "".join(f"; {why}" for why in seats.left_out)
    elif layout.cards > len(seats.seats):
        yield f"it ran on {layout.cards} cards, this machine has {len(seats.seats)} for this model"
    elif log.device_total_gib is not None:
        here = seats.smallest_bytes(layout.cards) / GIB
        if abs(log.device_total_gib - here) > _SAME_CARD * here:
            yield f"its cards have {log.device_total_gib:.1f} GiB, those of this machine {here:.1f}"
    if log.architecture and checkpoint.architecture and log.architecture != checkpoint.architecture:
        yield f"it loaded a {log.architecture}, this model is a {checkpoint.architecture}"
    if layout.pipeline > len(checkpoint.layers):
        yield f"it had {layout.pipeline} stages, this model has {len(checkpoint.layers)} layers"
    told = log.max_model_len or log.argument("max_model_len")
    if isinstance(told, int) and 0 < checkpoint.context_length < told:
        yield f"its context of {told:,} tokens is beyond the {checkpoint.context_length:,} that this model was made for"
    yield from impossible(log, checkpoint)
    yield from unknown_to_the_plan(log, checkpoint)


def _weights_factor(told: Measured, predicted: tuple[int, ...]) -> float:
    """Loaded over predicted weights, of the stages that printed theirs."""
    return sum(size for _, size in told.weights) / sum(predicted[stage] for stage, _ in told.weights)


def _corrected(
    first: Correction, told: Measured, *, cold: Budget, terms: tuple[int, int, int], beside: int
) -> tuple[Correction, int]:
    """Factors on graphs and peak, and the bytes of the rest.

    `beside` is what the share of the card holds beside weights and cache.
    """
    shares = replace(
        first,
        graphs_estimate=_graphs_factor(told.graphs_estimate_bytes, cold.graphs_bytes),
        graphs=_graphs_factor(told.graphs_bytes, cold.graphs_real_bytes),
    )
    set_aside = shares.of_graphs((cold.graphs_bytes, 0))[0]
    if _is_not_set_aside(told, beside=beside, set_aside=set_aside):
        set_aside = 0
    peak = told.peak_bytes
    if peak is None:
        spare = beside - set_aside
        most = cold.other_bytes + _OTHER_SLACK_BYTES
        peak = spare - min(max(spare - cold.activation_bytes, _OTHER_LEAST_BYTES), most)
    forward, sampling, pictures = _peak_factors(terms, peak)
    shares = replace(shares, forward=forward, sampling=sampling, pictures=pictures)
    return shares, beside - set_aside - shares.of_peak(terms)


def _graphs_factor(measured_bytes: int | None, predicted_bytes: int) -> float | None:
    if measured_bytes is None or predicted_bytes <= 0:
        return None
    return min(max(measured_bytes / predicted_bytes, _GRAPHS_LEAST), _GRAPHS_MOST)


def _is_not_set_aside(told: Measured, *, beside: int, set_aside: int) -> bool:
    """Whether the estimate was printed and not taken off (`VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0`)."""
    if told.peak_bytes is None or told.other_bytes is None:
        return False
    without = beside - told.peak_bytes - told.other_bytes
    return abs(without) < abs(without - set_aside)


def _peak_factors(terms: tuple[int, int, int], peak_bytes: int) -> tuple[float, ...]:
    """The largest term becomes the measured peak; of the others it is only known that they are no larger."""
    largest = terms.index(max(terms))
    factors = (peak_bytes / term if term else 1.0 for term in terms)
    return tuple(
        min(max(factor if index == largest else min(factor, 1.0), _PEAK_LEAST), _PEAK_MOST)
        for index, factor in enumerate(factors)
    )


def _does_not_add_up(other: int, card_bytes: int) -> str:
    if other < -_ROUNDING_BYTES:
        return f"its figures do not add up for this model: {-other / GIB:.2f} GiB more were used than the share given"
    if other > OTHER_MOST_SHARE * card_bytes:
        return f"{other / GIB:.2f} GiB of a card were taken by something that this arithmetic does not know"
    return ""


def _left(told: Measured, launch: Launch, *, engine: Accounting) -> Iterator[str]:
    if told.peak_bytes is None:
        yield "the peak of a step was not printed: a small difference counts as memory outside the allocator"
    if launch.capture <= 0:
        yield "CUDA graphs were off: what is predicted for them stays"
    elif told.graphs_bytes is None:
        yield "the log does not say what CUDA graphs took: what is predicted for them stays"
    elif engine.takes_off_graphs and told.graphs_estimate_bytes is None:
        yield "the log has no estimate of the CUDA graphs: what is predicted for it stays"


def _rows(cold: Budget, told: Measured, *, warm: Budget) -> Iterator[Row]:
    weights = dict(told.weights).get(told.stage)
    yield Row("weights", cold.weights_bytes, weights, warm.weights_bytes)
    yield Row("peak of a step", cold.activation_bytes, told.peak_bytes, warm.activation_bytes)
    yield Row("CUDA graphs, set aside", cold.graphs_bytes, told.graphs_estimate_bytes, warm.graphs_bytes)
    yield Row("CUDA graphs", cold.graphs_real_bytes, told.graphs_bytes, warm.graphs_real_bytes)
    yield Row("outside the allocator", cold.other_bytes, told.other_bytes, warm.other_bytes)
    yield Row("cache", cold.kv_bytes, told.kv_bytes, warm.kv_bytes)


def _host(seats: Seats, machine: Machine) -> Host:
    return host_of(tuple(seat.card for seat in seats.seats), machine.pairs, multicast=seats.multicast)


def _is_same(old: Entry, new: Entry) -> bool:
    return old.release == new.release and old.host.is_like(new.host) and old.shape.is_like(new.shape)
