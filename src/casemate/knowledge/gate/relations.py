"""Which relations a text claims between the identifiers of one sentence: `CWE-89 maps to T1190`. Pure.

Only what is said outright counts: the verb must stand between the two, with nothing but names and small words around
it, not negated and not in a question. What is not understood is not a claim.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from casemate.knowledge.gate import wordings
from casemate.knowledge.gate.mentions import NO_YEAR, Mention


@dataclass(frozen=True, slots=True)
class Link:
    """`start` `relation` `end`, as the graph would write it; `about` is what the sentence is about, one of the two.

    `other` is the span of the other of the two; `authority` whether the text says that a catalogue or law says so;
    `implied` if it only follows from two columns of one row, or if the text only supposes it, so that nothing but a
    contradiction counts.
    """

    start: str
    relation: str
    end: str
    about: int
    other: tuple[int, int]
    authority: bool = False
    implied: bool = False


_LONGEST_GAP = 160
_LONGEST_LIST = 24
_CLAUSES = ("GDPR", "HIPAA", "MLPS")
_CONTEXT = 60


def family(id_: str) -> str:
    """What kind of thing an id is, by its spelling alone: a letter each."""
    if id_.startswith(NO_YEAR) or (id_[0] == "A" and id_[1:2].isdigit()):
        return "R"
    if id_.startswith(_CLAUSES):
        return "L"
    return next((letter for prefix, letter in _FAMILIES if id_.startswith(prefix)), "")


_FAMILIES = (("CWE", "W"), ("CAPEC", "P"), ("TA", "G"), ("T", "T"), ("M", "M"), ("D3-", "D"), ("Sigma", "S"),
             ("NIST", "N"))  # fmt: skip
_STATEMENTS: dict[tuple[str, str], dict[str, tuple[str, bool]]] = {
    ("W", "T"): dict.fromkeys(("maps", "leads", "exploited"), ("enables", True)),
    ("T", "W"): dict.fromkeys(("maps", "exploits", "attack_on"), ("enables", False)),
    ("W", "P"): dict.fromkeys(("maps", "leads", "exploited"), ("attacked-by", True)),
    ("P", "W"): dict.fromkeys(("maps", "exploits", "attack_on"), ("attacked-by", False)),
    ("P", "T"): dict.fromkeys(("maps", "carried"), ("carried-out-by", True)),
    ("T", "P"): {"maps": ("carried-out-by", False)},
    ("T", "G"): dict.fromkeys(("belongs", "maps", "child"), ("achieves", True)),
    ("G", "T"): {"includes": ("achieves", False)},
    ("W", "R"): dict.fromkeys(("belongs", "maps", "child"), ("has-member", False)),
    ("R", "W"): dict.fromkeys(("includes", "maps"), ("has-member", True)),
    ("M", "T"): {"mitigates": ("mitigates", True)},
    ("T", "M"): {"mitigated": ("mitigates", False)},
    ("N", "T"): dict.fromkeys(("mitigates", "maps"), ("mitigates", True)),
    ("T", "N"): {"mitigated": ("mitigates", False)},
    ("D", "T"): {"mitigates": ("counters", True)},
    ("T", "D"): {"mitigated": ("counters", False)},
    ("D", "W"): {"mitigates": ("counters", True)},
    ("W", "D"): {"mitigated": ("counters", False)},
    ("S", "T"): dict.fromkeys(("detects", "maps"), ("detects", True)),
    ("T", "S"): {"detected": ("detects", False)},
    ("W", "L"): dict.fromkeys(("touches", "maps", "leads", "belongs"), ("touches", True)),
    ("L", "W"): {"maps": ("touches", False)},
} | {
    (kind, kind): {"child": ("child-of", True), "parent": ("child-of", False), "has_parent": ("child-of", True),
                   "precedes": ("can-precede", True), "leads": ("can-precede", True)}
    for kind in "WTP"
}  # fmt: skip
"""First family, second family → the form of words → the relation, and whether the first is its start."""


def links(text: str, found: Sequence[Mention]) -> Iterator[Link]:
    """Every relation that a text claims between its mentions."""
    families = [family(mention.id) for mention in found]
    gaps = [
        text[left.end : right.start] if right.start - left.end <= _LONGEST_GAP else "\n"
        for left, right in pairwise(found)
    ]
    joints = [bool("\n" not in gap and wordings.JOINT.match(gap)) for gap in gaps]
    for place, gap in enumerate(gaps):
        first, second = place, place + 1
        if place > 0 and gap[:1] in (")", "）") and wordings.OPENS_ASIDE.match(gaps[place - 1]):
            first = place - 1  # the left one stands in the brackets of what the sentence is about
        statements = _STATEMENTS.get((families[first], families[second]))
        if not statements or "\n" in gap:
            continue
        form = _form(text, found[first], right=found[second], gap=gap.lstrip(")）]"))
        if form not in statements or _is_denied(text, found[first], right=found[second]):
            continue
        statement = _stated(text, found[first], right=found[second], said=statements[form])
        for left in _chain(first, joints, families=families, step=-1):
            for right in _chain(second, joints, families=families, step=1):
                yield _link(found, left, right=right, statement=statement)


@dataclass(frozen=True, slots=True)
class Statement:
    """A relation as a form of words states it; `forward` if the first of the two is its start."""

    relation: str
    forward: bool
    authority: bool
    implied: bool


def _link(found: Sequence[Mention], left: int, *, right: int, statement: Statement) -> Link:
    """The link of two mentions; a statement on a class or tactic is about the member, all others about the first."""
    start, end = (left, right) if statement.forward else (right, left)
    grouped = family(found[left].id) + statement.relation in ("Rhas-member", "Gachieves")
    about = right if grouped else left
    span = found[left if grouped else right]
    return Link(found[start].id, statement.relation, found[end].id, about, (span.start, span.end),
                statement.authority, statement.implied)  # fmt: skip


def _form(text: str, left: Mention, *, right: Mention, gap: str) -> str:
    """The form of words that ties two mentions; empty if none does."""
    grouped = (family(left.id), family(right.id)) in (("T", "G"), ("W", "R"))
    if grouped and wordings.BRACKET.match(gap):
        return "belongs"
    for form, opening, closing in wordings.FRAMED:
        if closing.match(text, right.end) and opening.match(gap):
            return form
    if match := wordings.VERB.match(gap):
        return next(form for form in wordings.FORMS if match[form] is not None)
    contained = wordings.INSIDE.match(gap) or (wordings.CONTAINED.search(gap) and not wordings.PARTS.search(gap))
    return "belongs" if grouped and contained else _embracing(text, left, right=right, gap=gap)


def _embracing(text: str, left: Mention, *, right: Mention, gap: str) -> str:
    """The form of words that begins before the first: `maps … to …`, `the parent of … is …`; empty if none does."""
    before = max(0, left.start - _CONTEXT)
    if wordings.IS.match(gap) and wordings.PARENT_BEFORE.search(text, before, left.start):
        return "has_parent"
    if not wordings.TO.match(gap):
        return ""
    mapped = wordings.MAPS_BEFORE.search(text, before, left.start) or wordings.MAPPED_BEHIND.match(text, right.end)
    return "maps" if mapped else ""


def _chain(place: int, joints: Sequence[bool], *, families: Sequence[str], step: int) -> list[int]:
    """A mention and those that a list joins to it, all of one family."""
    chain = [place]
    while len(chain) <= _LONGEST_LIST:
        at = chain[-1]
        joint = at if step > 0 else at - 1
        if not 0 <= joint < len(joints) or not joints[joint] or families[at + step] != families[place]:
            break
        chain.append(at + step)
    return chain


def _is_denied(text: str, left: Mention, *, right: Mention) -> bool:
    """Whether the sentence denies, asks or only supposes what it says of two mentions."""
    before = _sentence_before(text, left.start, reach=_CONTEXT)
    clauses = [cut.end() for cut in wordings.CLAUSE.finditer(before)]
    if wordings.DENIED_BEFORE.search(before, clauses[-1] if clauses else 0):
        return True
    if wordings.DENIED.search(wordings.BRACKETS.sub("", text[left.end : right.start])):
        return True
    stop = wordings.STOP.search(text, right.end, right.end + 2 * _CONTEXT)
    return bool(wordings.ASKED.search(before) or (stop and stop.group() in "?？"))


def _stated(text: str, left: Mention, *, right: Mention, said: tuple[str, bool]) -> Statement:
    """The statement, with whether the sentence says that a catalogue or a law says so, or that it only may be so."""
    relation, forward = said
    stop = wordings.STOP.search(text, right.end, right.end + 2 * _CONTEXT)
    behind = text[left.start : stop.start() if stop else right.end + 2 * _CONTEXT]
    sentence = _sentence_before(text, left.start, reach=2 * _CONTEXT) + behind
    claimed = bool(wordings.AUTHORITY.search(wordings.NO_AUTHORITY.sub(" ", sentence)))
    denied = bool(wordings.NO_AUTHORITY.search(sentence))
    hedged = denied or bool(wordings.HEDGED.search(sentence))
    legal = relation == "touches" and bool(wordings.LEGAL.search(text, left.end, right.end + len("violation")))
    authority = (claimed and not denied) or (legal and not hedged)
    return Statement(relation, forward, authority, implied=not authority and (hedged or relation == "can-precede"))


def _sentence_before(text: str, start: int, *, reach: int) -> str:
    before = text[max(0, start - reach) : start]
    stops = [stop.end() for stop in wordings.STOP.finditer(before)]
    return before[stops[-1] if stops else 0 :]
