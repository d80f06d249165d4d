"""Looks for launch values with which a model fits a layout: batched tokens, sequences, utilisation and others. Pure.

The order of the search is the order of preference: the engine's own batched tokens, then fewer, because they cost
memory for activations and, with windows, for tokens in flight; the engine's own utilisation, then more of the card;
16-bit cache, then fp8; as many sequences as the purpose wants, then no more than were asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from casemate.checkpoint.facts import Checkpoint, Recurrent
from casemate.plan.accounting import Accounting
from casemate.plan.decision import GIB, Intent, Purpose, Speculation
from casemate.plan.kernels import ADA, AMPERE
from casemate.plan.launch import Launch, Layout, default_capture
from casemate.plan.layout import Seats
from casemate.plan.memory import Budget, budget
from casemate.plan.pages import is_packed

LEAST_CONTEXT = 2048
"""Tokens; a plan that chooses the context itself does not go below."""
GOOD_CONTEXT = 32768
"""Tokens; a plan that chooses the context itself takes small steps, few sequences or stages before it goes below."""
TARGET_CONTEXT = 131072
"""Tokens; a plan that chooses the context itself takes more cards before it goes below (or below the model's own)."""
_EASY_CONTEXT = 8192
"""Tokens; from here on a chosen context leaves all of `room` free, at `LEAST_CONTEXT` none of it."""
_LEAST_BATCHED = 512
_STEPS = (0.0, 0.01, 0.02, 0.03)
_SEQUENCES = {Purpose.CHAT: 16, Purpose.AUDIT: 32, Purpose.BATCH: 128}
_ROOM_SHARE = 0.012
_LEAST_ROOM, _MOST_ROOM = int(0.4 * GIB), GIB
_STEPS_AN_OCTAVE = 16
_BIG, _BIGGEST = 70 * GIB, 160 * GIB


@dataclass(frozen=True, slots=True)
class Place:
    """One layout on the cards that it takes: the smallest one's memory, what may be used of it, and who sits there.

    `cap_bytes` is what a card counts as (its own memory where there is no cap).
    """

    layout: Layout
    card_bytes: int
    cap_bytes: int
    most_utilization: float
    capability: tuple[int, int]
    multicast: bool

    @property
    def utilizations(self) -> tuple[float, ...]:
        """Shares of the real card to try, the engine's default first where the card has so much free."""
        return self._scaled(tuple(0.92 + step for step in _STEPS))

    def rules(self, engine: Accounting) -> Accounting:
        """The release's rules with what these cards decide of them."""
        return replace(engine, capability=self.capability)

    def _scaled(self, shares: tuple[float, ...]) -> tuple[float, ...]:
        free = math.floor(self.most_utilization * 1000) / 1000
        scale = self.cap_bytes / self.card_bytes
        found = (math.floor(min(share * scale, free) * 1000 + 1e-6) / 1000 for share in shares)
        return tuple(dict.fromkeys(share for share in found if share > 0))


@dataclass(frozen=True, slots=True)
class Fit:
    """Launch values and the memory that they come to. `room_bytes` is what the cache has beyond what was asked for."""

    launch: Launch
    budget: Budget
    room_bytes: int

    @property
    def is_tight(self) -> bool:
        """Whether a wrong guess of a gibibyte would break it."""
        return self.room_bytes < room(self.launch, self.budget)


def room(launch: Launch, found: Budget) -> int:
    """Bytes of cache that a plan keeps free for what it guessed: about 1 % of a card, between 0.4 and 1 GiB."""
    requested = found.kv_bytes + found.weights_bytes + found.activation_bytes + found.graphs_bytes + found.other_bytes
    return min(max(int(requested / launch.utilization * _ROOM_SHARE), _LEAST_ROOM), _MOST_ROOM)


def place(layout: Layout, seats: Seats, *, intent: Intent) -> Place:
    """The cards that a layout takes on one host, seen as the smallest and fullest of them."""
    here = layout.cards // intent.nodes
    card_bytes = seats.smallest_bytes(here)
    return Place(
        layout=layout,
        card_bytes=card_bytes,
        cap_bytes=min(card_bytes, intent.memory_cap_bytes or card_bytes),
        most_utilization=seats.most_utilization(here),
        capability=min(seat.card.compute_capability or AMPERE for seat in seats.seats[:here]),
        multicast=seats.multicast,
    )


def default_batched_tokens(where: Place, *, engine: Accounting) -> int:
    """Batched tokens that the API server takes by itself: 8192 on cards from 70 GiB on but the A100's, else 2048."""
    if engine.default_in_big_cards and where.card_bytes >= _BIGGEST:
        return 16384
    small = where.card_bytes < _BIG or where.capability < ADA or where.capability == (12, 1)
    return 2048 if small else 8192


def fits(
    checkpoint: Checkpoint, where: Place, *, intent: Intent, engine: Accounting, speculation: Speculation | None = None
) -> Iterator[Fit]:
    """Every combination that fits, in the order of preference; context is the asked one, or the longest that fits."""
    for launch in attempts(checkpoint, where, intent=intent, engine=engine, speculation=speculation):
        found = fitted(checkpoint, launch, where=where, intent=intent, engine=engine)
        if found is not None:
            yield found


def attempts(
    checkpoint: Checkpoint, where: Place, *, intent: Intent, engine: Accounting, speculation: Speculation | None = None
) -> Iterator[Launch]:
    """The launch values to try, in the order of preference, with the context that was asked for or the model's own."""
    shares = where.utilizations if intent.context else where.utilizations[-1:]
    choices = product(
        kv_dtypes(checkpoint, where, intent=intent), _sequences(intent), _batched(where, engine=engine), shares
    )
    for kv_dtype, sequences, batched, utilization in choices:
        yield Launch(
            layout=where.layout,
            context=asked_context(checkpoint, intent) or window(checkpoint),
            batched_tokens=batched,
            sequences=sequences,
            utilization=utilization,
            kv_dtype=kv_dtype,
            block_size=256 if is_packed(checkpoint) else None,
            capture=default_capture(sequences, 1 + (speculation.tokens if speculation else 0)),
            speculation=speculation,
        )


def fitted(checkpoint: Checkpoint, launch: Launch, *, where: Place, intent: Intent, engine: Accounting) -> Fit | None:
    """The memory of these values if they fit, with the context made as long as it may be where none was asked.

    A chosen context is one of sixteen round lengths an octave, so that a little more memory is never a shorter one.
    """
    if intent.context:
        found = worked_out(checkpoint, launch, where=where, intent=intent, engine=engine)
        return found if found.room_bytes >= 0 else None
    lengths, best = _lengths(launch.context), None
    low, high = 0, len(lengths)
    while low < high:
        middle = (low + high) // 2
        asked = replace(launch, context=lengths[middle])
        trial = worked_out(checkpoint, asked, where=where, intent=intent, engine=engine)
        if trial.room_bytes >= _kept_free(trial):
            low, best = middle + 1, trial
        else:
            high = middle
    return best


def worked_out(checkpoint: Checkpoint, launch: Launch, *, where: Place, intent: Intent, engine: Accounting) -> Fit:
    """The memory of these values, whether they fit (`room_bytes` of 0 or more) or not."""
    found = budget(
        checkpoint, launch, card_bytes=where.card_bytes, engine=where.rules(engine), multicast=where.multicast
    )
    return Fit(launch, found, found.kv_bytes - demand(found, intent.concurrency))


def demand(found: Budget, concurrency: int) -> int:
    """Cache that so many requests of full length take, and no less than start-up demands for one."""
    return max(found.start_bytes, found.need_bytes * concurrency)


def asked_context(checkpoint: Checkpoint, intent: Intent) -> int:
    """Tokens that were asked for, no more than the model was made for; 0: none were."""
    return min(intent.context, checkpoint.context_length or intent.context)


def window(checkpoint: Checkpoint) -> int:
    """Tokens that the model was made for; where it does not say, as many as are good to have."""
    return checkpoint.context_length or GOOD_CONTEXT


def least_context(checkpoint: Checkpoint) -> int:
    """The shortest context that is planned without being asked for, in tokens."""
    return min(LEAST_CONTEXT, window(checkpoint))


def wanted_sequences(intent: Intent) -> int:
    """Requests of one step that the purpose wants, no fewer than were asked for."""
    return max(_SEQUENCES[intent.purpose], intent.concurrency)


def kv_dtypes(checkpoint: Checkpoint, where: Place, *, intent: Intent) -> tuple[str, ...]:
    """Types of cache to try: DeepSeek-V4's own packed fp8; others the model's, and fp8 if a context was asked for."""
    if is_packed(checkpoint):
        return ("fp8",)
    narrow = (
        intent.context > 0
        and where.capability >= ADA
        and not all(isinstance(cache, Recurrent) for cache in checkpoint.caches)
    )
    return ("auto", "fp8") if narrow else ("auto",)


def _sequences(intent: Intent) -> tuple[int, ...]:
    return tuple(dict.fromkeys((wanted_sequences(intent), intent.concurrency)))


def _kept_free(fit: Fit) -> int:
    """Of `room`, what a chosen context leaves free: short ones less, for without them there is no plan."""
    share = (fit.launch.context - LEAST_CONTEXT) / (_EASY_CONTEXT - LEAST_CONTEXT)
    return int(room(fit.launch, fit.budget) * min(max(share, 0.0), 1.0))


def _lengths(longest: int) -> tuple[int, ...]:
    """Round contexts from the least useful one up to `longest`, that one included."""
    found, length = [], min(LEAST_CONTEXT, longest)
    while length < longest:
        found.append(length)
        length += max((1 << length.bit_length() - 1) // _STEPS_AN_OCTAVE, 1)
    return (*found, longest)


def _batched(where: Place, *, engine: Accounting) -> Iterator[int]:
    tokens = default_batched_tokens(where, engine=engine)
    while tokens >= _LEAST_BATCHED:
        yield tokens
        tokens //= 2
