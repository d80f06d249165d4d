"""How to run a checkpoint on cards with vLLM: Machine, Checkpoint and Intent become a CardsPlan or a Refusal. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from casemate.checkpoint.facts import Checkpoint
from casemate.doctor.machine import Machine
from casemate.plan.accounting import Accounting, accounting
from casemate.plan.correction import NOTHING, Correction
from casemate.plan.decision import GIB, CardsPlan, Intent, Refusal, Speculation
from casemate.plan.explaining import Choice, explained, noted
from casemate.plan.fitting import (
    GOOD_CONTEXT,
    TARGET_CONTEXT,
    Fit,
    Place,
    attempts,
    fits,
    fitted,
    place,
    room,
    wanted_sequences,
    window,
    worked_out,
)
from casemate.plan.kernels import draft_obstacle
from casemate.plan.layout import Seats, layouts, seated
from casemate.plan.refusing import refused

_COMFORTABLE_SHARE = 0.1
"""Of a card's memory that the cache should get; below it more cards are taken if there are any."""
_DRAFT_SHARE = 0.06
"""Of a card's memory that must stay free before the draft is loaded."""
_FEW_BATCHED = 2048
"""Batched tokens that a plan does not go below for a draft, or for more context than is good."""
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
    found = _best(checkpoint, _places(checkpoint, seats, intent=intent, engine=engine), intent=intent, engine=engine)
    if found is None:
        together = _together(machine, checkpoint, engine=engine)
        more = len(together.seats) > len(seats.seats)
        wide = _places(checkpoint, together, intent=intent, engine=engine) if more else ()
        found = _best(checkpoint, wide, intent=intent, engine=engine)
        if found is None:
            places = _places(checkpoint, seats, intent=intent, engine=engine)
            return refused(checkpoint, seats, places=places, intent=intent, engine=engine)
        seats = together
    choice = _choice(checkpoint, found, seats=seats, intent=intent, engine=engine)
    decided = _decided(checkpoint, choice.fit, seats=seats, intent=intent, engine_version=engine_version)
    reasons = tuple(explained(decided, checkpoint, choice=choice))
    return replace(decided, reasons=reasons, notes=tuple(noted(decided, checkpoint, seats=seats, choice=choice)))


def _places(checkpoint: Checkpoint, seats: Seats, *, intent: Intent, engine: Accounting) -> tuple[Place, ...]:
    found = layouts(checkpoint, seats, nodes=intent.nodes, engine=engine)
    return tuple(place(layout, seats, intent=intent) for layout in found)


def _together(machine: Machine, checkpoint: Checkpoint, *, engine: Accounting) -> Seats:
    """Every card that can run the model, of whatever architecture; vLLM asks each rank's card for its own kernels."""
    kinds = dict.fromkeys(card.compute_capability for card in machine.cards if not card.unified)
    groups = [
        seated(
            replace(machine, cards=tuple(card for card in machine.cards if card.compute_capability == kind)),
            checkpoint,
            engine=engine,
        )
        for kind in kinds
    ]
    every = (seat for group in groups for seat in group.seats)
    return Seats(
        seats=tuple(sorted(every, key=lambda seat: (seat.used_bytes - seat.total_bytes, seat.card.index))),
        left_out=tuple(why for group in groups for why in group.left_out),
        linked=any(group.linked for group in groups),
        multicast=False,
    )


def _choice(
    checkpoint: Checkpoint, found: tuple[Fit, Place], *, seats: Seats, intent: Intent, engine: Accounting
) -> Choice:
    """What is taken of what was found: with the draft where that leaves enough; and what more cards would bring."""
    fit, where = found
    drafted = _with_draft(checkpoint, where, fit=fit, intent=intent, engine=engine)
    chosen = drafted if drafted is not None and _may_draft(drafted, where) else fit
    larger = [
        other
        for other in _places(checkpoint, seats, intent=intent, engine=engine)
        if other.layout.pipeline == where.layout.pipeline and other.layout.cards > where.layout.cards
    ]
    wider = None
    if larger:
        launch = replace(chosen.launch, layout=larger[0].layout, utilization=max(larger[0].utilizations, default=0.0))
        wider = worked_out(checkpoint, launch, where=larger[0], intent=intent, engine=engine)
    limit = _limit(checkpoint, drafted, where=where, engine=engine) if drafted is not None else 0
    return Choice(chosen, drafted, where, intent, engine.correction, draft_limit=limit, wider=wider)


