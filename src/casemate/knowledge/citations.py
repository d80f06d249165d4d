"""The citation gate: every identifier in a text is checked against the graph and graded.

| grade | meaning | repair |
|---|---|---|
| H0 | right | kept |
| H1 | does not exist | dropped |
| H2 | replaced, revoked or deprecated in the newest version | its successor, if there is one; else dropped |
| H3 | exists in another version or edition only | dropped |
| H4 | id and name disagree | the graph's name |
| H5 | a category or view named as a weakness, or mapping to it prohibited | dropped |
| H5 | mapping to it discouraged | kept: it is real, only wide |
| H6 | a relation that the graph lacks, or that is only our judgement where the text claims authority | kept |
| H7 | the graph contradicts it: a wrong tactic, class, parent, or title of a clause | what the graph says |
| E1 | a quotation that is not in the material | kept |
| E2 | a place in the material that does not exist, or holds other words | kept |
| unchecked | of a catalogue that this graph does not hold | kept |

One mention gets one verdict: the first of H1, H3, H2, H4, H7, H6, H5 that holds. JSON and SARIF are read value by
value, tables row by row, all else as running text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from casemate.chat.wire import Citation
from casemate.knowledge.gate import exhibits, prose, structured, walking
from casemate.knowledge.gate.evidence import Material
from casemate.knowledge.gate.grading import UNCHECKED, Grader, Verdict
from casemate.knowledge.gate.mentions import find
from casemate.knowledge.gate.repairing import edited
from casemate.knowledge.graph import Graph

__all__ = ["UNCHECKED", "Mended", "Tally", "Verdict", "check", "examine", "mend", "repair", "tally"]

_PASSES = 6
"""How often a repair looks again: what stood glued to a dropped id may come to light."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Rates of a set of verdicts: `citations` is the denominator of `per_100`, which has every grade that occurs."""

    citations: int
    grades: dict[str, int]
    per_100: dict[str, float]
    failed: int
    failed_per_100: float


@dataclass(frozen=True, slots=True)
class Mended:
    """A repaired text, the verdicts on the text as it was, and how often each thing was done.

    `done` counts `replaced` (H2), `renamed` (H4), `corrected` (H7) and `dropped`.
    """

    text: str
    verdicts: tuple[Verdict, ...]
    done: dict[str, int]


def examine(text: str, graph: Graph, *, material: Material | None = None) -> tuple[Verdict, ...]:
    """A verdict on every mention, in reading order; with material, also on every quotation and place (E1, E2)."""
    grader = Grader(graph)
    seen = structured.sight(text, grader.lexicon) if walking.is_json(text) else None
    if seen is None:
        seen = prose.sight(text, find(text), lexicon=grader.lexicon)
    verdicts = [verdict for sighting in seen if (verdict := grader.grade(sighting)) is not None]
    if material is not None:
        verdicts += [
            Verdict(exhibit.mention, exhibit.grade, reason=exhibit.reason)
            for exhibit in exhibits.examine(text, material)
        ]
        verdicts.sort(key=lambda verdict: (verdict.mention.start, verdict.mention.end))
    return tuple(verdicts)


def tally(verdicts: Iterable[Verdict]) -> Tally:
    """How many citations have which grade, and per 100 citations; unchecked ones are in the denominator."""
    every = tuple(verdicts)
    grades = dict(sorted(Counter(verdict.grade for verdict in every).items()))
    failed = sum(verdict.failed for verdict in every)
    return Tally(
        len(every),
        grades,
        {grade: _per_100(count, len(every)) for grade, count in grades.items()},
        failed,
        _per_100(failed, len(every)),
    )


def check(text: str, graph: Graph, *, offered: Collection[str] = ()) -> list[Citation]:
    """The worst grade of each identifier that a text names, then the offered ones that it does not name.

    Args:
        text: what was written.
        graph: what it is checked against.
        offered: ids of the passages that the writer was given.
    """
    worst: dict[str, Verdict] = {}
    for verdict in examine(text, graph):
        known = worst.get(verdict.mention.id)
        if known is None or (verdict.failed and not known.failed):
            worst[verdict.mention.id] = verdict
    cited = [_citation(verdict) for verdict in worst.values()]
    uncited = [node for id_ in dict.fromkeys(offered) if id_ not in worst and (node := graph.node(id_))]
    return cited + [Citation(node.id, node.name, node.source, node.version, "H0", cited=False) for node in uncited]


def repair(text: str, graph: Graph) -> tuple[str, tuple[Citation, ...]]:
    """The text with failed citations corrected or dropped, and the citations as they were found.

    No id that does not exist, is out of date or of another version survives; discouraged mappings are real and stay.
    """
    mended = mend(text, graph)
    return mended.text, tuple(map(_citation, mended.verdicts))


def mend(text: str, graph: Graph) -> Mended:
    """What `repair` does, with the verdicts and a count of what was done. Mending twice changes nothing more."""
    verdicts = found = examine(text, graph)
    done: Counter[str] = Counter()
    for _ in range(_PASSES):
        mended, did = edited(text, verdicts)
        if mended == text:
            break
        text, done = mended, done + did
        verdicts = examine(text, graph)
    return Mended(text, found, dict(done))


def _per_100(count: int, total: int) -> float:
    return round(100 * count / total, 1) if total else 0.0


def _citation(verdict: Verdict) -> Citation:
    return Citation(verdict.mention.id, verdict.name, verdict.source, verdict.version, verdict.grade, cited=True)
