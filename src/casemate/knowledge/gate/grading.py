"""The grade of one mention: from what a text says of an identifier to a Verdict."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from casemate.knowledge import words
from casemate.knowledge.gate import absent, lookalikes
from casemate.knowledge.gate.claims import Claim
from casemate.knowledge.gate.kinship import kinship
from casemate.knowledge.gate.lexicon import lexicon, stems
from casemate.knowledge.gate.mentions import NO_YEAR, Mention
from casemate.knowledge.gate.naming import Namer
from casemate.knowledge.gate.proving import Prover
from casemate.knowledge.gate.relations import Link
from casemate.knowledge.gate.sightings import Sighting
from casemate.knowledge.graph import Graph
from casemate.knowledge.node import Kind, Node, State

UNCHECKED = "unchecked"
_RIGHT = "H0"
_PROPOSED = 3
_STEPS = 5
_USABLE = ("Allowed", "Allowed-with-Review")
_BESIDE = 14
_GROUPING = re.compile(r"categor|view|pillar|class|类别|分类|视图|member|成员", re.IGNORECASE)
_CALLED_GROUPING = re.compile(r"[^,，。.;；|\n]{0,40}?(?:\bcategor|\bviews?\b|类别|分类|视图)", re.IGNORECASE)
_DENIED = re.compile(
    r"(?:\b(?:not|neither|nor|unlike|rather\s+than|instead\s+of)|n['’]t|并非|不是|而非|不属于|不算)"
    r"\s*(?:an?\s+|the\s+)?(?:instance\s+of\s+|weakness\s+|弱点\s*)?\Z",
    re.IGNORECASE,
)
_CALLED_FORMER = re.compile(
    r"[^,.;，。；\n]{0,12}?\b(?:is|was|were|has\s+been|had\s+been|got)\s+(?:since\s+|now\s+|later\s+)?(?:revoked|deprecated|retired|withdrawn"
    r"|replaced|renamed|superseded|renumbered|dropped)\b|[^,.;，。；\n]{0,8}?(?:已经?|早已|现已)被?(?:废弃|弃用|撤销|替代|取代|停用|改为|更名)",
    re.IGNORECASE,
)
_FORMER_BEFORE = re.compile(
    r"(?:\b(?:formerly|previously|until\s+v?\d+(?:\.\d+)*)|旧编号|原编号|原为|曾为|前身)[\s:：为是]*\Z", re.IGNORECASE
)
_SPEAKS_OF_USAGE = re.compile(
    r"discourag|prohibit|not\s+(?:be\s+)?(?:used|allowed|recommended)|too\s+(?:broad|general|abstract|generic|wide)"
    r"|instead\s+of|rather\s+than|\bparent|ancestor|pillar|不(?:推荐|建议|宜)|禁止|过于|过宽|太宽|宽泛|过泛|改[为用]|更具体|更窄|而(?:不是|非)|父类|父弱点|上级",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The grade of one mention, and what repairs it.

    `name` is the graph's name (that of the other edition for H3), `replacement` the successor's id for H2, `claim` what
    the text says of it that is wrong, and `right` the words that belong there. `proposals` is what may be put instead:
    ids for H2, H5 and H7, the name for H4.
    """

    mention: Mention
    grade: str
    name: str = ""
    source: str = ""
    version: str = ""
    reason: str = ""
    replacement: str = ""
    claim: Claim | None = None
    right: str = ""
    proposals: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the citation is wrong."""
        return self.grade not in (_RIGHT, UNCHECKED)


class Grader:
    """Grades what one text says against one graph; remembers what it looked up."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.lexicon = lexicon(graph)
        self._kin = kinship(graph)
        self._prover = Prover(graph, self._kin, risk_years=self.lexicon.risk_years)
        self._namer = Namer(graph, self.lexicon, prover=self._prover, kin=self._kin)
        self._narrower = lru_cache(512)(self._usable_below)

    def grade(self, sighting: Sighting) -> Verdict | None:
        """The worst that can be said of a mention: unreal, out of date, misnamed, contradicted, unfounded, unusable.

        None if it only looks like an identifier: a machine, a room, a part.
        """
        verdict = self._graded(sighting)
        return None if verdict.failed and lookalikes.is_one(sighting, is_real=verdict.grade != "H1") else verdict

    def _graded(self, sighting: Sighting) -> Verdict:
        id_ = self._resolved(sighting)
        mention = sighting.mention if id_ == sighting.mention.id else replace(sighting.mention, id=id_)
        node = self._graph.node(id_)
        if node is None:
            return self._absent(mention)
        verdict = Verdict(mention, _RIGHT, node.name, node.source, node.version)
        if node.state is not State.LIVE:
            told = _FORMER_BEFORE.search(sighting.before) or _CALLED_FORMER.match(sighting.after)
            return verdict if told else self._outdated(verdict, node)
        return (
            self._misnamed(verdict, node, sighting=sighting)
            or self._misplaced(verdict, node, sighting=sighting)
            or self._unfounded(verdict, sighting.links)
            or self._unusable(verdict, node, sighting=sighting)
            or verdict
        )

    def _resolved(self, sighting: Sighting) -> str:
        """The id that a class without its year stands for: of the newest list whose name fits."""
        id_ = sighting.mention.id
        if not id_.startswith(NO_YEAR):
            return id_
        every = [f"{id_.removeprefix(NO_YEAR)}:{year}" for year in self.lexicon.risk_years]
        held = [one for one in every if self._graph.node(one)]
        for one in held:
            if any(self.lexicon.fits(one, words.fold(claim.name)) for claim in sighting.claims):
                return one
        return (held or every or [id_])[0]

    def _absent(self, mention: Mention) -> Verdict:
        if mention.id in self.lexicon.past_risks:
            name, year = self.lexicon.past_risks[mention.id], mention.id.rpartition(":")[2]
            newest = self.lexicon.risk_years[0] if self.lexicon.risk_years else ""
            reason = f"of the list of {year}" + (f"; the newest is that of {newest}" if newest else "")
            return Verdict(mention, "H3", name, "OWASP Top 10", year, reason)
        if absent.is_heading(mention.id, self._graph):
            part = self._graph.node(f"{mention.id}.1")
            return Verdict(mention, _RIGHT, "", part.source if part else "", part.version if part else "")
        unreal, reason = absent.reason(mention.id, self._graph, lexicon=self.lexicon)
        return Verdict(mention, "H1" if unreal else UNCHECKED, reason=reason)

    def _outdated(self, verdict: Verdict, node: Node) -> Verdict:
        heirs = self._heirs(node.id)
        if node.state is State.GONE and not heirs:
            return replace(verdict, grade="H3", reason=f"only in {node.source} {node.version}")
        replacement = heirs[0] if len(heirs) == 1 else ""
        return replace(verdict, grade="H2", reason=f"{node.state}", replacement=replacement, proposals=heirs)

    def _heirs(self, id_: str) -> tuple[str, ...]:
        """The live nodes at the end of a node's line of successors."""
        level, found = [id_], list[str]()
        for _ in range(_STEPS):
            nexts = [e.end for one in level for e in self._graph.around(one, "replaced-by") if e.start == one]
            level = []
            for heir in dict.fromkeys(nexts):
                node = self._graph.node(heir)
                if node is not None:
                    (found if node.state is State.LIVE else level).append(heir)
        return tuple(dict.fromkeys(found))

    def _misnamed(self, verdict: Verdict, node: Node, *, sighting: Sighting) -> Verdict | None:
        for claim in sighting.claims:
            if sighting.listed and not claim.marked:
                continue
            fault = self._namer.fault(node, claim, listed=sighting.listed)
            if fault is None:
                continue
            names = tuple(self._namer.name(id_, like=claim.name) for id_ in fault.right)
            tactic = fault.right and fault.right[0].startswith("TA") and not node.id.startswith("TA")
            proposals = fault.right if tactic else names
            return replace(verdict, grade=fault.grade, reason=fault.reason, claim=claim, right=", ".join(names),
                           proposals=proposals)  # fmt: skip
        return None

    def _misplaced(self, verdict: Verdict, node: Node, *, sighting: Sighting) -> Verdict | None:
        for claim in sighting.tactics if node.kind is Kind.TECHNIQUE else ():
            if fault := self._namer.tactic_fault(node, claim):
                right = ", ".join(self._namer.name(id_, like=claim.name) for id_ in fault.right)
                return replace(
                    verdict, grade="H7", reason=fault.reason, claim=claim, right=right, proposals=fault.right
                )
        return self._faulty_link(verdict, sighting.links, grade="H7")

    def _unfounded(self, verdict: Verdict, links: Iterable[Link]) -> Verdict | None:
        return self._faulty_link(verdict, links, grade="H6")

    def _faulty_link(self, verdict: Verdict, links: Iterable[Link], *, grade: str) -> Verdict | None:
        for link in links:
            fault = self._prover.fault(link)
            if fault and fault.grade == grade:
                swapped = link.relation == "child-of" and link.end == verdict.mention.id
                span = (verdict.mention.start, verdict.mention.end) if swapped else link.other
                claim = Claim("", *span, marked=True) if grade == "H7" else None
                many = link.relation == "achieves"
                right = ", ".join(fault.right if many else fault.right[:1])
                return replace(
                    verdict, grade=grade, reason=fault.reason, claim=claim, right=right, proposals=fault.right
                )
        return None

    def _unusable(self, verdict: Verdict, node: Node, *, sighting: Sighting) -> Verdict | None:
        before, after = sighting.before, sighting.after
        if _DENIED.search(before):
            return None
        if node.kind in (Kind.CATEGORY, Kind.VIEW):
            if _GROUPING.search(f"{before[-_BESIDE:]} {after[:_BESIDE]}") or _CALLED_GROUPING.match(after):
                return None
            reason = f"a {node.kind}, not a weakness"
        elif node.kind is Kind.WEAKNESS and node.usage in ("Discouraged", "Prohibited"):
            if sighting.is_parent or _SPEAKS_OF_USAGE.search(sighting.context):
                return None
            reason = f"mapping to it is {node.usage.lower()}"
        else:
            return None
        return replace(verdict, grade="H5", reason=reason, proposals=self._better(node.id, sighting.context))

    def _better(self, id_: str, sentence: str) -> tuple[str, ...]:
        """Up to three narrower weaknesses that may be mapped to, those with most of a sentence's words first."""
        told = set(stems(sentence)) - self.lexicon.stems(id_)
        ranked = sorted(self._narrower(id_), key=lambda found: -len(told & found[1]))
        return tuple(found for found, _ in ranked[:_PROPOSED])

    def _usable_below(self, id_: str) -> tuple[tuple[str, frozenset[str]], ...]:
        found = []
        for below in self._kin.descendants(id_):
            node = self._graph.node(below)
            if node and node.kind is Kind.WEAKNESS and node.state is State.LIVE and node.usage in _USABLE:
                found.append((below, self.lexicon.stems(below)))
        return tuple(found)
