"""The citation gate: every identifier in a text is checked against the graph and graded.

| grade | meaning | repair |
|---|---|---|
| H0 | right | kept |
| H1 | does not exist | dropped |
| H2 | deprecated or revoked | its successor, if there is one; else dropped |
| H3 | exists in another version only | dropped |
| H4 | id and name disagree | the graph's name |
| H5 | a category or view named as a weakness, or mapping to it prohibited | dropped |
| H5 | mapping to it discouraged | kept: it is real, only wide |
| H7 | the graph contradicts it: a technique under a wrong tactic | the graph's tactic |
| unchecked | of a catalogue that this graph does not hold | kept |

H6 (a relation that the graph lacks) is not told yet.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from casemate.chat.wire import Citation
from casemate.knowledge import claims, words
from casemate.knowledge.claims import Claim
from casemate.knowledge.curated import tables
from casemate.knowledge.graph import Graph
from casemate.knowledge.mentions import Mention, find
from casemate.knowledge.node import Kind, Node, State

UNCHECKED = "unchecked"

_PASSES = 4
"""How often a repair looks again: what stood glued to a dropped id may come to light."""
_UNREAL = ("H1", "H2", "H3")

_OTHER_CATALOGUES = re.compile(r"CVE-|T0|A\d\d:(?!2021|2025)")
"""CVEs that the graph has not counted, ATT&CK for control systems, other years of the Top 10."""
_CONTEXT = re.compile(r"categor|view|pillar|class|类别|分类|视图", re.IGNORECASE)
_LIST_JOINT = re.compile(r"\A\s*(?:[,，、/&|;；]|and|or|和|与|及|或)\s*\Z")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The grade of one mention, and what repairs it.

    `name` is the graph's name (that of the other version for H3), `replacement` the successor's id for H2, `claim` what
    the text calls it; `tactics` the right ones for H7.
    """

    mention: Mention
    grade: str
    name: str = ""
    source: str = ""
    version: str = ""
    reason: str = ""
    replacement: str = ""
    claim: Claim | None = None

    @property
    def failed(self) -> bool:
        """Whether the citation is wrong."""
        return self.grade not in ("H0", UNCHECKED)


def examine(text: str, graph: Graph) -> tuple[Verdict, ...]:
    """A verdict on every mention, in reading order."""
    found = find(text)
    verdicts = []
    for place, mention in enumerate(found):
        listed = place > 0 and bool(_LIST_JOINT.match(text[found[place - 1].end : mention.start]))
        verdicts.append(_grade(text, mention, graph=graph, listed=listed))
    return tuple(verdicts)


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
    verdicts = examine(text, graph)
    found = verdicts
    for _ in range(_PASSES):
        for verdict in reversed(verdicts):
            text = _mend(text, verdict, graph=graph)
        verdicts = examine(text, graph)
        if not any(verdict.grade in _UNREAL for verdict in verdicts):
            break
    return text, tuple(_citation(verdict) for verdict in found)


def _grade(text: str, mention: Mention, *, graph: Graph, listed: bool) -> Verdict:
    node = graph.node(mention.id)
    if node is None:
        return _absent(mention)
    verdict = Verdict(mention, "H0", node.name, node.source, node.version)
    if node.state is not State.LIVE:
        successors = [edge.end for edge in graph.around(node.id, "replaced-by") if edge.start == node.id]
        return replace(
            verdict, grade="H2", reason=f"{node.state}", replacement=successors[0] if len(successors) == 1 else ""
        )
    claim = claims.known(text, mention, terms=graph.names)
    if claim and not (listed and not claim.marked) and (contradiction := _contradiction(node, claim, graph=graph)):
        grade, reason = contradiction
        return replace(verdict, grade=grade, reason=reason, claim=claim)
    title = None if claim else claims.spoken(text, mention)
    if title and not _shares_a_word(node, title.name, graph=graph):
        return replace(verdict, grade="H4", reason=f"it is not called {title.name!r}", claim=title)
    return _usable(verdict, node, text=text)


