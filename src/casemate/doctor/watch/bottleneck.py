"""From a window of samples to a verdict: what limits the engine, with the figures that decided. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from casemate.doctor.watch.calm import light, room
from casemate.doctor.watch.evidence import FINE, Kind, Suspect, advice
from casemate.doctor.watch.faults import fault, idle, rests
from casemate.doctor.watch.figures import Figures, figures
from casemate.doctor.watch.limits import limits
from casemate.doctor.watch.sample import Sample

_CAUSES: tuple[Kind, ...] = ("throttling", "kv", "imbalance", "link", "cpu")
"""What can be taken away comes before what is then left to be bound by."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What limits an engine.

    Attributes:
        kind: the first suspect's, `light`, `idle`, or `unknown`.
        suspects: ranked, the first decides; each with its evidence.
        partial: what could not be looked at, and why; a verdict without a finding is then not "fine".
        advice: what to do about it, in a line.
        figures: all that the window came to.
    """

    kind: Kind
    suspects: tuple[Suspect, ...]
    partial: tuple[str, ...]
    advice: str
    figures: Figures

    @property
    def found(self) -> bool:
        """Whether something limits or ails the engine."""
        return self.kind not in (*FINE, "unknown")


def judge(window: Sequence[Sample]) -> Verdict:
    """The verdict on samples in their order; 20 to 60 s of them tell most, 30 s are needed to call an engine wedged."""
    found = figures(window)
    suspects = _suspects(found)
    kind: Kind = suspects[0].kind if suspects else "unknown"
    return Verdict(kind, suspects, _partial(found), advice(kind, engine=found.engine.kind), found)


def _suspects(found: Figures) -> tuple[Suspect, ...]:
    if fatal := fault(found):
        return (fatal,)
    if resting := idle(found):
        return (resting,)
    ranked = sorted(limits(found), key=_rank)
    if not ranked and (calm := light(found)):
        return (calm,)
    if not ranked and not _partial(found) and (roomy := room(found)):
        return (roomy,)
    return tuple(ranked)


def _rank(suspect: Suspect) -> tuple[bool, int, float]:
    """Causes in their order, then the rest by weight, a queue before the memory that it would use better."""
    if suspect.kind in _CAUSES:
        return False, _CAUSES.index(suspect.kind), 0.0
    return True, int(suspect.kind == "bandwidth"), -suspect.weight


def _partial(found: Figures) -> tuple[str, ...]:
    missing = []
    if not found.answered:
        missing.append(f"engine: {found.reach_error or 'was not asked'}")
    if found.cards_error:
        missing.append(f"cards: {found.cards_error}")
    elif found.answered and not found.cards and found.host.engine_cores is None and not rests(found.engine):
        missing.append("cards: none is on this host, and none of its processes is the engine: watch where it runs")
    return tuple(missing)
