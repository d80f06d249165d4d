"""What a window of samples comes to. Pure; it judges nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from casemate.doctor.watch.card_figures import CardFigures, Spread, cards, spreads
from casemate.doctor.watch.engine_figures import EngineFigures, Step, engine, load, steps
from casemate.doctor.watch.host_figures import HostFigures, host
from casemate.doctor.watch.sample import Sample

_LONG_S = 5.0
"""From here on, standing still now says more than standing still before."""


@dataclass(frozen=True, slots=True)
class Figures:
    """A whole window.

    Attributes:
        refused_at_end, silent_at_end_s: how many answers in a row were refused, for how long none came, up to the end.
        spreads: how unevenly the cards that the engine uses were loaded.
        stall_cards, stall_host: as `cards` and `host`, over the time in which nothing moved: that up to the window's
            end where it stands still now, else all of it.
    """

    span_s: float
    samples: int
    answered: int
    refused_at_end: int
    silent_at_end_s: float
    engine: EngineFigures
    cards: tuple[CardFigures, ...]
    spreads: tuple[Spread, ...]
    host: HostFigures
    stall_cards: tuple[CardFigures, ...]
    stall_host: HostFigures
    cards_error: str = ""
    reach_error: str = ""


def figures(window: Sequence[Sample]) -> Figures:
    """The figures of samples in their order; a window of one has no rates."""
    between = steps(window)
    under_load = _under_load(window)
    whole = engine(window, between)
    still = _still(window, between, since_s=window[-1].time_s - whole.still_s if whole.still_s >= _LONG_S else 0.0)
    return Figures(
        span_s=window[-1].time_s - window[0].time_s if window else 0.0,
        samples=len(window),
        answered=sum(sample.engine is not None for sample in window),
        refused_at_end=_trailing(window),
        silent_at_end_s=_silent(window),
        engine=whole,
        cards=cards(under_load),
        spreads=spreads(under_load),
        host=host(under_load),
        stall_cards=cards(still),
        stall_host=host(still),
        cards_error=window[-1].cards_error if window else "",
        reach_error=window[-1].reach_error if window else "",
    )


def _still(window: Sequence[Sample], between: Sequence[Step], *, since_s: float) -> list[Sample]:
    """The samples in the time in which requests were there and nothing moved."""
    spells = [(step.begin.time_s, step.end.time_s) for step in between if step.still and step.begin.time_s >= since_s]
    return [sample for sample in window if any(begin < sample.time_s <= end for begin, end in spells)]


def _under_load(window: Sequence[Sample]) -> Sequence[Sample]:
    """The samples with requests in the engine; all of them where none tells of any."""
    loaded = [sample for sample in window if sample.engine and load(sample.engine) > 0]
    return loaded or window


def _trailing(window: Sequence[Sample]) -> int:
    count = 0
    for sample in reversed(window):
        if sample.reach != "refused":
            break
        count += 1
    return count


def _silent(window: Sequence[Sample]) -> float:
    """Seconds from the first of the last answers that did not come in time."""
    since = None
    for sample in reversed(window):
        if sample.reach != "silent":
            break
        since = sample.time_s
    return 0.0 if since is None else window[-1].time_s - since