def _absent(mention: Mention) -> Verdict:
    if _OTHER_CATALOGUES.match(mention.id):
        return Verdict(mention, UNCHECKED, reason="not of a catalogue in this graph")
    if mention.id in tables.elsewhere():
        name, edition = tables.elsewhere()[mention.id]
        return Verdict(mention, "H3", name, reason=f"only in {edition}")
    return Verdict(mention, "H1", reason="does not exist")


def _contradiction(node: Node, claim: Claim, *, graph: Graph) -> tuple[str, str] | None:
    """The grade and reason if what the text calls the node belongs to another; None if it fits."""
    folded = words.fold(claim.name)
    named = graph.names.get(folded, ())
    if not named:
        return None if _shares_a_word(node, claim.name, graph=graph) else ("H4", f"it is not called {claim.name!r}")
    if node.id in named or folded in _names(node, graph) or not (claim.marked or folded in graph.terms):
        return None
    around = {end for edge in graph.around(node.id) for end in (edge.start, edge.end)}
    if node.kind is Kind.TECHNIQUE and all(id_.startswith("TA") for id_ in named):
        return None if around & set(named) else ("H7", f"it is not a technique of {claim.name!r}")
    same = [id_ for id_ in named if _catalogue(id_) == _catalogue(node.id)]
    if not same and not claim.marked:
        return None
    related = around & set(named)
    return None if related else ("H4", f"{claim.name!r} is {named[0]}")


def _usable(verdict: Verdict, node: Node, *, text: str) -> Verdict:
    nearby = text[max(0, verdict.mention.start - 14) : verdict.mention.end + 14]
    if node.kind in (Kind.CATEGORY, Kind.VIEW) and not _CONTEXT.search(nearby):
        return replace(verdict, grade="H5", reason=f"a {node.kind}, not a weakness")
    if node.kind is Kind.WEAKNESS and node.usage in ("Discouraged", "Prohibited"):
        return replace(verdict, grade="H5", reason=f"mapping to it is {node.usage.lower()}")
    return verdict


def _shares_a_word(node: Node, name: str, *, graph: Graph) -> bool:
    ours = {word[:5] for known in _names(node, graph) for word in (*words.latin(known), *words.pairs(known))}
    theirs = [word[:5] for word in (*words.latin(name), *words.pairs(name))]
    return not theirs or any(word in ours for word in theirs)


def _names(node: Node, graph: Graph) -> set[str]:
    return {words.fold(name) for name in (node.name, node.name_zh, *graph.aliases(node.id)) if name}


def _catalogue(id_: str) -> str:
    return re.split(r"[-\d]", id_, maxsplit=1)[0]


def _mend(text: str, verdict: Verdict, *, graph: Graph) -> str:
    mention, claim = verdict.mention, verdict.claim
    match verdict.grade:
        case "H4" | "H7" if claim:
            return text[: claim.start] + _right_name(verdict, claim, graph=graph) + text[claim.end :]
        case "H2" if verdict.replacement:
            return text[: mention.start] + verdict.replacement + text[mention.end :]
        case "H1" | "H2" | "H3":
            return _drop(text, mention)
        case "H5" if not verdict.reason.endswith("discouraged"):
            return _drop(text, mention)
        case _:
            return text


def _right_name(verdict: Verdict, claim: Claim, *, graph: Graph) -> str:
    if verdict.grade == "H7":
        tactics = (graph.node(edge.end) for edge in graph.around(verdict.mention.id, "achieves"))
        return ", ".join(tactic.name for tactic in tactics if tactic)
    chinese = [term for term in graph.aliases(verdict.mention.id) if words.has_han(term)]
    return chinese[0] if chinese and words.has_han(claim.name) else verdict.name


def _drop(text: str, mention: Mention) -> str:
    """The text without the id: with its brackets where it stands alone in them, else with a mark in its place."""
    before, after = text[: mention.start], text[mention.end :]
    opened = re.search(r"[ \t]*[(（\[]\s*\Z", before)
    closed = re.match(r"\s*[)）\]]", after)
    if opened and closed:
        return before[: opened.start()] + after[closed.end() :]
    mark = "（编号未核实）" if words.has_han(before[-20:] + after[:20]) else "[unverified id]"
    return before + mark + after


def _citation(verdict: Verdict) -> Citation:
    return Citation(verdict.mention.id, verdict.name, verdict.source, verdict.version, verdict.grade, cited=True)
