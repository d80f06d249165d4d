"""Why a model does not fit, in numbers, and what would make it fit. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from casemate.checkpoint.facts import Checkpoint
from casemate.plan.accounting import Accounting
from casemate.plan.decision import GIB, Intent, Refusal
from casemate.plan.fitting import Place, asked_context, demand, fits, kv_dtypes
from casemate.plan.launch import Launch, Layout
from casemate.plan.layout import Seats, divides, skipped_counts
from casemate.plan.memory import Budget, budget
from casemate.plan.pages import is_packed

_MOST_CARDS = 16
_LEAST_BATCHED = 512
_MOSTLY_FREE = 0.9


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
    shortages = [(_shortage(checkpoint, where, intent=intent, engine=engine), where) for where in places]
    (missing, found, launch), where = min(shortages, key=lambda item: item[0][0])
    layout = where.layout
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
            f"the cache gets {found.kv_bytes / GIB:.1f} GiB; {intent.concurrency} × {launch.context:,} tokens take"
            f" {demand(found, intent.concurrency) / GIB:.1f}"
        )
    reasons.append(f"{missing / GIB:.1f} GiB are missing per card, with {launch.batched_tokens} batched tokens already")
    reasons.extend(skipped_counts(checkpoint, len(seats.seats)))
    reasons.extend(seats.left_out)
    remedies = _remedies(checkpoint, (where, missing, found), intent=intent, engine=engine)
    return Refusal(model=checkpoint.name, reasons=tuple(reasons), remedy="; ".join(remedies))


def _shortage(
    checkpoint: Checkpoint, where: Place, *, intent: Intent, engine: Accounting
) -> tuple[int, Budget, Launch]:
    """What is missing per card when everything is set to take as little as it can."""
    launch = Launch(
        layout=where.layout,
        context=asked_context(checkpoint, intent) or min(checkpoint.context_length or 2048, 2048),
        batched_tokens=_LEAST_BATCHED,
        sequences=intent.concurrency,
        utilization=max(where.utilizations, default=0.0),
        kv_dtype=kv_dtypes(checkpoint, where, intent=intent)[-1],
        block_size=256 if is_packed(checkpoint) else None,
        capture=intent.concurrency * 2,
    )
    rules = where.rules(engine)
    found = budget(checkpoint, launch, card_bytes=where.card_bytes, engine=rules, multicast=where.multicast)
    return demand(found, intent.concurrency) - found.kv_bytes, found, launch


def _remedies(
    checkpoint: Checkpoint, short: tuple[Place, int, Budget], *, intent: Intent, engine: Accounting
) -> Iterator[str]:
    """What would make it fit, the cheapest first."""
    where, missing, found = short
    if found.kv_bytes > 0 and intent.context:
        yield from _smaller_wishes(found, asked_context(checkpoint, intent), concurrency=intent.concurrency)
    yield f"cards with {missing / GIB:.1f} GiB more each"
    if where.most_utilization < _MOSTLY_FREE:
        yield "free the memory that other processes hold"
    if more := _enough_cards(checkpoint, where, intent=intent, engine=engine):
        between = [why for why in skipped_counts(checkpoint, more - 1) if int(why.split()[0]) > where.layout.cards]
        yield f"{more} such cards{f' ({between[0]})' if between else ''}"
    yield "a smaller model, or one with fewer bits per weight"


def _smaller_wishes(found: Budget, context: int, *, concurrency: int) -> Iterator[str]:
    """Less context for as many requests, fewer requests of that length: as far as either is enough."""
    longest = found.longest_of(concurrency, limit=context)
    if longest >= _LEAST_BATCHED:
        yield f"ask for {longest:,} tokens of context or fewer"
    together = int(found.full_length_requests) if found.spare_bytes >= 0 else 0
    if 1 <= together < concurrency:
        yield f"ask for {together} requests at once or fewer"


def _enough_cards(checkpoint: Checkpoint, where: Place, *, intent: Intent, engine: Accounting) -> int:
    """The next larger number of the same cards on which it would fit, 0 if none up to 16 is enough."""
    tensor = where.layout.tensor * where.layout.pipeline
    for count in range(tensor + 1, _MOST_CARDS + 1):
        if divides(checkpoint, count):
            continue
        whole = checkpoint.experts > 0 and checkpoint.experts % count == 0
        larger = replace(where, layout=Layout(tensor=count, expert=whole))
        if any(True for _ in fits(checkpoint, larger, intent=intent, engine=engine)):
            return count
    return 0
