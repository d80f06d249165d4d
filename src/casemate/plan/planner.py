"""How to run a checkpoint on cards with vLLM: Machine, Checkpoint and Intent become a CardsPlan or a Refusal. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from casemate.checkpoint.facts import Checkpoint
from casemate.doctor.machine import Machine
from casemate.plan.accounting import Accounting, accounting
from casemate.plan.correction import NOTHING, Correction
from casemate.plan.decision import GIB, CardsPlan, Intent, Refusal, Speculation
from casemate.plan.explaining import Choice, explained, noted
from casemate.plan.fitting import GOOD_CONTEXT, Fit, Place, fits, place, room
from casemate.plan.kernels import draft_obstacle
from casemate.plan.layout import Seats, layouts, seated
from casemate.plan.refusing import refused

_COMFORTABLE_SHARE = 0.1
"""Of a card's memory that the cache should get; below it more cards are taken if there are any."""
_DRAFT_SHARE = 0.06
"""Of a card's memory that must stay free before the draft is loaded."""
_FEW_BATCHED = 2048
"""Batched tokens that a plan does not go below for a draft, or for more context than is good."""
_NEARLY = 0.9
"""Of the longest context; what costs less than the rest of it is not worth smaller steps."""
_DSPARK_TOKENS = 7
"""What the engine's recipe for DSpark proposes at once."""


def plan(
    machine: Machine, checkpoint: Checkpoint, *, intent: Intent, engine_version: str, correction: Correction = NOTHING
) -> CardsPlan | Refusal:
    """Decide how to run a checkpoint on a machine's cards.

    Args:
        machine: measured facts, or `catalogue.machine_of` named cards.
        checkpoint: the model's facts.
        intent: what is wanted.
        engine_version: of vLLM, such as `0.33.0`.
        correction: what a measured start-up of this release with this model says of this machine.

    Returns:
        The CardsPlan, its speed not predicted yet, or a Refusal that lists every reason and what would help.

    Raises:
        UsageError: the engine version is none, or too old to plan for.
    """
    engine = replace(accounting(engine_version), correction=correction)
    if wrong := tuple(_senseless(intent)):
        return Refusal(checkpoint.name, wrong, "ask for at least one request, one host and some memory")
    seats = seated(machine, checkpoint, engine=engine)
    if not seats.seats:
        return _no_seat(machine, checkpoint, seats=seats)
    places = tuple(
        place(layout, seats, intent=intent) for layout in layouts(checkpoint, seats, nodes=intent.nodes, engine=engine)
    )
    found = _best(checkpoint, places, intent=intent, engine=engine)
    if found is None:
        return refused(checkpoint, seats, places=places, intent=intent, engine=engine)
    fit, where = found
    drafted = _with_draft(checkpoint, where, fit=fit, intent=intent, engine=engine)
    chosen = drafted if drafted is not None and _may_draft(drafted, where) else fit
    decided = _decided(checkpoint, chosen, seats=seats, intent=intent, engine_version=engine_version)
    choice = Choice(chosen, drafted, where, intent, correction)
    reasons = tuple(explained(decided, checkpoint, choice=choice))
    return replace(decided, reasons=reasons, notes=tuple(noted(decided, checkpoint, seats=seats, choice=choice)))


def _senseless(intent: Intent) -> Iterator[str]:
    if intent.concurrency < 1:
        yield f"{intent.concurrency} requests at once are none"
    if intent.context < 0:
        yield f"a context of {intent.context} tokens is none"
    if intent.nodes < 1:
        yield f"{intent.nodes} hosts are none"
    if intent.memory_cap_bytes is not None and intent.memory_cap_bytes <= 0:
        yield "a memory cap of nothing leaves nothing"


def _no_seat(machine: Machine, checkpoint: Checkpoint, *, seats: Seats) -> Refusal:
    reasons = seats.left_out or ("this machine has no card that the driver tells of",)
    remedy = (
        "use a card that can, or name one with --gpus"
        if machine.cards
        else "plan for the CPU, or name cards with --gpus"
    )
    return Refusal(checkpoint.name, reasons, remedy)


def _best(
    checkpoint: Checkpoint, places: tuple[Place, ...], *, intent: Intent, engine: Accounting
) -> tuple[Fit, Place] | None:
    """The first layout on which the model is at ease, else the roomiest. Stages only where nothing else fits."""
    staged = intent.nodes
    for group in (
        tuple(where for where in places if where.layout.pipeline <= staged),
        tuple(where for where in places if where.layout.pipeline > staged),
    ):
        found = [
            (fit, where)
            for where in group
            if (fit := _first(checkpoint, where, intent=intent, engine=engine)) is not None
        ]
        for fit, where in found:
            if _is_at_ease(fit, where, checkpoint=checkpoint, intent=intent):
                return fit, where
        if found:
            return max(found, key=lambda item: item[0].room_bytes)
    return None


