"""Why a model does not fit, in numbers, and what would make it fit. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from casemate.checkpoint.facts import Checkpoint
from casemate.plan.accounting import Accounting
from casemate.plan.decision import GIB, Intent, Refusal
from casemate.plan.fitting import (
    Fit,
    Place,
    asked_context,
    attempts,
    demand,
    fits,
    least_context,
    place,
    worked_out,
)
from casemate.plan.layout import Seats, layouts, skipped_counts
from casemate.plan.memory import Budget

_MOST_CARDS = 16
_LEAST_USEFUL = 512
_MOSTLY_FREE = 0.9
_SHRINK = 0.95
_TRIES = 40
_DRIVER_SHARE = 0.002
"""Of more memory, what the driver keeps."""


@dataclass(frozen=True, slots=True)
class _Case:
    """What is refused: the model, what was wanted, by which rules, and on which cards."""

    checkpoint: Checkpoint
    intent: Intent
    engine: Accounting
    seats: Seats

    def fits(self, where: Place, intent: Intent | None = None) -> bool:
        """Whether it would fit there, or with another wish."""
        wanted = intent or self.intent
        return any(True for _ in fits(self.checkpoint, where, intent=wanted, engine=self.engine))

    @property
    def context(self) -> int:
        """Tokens that were asked for, else the fewest that a plan is made for."""
        return asked_context(self.checkpoint, self.intent) or least_context(self.checkpoint)


def refused(
    checkpoint: Checkpoint, seats: Seats, *, places: tuple[Place, ...], intent: Intent, engine: Accounting
) -> Refusal:
    """The refusal of a model that fits no layout of these cards: what is missing in the roomiest of them.

    Args:
        checkpoint: the model.
        seats: the usable cards and those left out.
        places: every layout that was tried; at least one.
        intent: what was wanted.
        engine: the release's rules.
    """
    case = _Case(checkpoint, intent, engine, seats)
    closest = ((_closest(case, where), where) for where in places)
    fit, where = max(closest, key=lambda item: item[0].room_bytes)
    found, launch, layout = fit.budget, fit.launch, where.layout
    spread = f"on {layout.cards} card{'s' if layout.cards > 1 else ''}"
    total = where.cap_bytes / GIB
    given = launch.utilization * where.card_bytes / GIB
    reasons = [
        f"{checkpoint.name} {spread}: {found.weights_bytes / GIB:.1f} GiB of weights on the fullest card",
        f"each card gives the engine {given:.1f} of {total:.1f} GiB",
    ]
    beside = (found.activation_bytes + found.graphs_bytes + found.other_bytes) / GIB
    if found.kv_bytes <= 0:
        reasons.append(f"{beside:.1f} GiB for activations, CUDA graphs and the rest leave nothing for the cache")
    else:
        reasons.append(
            f"the cache gets {found.kv_bytes / GIB:.2f} GiB; {intent.concurrency} × {launch.context:,} tokens take"
            f" {demand(found, intent.concurrency) / GIB:.2f}"
        )
    # Rounded up: a shortage of less than a tenth of a gibibyte is one too.
    missing = math.ceil(-fit.room_bytes / GIB * 10) / 10
    reasons.append(f"{missing:.1f} GiB are missing per card, with {launch.batched_tokens} batched tokens already")
    reasons.extend(skipped_counts(checkpoint, len(seats.seats), engine=where.rules(engine)))
    reasons.extend(seats.left_out)
    return Refusal(model=checkpoint.name, reasons=tuple(reasons), remedy="; ".join(_remedies(case, where, fit=fit)))


def _closest(case: _Case, where: Place) -> Fit:
    """Of all that was tried in a layout, what came closest; a context that nobody asked for as short as it may be."""
    free = bool(where.utilizations)
    here = where if free else replace(where, cap_bytes=where.card_bytes, most_utilization=1.0)
    tried = tuple(attempts(case.checkpoint, here, intent=case.intent, engine=case.engine))
    most = max(launch.utilization for launch in tried)
    return max(
        (
            worked_out(
                case.checkpoint,
                replace(launch, context=case.context, utilization=most if free else 0.0),
                where=where,
                intent=case.intent,
                engine=case.engine,
            )
            for launch in tried
            if launch.utilization == most
        ),
        key=lambda fit: fit.room_bytes,
    )


def _remedies(case: _Case, where: Place, *, fit: Fit) -> Iterator[str]:
    """What would make it fit, the cheapest first; every number was tried."""
    if fit.budget.kv_bytes > 0:
        yield from _smaller_wishes(case, where, found=fit.budget)
    yield from _more_memory(case, where, missing=-fit.room_bytes)
    if where.most_utilization < _MOSTLY_FREE:
        yield "free the memory that other processes hold"
    if more := _enough_cards(case, where):
        skipped = skipped_counts(case.checkpoint, more - 1, engine=where.rules(case.engine))
        between = [why for why in skipped if int(why.split()[0]) > where.layout.cards]
        kind = "alike" if case.seats.left_out else "such"
        hosts = " on each host" if case.intent.nodes > 1 else ""
        yield f"{more} {kind} cards{hosts}{f' ({between[0]})' if between else ''}"
    yield "a smaller model, or one with fewer bits per weight"


def _smaller_wishes(case: _Case, where: Place, *, found: Budget) -> Iterator[str]:
    """Less context for as many requests, fewer requests of that length: as far as either is enough."""
    intent = case.intent
    longest = found.longest_of(intent.concurrency, limit=case.context) if intent.context else 0
    while longest >= _LEAST_USEFUL and not case.fits(where, replace(intent, context=longest)):
        longest = int(longest * _SHRINK)
    if longest >= _LEAST_USEFUL:
        yield f"ask for {longest:,} tokens of context or fewer"
    together = min(int(found.full_length_requests), intent.concurrency - 1)
    while together >= 1 and not case.fits(where, replace(intent, concurrency=together)):
        together = min(int(together * _SHRINK), together - 1)
    if together >= 1:
        yield f"ask for {together} requests at once or fewer"


def _more_memory(case: _Case, where: Place, *, missing: int) -> Iterator[str]:
    """Larger cards, or a larger cap where it is the cap that is too small."""
    least = math.ceil(missing / GIB)
    step = max(least // 20, 1)
    for more in range(least, least + _TRIES * step, step):
        if where.cap_bytes < where.card_bytes:
            cap = math.ceil(where.cap_bytes / GIB) + more
            wider = replace(where, cap_bytes=cap * GIB)
            told = f"a memory cap of {cap} GiB or more"
            possible = cap * GIB <= where.card_bytes
        else:
            wider = _grown(where, int(more * GIB * (1 - _DRIVER_SHARE)), cap_bytes=case.intent.memory_cap_bytes)
            told, possible = f"cards with {more} GiB more each", True
        if possible and case.fits(wider):
            yield told
            return


def _grown(where: Place, more: int, *, cap_bytes: int | None) -> Place:
    size = where.card_bytes + more
    free = (where.most_utilization * where.card_bytes + more) / size
    return replace(where, card_bytes=size, cap_bytes=min(size, cap_bytes or size), most_utilization=free)


def _enough_cards(case: _Case, where: Place) -> int:
    """The next larger number of the same cards (a host) that it would be planned for, 0 if none up to 16 is enough.

    Ranks alone come first; stages only where no number of ranks is enough.
    """
    here = where.layout.cards // case.intent.nodes
    larger = [_seats(case.seats, count) for count in range(here + 1, _MOST_CARDS + 1)]
    tried = [
        (place(layout, seats, intent=case.intent), len(seats.seats))
        for seats in larger
        for layout in layouts(case.checkpoint, seats, nodes=case.intent.nodes, engine=case.engine)
        if layout.cards == len(seats.seats) * case.intent.nodes
    ]
    tried.sort(key=lambda item: item[0].layout.pipeline > case.intent.nodes)
    return next((count for other, count in tried if case.fits(other)), 0)


def _seats(seats: Seats, count: int) -> Seats:
    """So many cards like the roomiest. A card alone does not tell how several are joined: as it takes most memory."""
    alone = len(seats.seats) == 1
    like = seats.seats[0]
    return replace(seats, seats=(like,) * count, linked=seats.linked or alone, multicast=seats.multicast or alone)
