"""What cards come to over a window, and how evenly they were loaded. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from casemate.doctor.watch.sample import CardSample, Sample, Use

_IN_USE = 0.1
"""Share of a card's memory from which it counts as used by somebody: a bare context takes less."""


@dataclass(frozen=True, slots=True)
class CardFigures:
    """A card over a window; shares are of 1, None is "not told".

    Attributes:
        power: share of the limit that holds now.
        clock: share of the highest clock.
        pcie, nvlink: of the busier direction, share of what the link carries one way.
        throttle: reasons, each with its share of the window.
        limit_lowered: the power limit stands below the card's own by this share.
        in_use: the engine is on it by its processes; where those are not visible, it holds more than a bare context.
        processes: who computes on it at the end.
    """

    index: int
    name: str = ""
    busy: float | None = None
    memory_busy: float | None = None
    memory_used: float | None = None
    power: float | None = None
    power_w: float | None = None
    clock: float | None = None
    pcie: float | None = None
    pcie_bytes_per_s: float | None = None
    nvlink: float | None = None
    nvlink_bytes_per_s: float | None = None
    nvlinks_active: int | None = None
    temperature_c: int | None = None
    throttle: tuple[tuple[str, float], ...] = ()
    limit_lowered: float | None = None
    in_use: bool = True
    processes: tuple[Use, ...] = ()


@dataclass(frozen=True, slots=True)
class Spread:
    """How unevenly one measure lies on the cards in use.

    Attributes:
        measure: `busy`, `memory_busy` or `power`.
        most, least: the cards' numbers.
        gain: 1 - mean / most over the cards: what an even spread would give back.
        steady: share of the samples in which that card had more than that other one.
        shares: each card's mean.
    """

    measure: str
    most: int
    least: int
    gain: float
    steady: float
    shares: tuple[tuple[int, float], ...]


def cards(window: Sequence[Sample]) -> tuple[CardFigures, ...]:
    """Each card over the samples that tell of it."""
    by_card: dict[int, list[tuple[float, CardSample]]] = {}
    for sample in window:
        for card in sample.cards:
            by_card.setdefault(card.index, []).append((sample.time_s, card))
    engine = {worker.pid for sample in window if sample.host for worker in sample.host.workers}
    found = [_card([card for _, card in told], told) for _, told in sorted(by_card.items())]
    of_engine = {card.index for card in found if engine & {use.pid for use in card.processes}}
    return tuple(replace(card, in_use=card.index in of_engine) if of_engine else card for card in found)


def spreads(window: Sequence[Sample]) -> tuple[Spread, ...]:
    """How evenly the cards in use were loaded, by each measure that all of them tell."""
    used = {card.index for card in cards(window) if card.in_use}
    if len(used) < 2:
        return ()
    found = [_spread(name, _rows(window, used, ask=ask)) for name, ask in _MEASURES]
    return tuple(spread for spread in found if spread)


def power_share(card: CardSample) -> float | None:
    """Power over the limit that holds now."""
    return _over(card.power_w, card.power_limit_w)


_MEASURES: tuple[tuple[str, Callable[[CardSample], float | None]], ...] = (
    ("busy", lambda card: card.busy),
    ("memory_busy", lambda card: card.memory_busy),
    ("power", power_share),
)


def _card(told: Sequence[CardSample], timed: Sequence[tuple[float, CardSample]]) -> CardFigures:
    last = told[-1]
    used = _over(last.memory_used_bytes, last.memory_total_bytes)
    pcie = _busier(told, lambda card: (card.pcie_received_bytes_per_s, card.pcie_sent_bytes_per_s))
    nvlink = _nvlink(timed)
    return CardFigures(
        index=last.index,
        name=last.name,
        busy=_mean(card.busy for card in told),
        memory_busy=_mean(card.memory_busy for card in told),
        memory_used=used,
        power=_mean(map(power_share, told)),
        power_w=_mean(card.power_w for card in told),
        clock=_mean(_over(card.sm_clock_hz, card.sm_clock_max_hz) for card in told),
        pcie=_over(pcie, last.pcie_bound_bytes_per_s),
        pcie_bytes_per_s=pcie,
        nvlink=_over(nvlink, last.nvlink_bound_bytes_per_s),
        nvlink_bytes_per_s=nvlink,
        nvlinks_active=last.nvlinks_active,
        temperature_c=max((card.temperature_c for card in told if card.temperature_c is not None), default=None),
        throttle=_throttle(told),
        limit_lowered=_lowered(last),
        in_use=used is None or used >= _IN_USE,
        processes=last.processes,
    )


def _busier(told: Iterable[CardSample], ask: Callable[[CardSample], tuple[float | None, float | None]]) -> float | None:
    """The mean of the busier direction."""
    pairs = [ask(card) for card in told]
    means = [_mean(one for one, _ in pairs), _mean(other for _, other in pairs)]
    known = [mean for mean in means if mean is not None]
    return max(known) if known else None


def _nvlink(timed: Sequence[tuple[float, CardSample]]) -> float | None:
    """Bytes a second of the busier direction; a counter that went back was reset, and its step is left out."""
    rates = [_growth(timed, counter) for counter in ("nvlink_received_bytes", "nvlink_sent_bytes")]
    known = [rate for rate in rates if rate is not None]
    return max(known) if known else None


def _growth(timed: Sequence[tuple[float, CardSample]], counter: str) -> float | None:
    grown = time_s = 0.0
    for (begin_s, one), (end_s, other) in pairwise(timed):
        before, after = getattr(one, counter), getattr(other, counter)
        if before is not None and after is not None and after >= before:
            grown += after - before
            time_s += end_s - begin_s
    return grown / time_s if time_s else None


def _throttle(told: Sequence[CardSample]) -> tuple[tuple[str, float], ...]:
    sums: dict[str, float] = {}
    for card in told:
        for reason, share in card.throttle:
            sums[reason] = sums.get(reason, 0.0) + share
    return tuple(sorted((reason, total / len(told)) for reason, total in sums.items()))


def _lowered(card: CardSample) -> float | None:
    share = _over(card.power_limit_w, card.power_limit_default_w)
    return None if share is None else max(0.0, 1 - share)


def _rows(
    window: Sequence[Sample], used: set[int], *, ask: Callable[[CardSample], float | None]
) -> list[dict[int, float]]:
    """A measure of every card in use, for each sample in which all of them tell it."""
    rows = []
    for sample in window:
        told = {card.index: ask(card) for card in sample.cards if card.index in used}
        known = {index: value for index, value in told.items() if value is not None}
        if len(known) == len(used):
            rows.append(known)
    return rows


def _spread(name: str, rows: Sequence[dict[int, float]]) -> Spread | None:
    if not rows:
        return None
    means = {index: sum(row[index] for row in rows) / len(rows) for index in rows[0]}
    most, least = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    if not means[most]:
        return None
    return Spread(
        measure=name,
        most=most,
        least=least,
        gain=1 - sum(means.values()) / len(means) / means[most],
        steady=sum(row[most] > row[least] for row in rows) / len(rows),
        shares=tuple(sorted(means.items())),
    )


def _over(one: float | None, other: float | None) -> float | None:
    return None if one is None or not other else one / other


def _mean(values: Iterable[float | None]) -> float | None:
    held = [value for value in values if value is not None]
    return sum(held) / len(held) if held else None