def _first(checkpoint: Checkpoint, where: Place, *, intent: Intent, engine: Accounting) -> Fit | None:
    """The most preferred values with room for a wrong guess, else the roomiest; with no asked context the longest."""
    found = fits(checkpoint, where, intent=intent, engine=engine)
    if intent.context:
        return _roomy(found)
    every = tuple(found)
    wide = tuple(fit for fit in every if fit.launch.batched_tokens >= _FEW_BATCHED)
    if any(fit.launch.context >= GOOD_CONTEXT for fit in wide):
        every = wide
    longest = max((fit.launch.context for fit in every), default=0)
    return next((fit for fit in every if fit.launch.context >= _NEARLY * longest), None)


def _roomy(found: Iterator[Fit]) -> Fit | None:
    roomiest: Fit | None = None
    for fit in found:
        if fit.room_bytes >= room(fit.launch, fit.budget):
            return fit
        if roomiest is None or fit.room_bytes > roomiest.room_bytes:
            roomiest = fit
    return roomiest


def _is_at_ease(fit: Fit, where: Place, *, checkpoint: Checkpoint, intent: Intent) -> bool:
    wide = fit.budget.kv_bytes >= _COMFORTABLE_SHARE * where.cap_bytes
    long = intent.context or fit.launch.context >= min(GOOD_CONTEXT, checkpoint.context_length or GOOD_CONTEXT)
    return bool(wide and long and not fit.is_tight)


def _with_draft(checkpoint: Checkpoint, where: Place, *, fit: Fit, intent: Intent, engine: Accounting) -> Fit | None:
    """The same with the checkpoint's own draft loaded; None where there is none, it cannot be used or does not fit."""
    if checkpoint.draft is None or draft_obstacle(checkpoint, engine=engine, pipeline=where.layout.pipeline):
        return None
    tokens = _DSPARK_TOKENS if checkpoint.draft.method == "dspark" else 1
    speculation = Speculation(checkpoint.draft.method, tokens)
    asked = replace(intent, context=fit.launch.context) if not intent.context else intent
    found = tuple(
        item
        for item in fits(checkpoint, where, intent=asked, engine=engine, speculation=speculation)
        if item.launch.batched_tokens >= min(_FEW_BATCHED, fit.launch.batched_tokens)
    )
    free = next((item for item in found if _may_draft(item, where)), None)
    return free or max(found, key=lambda item: item.room_bytes, default=None)


def _may_draft(drafted: Fit, where: Place) -> bool:
    return drafted.room_bytes >= _DRAFT_SHARE * where.cap_bytes


def _decided(checkpoint: Checkpoint, fit: Fit, *, seats: Seats, intent: Intent, engine_version: str) -> CardsPlan:
    """The plan's values; reasons and notes come after."""
    launch, found = fit.launch, fit.budget
    layout, here = launch.layout, launch.layout.cards // intent.nodes
    taken = seats.seats[:here]
    return CardsPlan(
        engine="vllm",
        engine_version=engine_version,
        model=checkpoint.name,
        path=checkpoint.path,
        cards=tuple(sorted(seat.card.index for seat in taken)),
        nodes=intent.nodes,
        tensor_parallel=layout.tensor,
        pipeline_parallel=layout.pipeline,
        data_parallel=layout.data,
        expert_parallel=layout.expert,
        max_model_len=launch.context,
        max_num_batched_tokens=launch.batched_tokens,
        max_num_seqs=launch.sequences,
        gpu_memory_utilization=launch.utilization,
        kv_cache_dtype=launch.kv_dtype,
        block_size=launch.block_size,
        max_cudagraph_capture_size=launch.capture,
        enforce_eager=False,
        moe_backend="auto",
        speculation=launch.speculation,
        weights_gib=found.weights_bytes / GIB,
        activation_gib=found.activation_bytes / GIB,
        graphs_gib=found.graphs_real_bytes / GIB,
        other_gib=found.other_bytes / GIB,
        kv_gib=found.kv_bytes / GIB,
        need_gib=found.need_bytes / GIB,
        full_length_requests=found.full_length_requests,
        start_gib=found.start_bytes / GIB,
    )