def _limit(checkpoint: Checkpoint, drafted: Fit, *, where: Place, engine: Accounting) -> int:
    """The longest context, in tokens, with which the draft starts: with one request of it in the cache."""
    low, high = 0, window(checkpoint)
    while low < high:
        middle = (low + high + 1) // 2
        launch = replace(drafted.launch, context=middle)
        trial = worked_out(checkpoint, launch, where=where, intent=Intent(concurrency=1), engine=engine)
        low, high = (middle, high) if trial.room_bytes >= 0 else (low, middle - 1)
    return low


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
    """The layout to take: the fewest stages, then the fewest cards, that give what is wanted; else what gives most."""
    every: list[tuple[Fit, Place]] = []
    # Several hosts come with the widest ranks first, others by rising number of cards.
    for _, group in groupby(sorted(places, key=lambda where: where.layout.pipeline), _stages):
        found = [
            (fit, where)
            for where in group
            if (fit := _first(checkpoint, where, intent=intent, engine=engine)) is not None
        ]
        if not intent.context:
            every += found
            good = min(GOOD_CONTEXT, window(checkpoint))
            if any(fit.launch.context >= good for fit, _ in found):
                return _farthest(found, checkpoint)
            continue
        for fit, where in found:
            if _is_at_ease(fit, where):
                return fit, where
        if found:
            return max(found, key=lambda item: item[0].room_bytes)
    return _farthest(every, checkpoint) if every else None


def _stages(where: Place) -> int:
    return where.layout.pipeline


def _farthest(found: list[tuple[Fit, Place]], checkpoint: Checkpoint) -> tuple[Fit, Place]:
    """The first that reaches the target, else the first that reaches most."""
    target = min(TARGET_CONTEXT, window(checkpoint))
    return max(found, key=lambda item: min(item[0].launch.context, target))


def _first(checkpoint: Checkpoint, where: Place, *, intent: Intent, engine: Accounting) -> Fit | None:
    """The most preferred values with room for a wrong guess, else the roomiest; with no asked context the longest.

    Small steps and few sequences are taken for a good context, not for more than that.
    """
    found = fits(checkpoint, where, intent=intent, engine=engine)
    if intent.context:
        return _roomy(found)
    every = tuple(found)
    if not every:
        return None
    good, wanted = min(GOOD_CONTEXT, window(checkpoint)), wanted_sequences(intent)
    wide = max(
        (
            fit.launch.context
            for fit in every
            if fit.launch.batched_tokens >= _FEW_BATCHED and fit.launch.sequences >= wanted
        ),
        default=0,
    )
    reach = max(wide, min(good, max(fit.launch.context for fit in every)))
    launch = replace(next(fit.launch for fit in every if fit.launch.context >= reach), context=reach)
    return worked_out(checkpoint, launch, where=where, intent=intent, engine=engine)


def _roomy(found: Iterator[Fit]) -> Fit | None:
    roomiest: Fit | None = None
    for fit in found:
        if fit.room_bytes >= room(fit.launch, fit.budget):
            return fit
        if roomiest is None or fit.room_bytes > roomiest.room_bytes:
            roomiest = fit
    return roomiest


def _is_at_ease(fit: Fit, where: Place) -> bool:
    return fit.budget.kv_bytes >= _COMFORTABLE_SHARE * where.cap_bytes and not fit.is_tight


def _with_draft(checkpoint: Checkpoint, where: Place, *, fit: Fit, intent: Intent, engine: Accounting) -> Fit | None:
    """The same with the checkpoint's own draft loaded; None where there is none or it cannot be used.

    Where it does not fit, its longest context for one request, with less room than none (`room_bytes`).
    The type of the cache stays: a draft is not worth an fp8 one.
    """
    if checkpoint.draft is None or draft_obstacle(checkpoint, engine=engine, pipeline=where.layout.pipeline):
        return None
    tokens = _DSPARK_TOKENS if checkpoint.draft.method == "dspark" else 1
    speculation = Speculation(checkpoint.draft.method, tokens)
    asked = replace(intent, context=fit.launch.context)
    tried = tuple(
        launch
        for launch in attempts(checkpoint, where, intent=asked, engine=engine, speculation=speculation)
        if launch.batched_tokens >= min(_FEW_BATCHED, fit.launch.batched_tokens)
        and launch.kv_dtype == fit.launch.kv_dtype
    )
    found = tuple(
        item
        for launch in tried
        if (item := fitted(checkpoint, launch, where=where, intent=asked, engine=engine)) is not None
    )
    free = next((item for item in found if _may_draft(item, where)), None)
    roomiest = max(found, key=lambda item: item.room_bytes, default=None)
    return free or roomiest or worked_out(checkpoint, tried[-1], where=where, intent=asked, engine=engine)


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
