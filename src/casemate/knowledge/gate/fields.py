"""What the labels of a table row or a JSON object say of the identifiers in it: names, tactics, relations. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations

from casemate.knowledge import words
from casemate.knowledge.gate.claims import Claim
from casemate.knowledge.gate.layout import MOST_FIELDS, Field, Row
from casemate.knowledge.gate.lexicon import Lexicon
from casemate.knowledge.gate.mentions import Mention
from casemate.knowledge.gate.relations import Link, family
from casemate.knowledge.gate.sightings import Sighting

_NAME = re.compile(r"(?P<of>.*?)[\s_.\-]*(?:names?|titles?|名称|标题|名)\s*\Z", re.IGNORECASE)
_ID = re.compile(r"(?P<of>.*?)[\s_.\-]*(?:ids?|numbers?|编号|标识)\s*\Z", re.IGNORECASE)
_LABELLED = re.compile(r"\W*(?:(?:[A-Za-z&.]{1,12}|[\u3400-\u9fff]{1,4})\W{0,3})?")
"""What may stand before the identifier that a cell is about: a mark, a label such as `ATT&CK:`."""
_TACTIC = re.compile(r"tactic|战术|kill.?chain", re.IGNORECASE)
_MAPPING = re.compile(r"map|enable|lead|exploit|映射|对应|导致|利用", re.IGNORECASE)
_OFFICIAL = re.compile(r"official|MITRE.?map|官方", re.IGNORECASE)
_PARENT = re.compile(r"parent|child.?of|父|上级", re.IGNORECASE)
_MITIGATION = re.compile(r"mitigat|缓解", re.IGNORECASE)
_COUNTERS = re.compile(r"counter(?!measure)|mitigat|对抗|缓解|防御", re.IGNORECASE)
_DETECTS = re.compile(r"detect|检测", re.IGNORECASE)
_TOUCHES = re.compile(r"touch|violat|breach|compl[iy]|违反|符合|涉及", re.IGNORECASE)
_LEGAL = re.compile(r"violat|breach|compl[iy]|违反|符合", re.IGNORECASE)
_LIST = "toolComponent"
"""Under which label a row has the name of the list that its identifier is of, as SARIF has it."""
_SPARE = 14
"""How much more than its identifier an identifier's cell may hold."""
_MOST_CELLS = 24
"""More identifiers than the columns of one record have; what holds more is a list."""
_FAMILY_WORDS = {
    "W": ("cwe", "weakness", "vulnerability", "弱点", "漏洞", "漏洞类型", "缺陷"),
    "T": ("technique", "attack", "attacktechnique", "mitretechnique", "mitre", "mitreattack", "攻击技术", "技术"),
    "P": ("capec", "pattern", "attackpattern", "攻击模式"),
    "G": ("tactic", "战术"),
    "M": ("mitigation", "缓解", "缓解措施"),
    "R": ("owasp", "owasptop10", "category", "risk"),
    "N": ("nist", "control", "控制", "控制项"),
    "L": ("gdpr", "hipaa", "mlps", "clause", "article", "条款", "条", "法条"),
    "D": ("d3fend", "countermeasure"),
    "S": ("sigma", "rule", "规则"),
}
_OF_A_CASE = frozenset(("vulnerability", "漏洞"))
"""What is named so is a case of a weakness as often as the weakness."""
_BARE_NAMES = frozenset(
    ("weakness", "vulnerability", "technique", "tactic", "弱点", "漏洞", "技术", "pattern", "clause", "条款")
)


@dataclass(frozen=True, slots=True)
class Described:
    """What a row says, by the place of the mention that it says it of."""

    names: dict[int, Claim] = field(default_factory=dict)
    tactics: dict[int, list[Claim]] = field(default_factory=lambda: defaultdict(list))
    links: dict[int, list[Link]] = field(default_factory=lambda: defaultdict(list))
    parents: set[int] = field(default_factory=set)
    labels: dict[int, str] = field(default_factory=dict)

    @property
    def places(self) -> set[int]:
        """Which mentions it speaks of."""
        return {*self.names, *self.tactics, *self.links, *self.parents, *self.labels}

    def onto(self, sighting: Sighting, place: int) -> Sighting:
        """The sighting with what the row adds; a name in its own column comes first."""
        own = (self.names[place],) if place in self.names else ()
        return replace(
            sighting,
            claims=(*own, *sighting.claims),
            tactics=(*self.tactics.get(place, ()), *sighting.tactics),
            context=f"{self.labels.get(place, '')} {sighting.context}",
            links=(*sighting.links, *self.links.get(place, ())),
            after=" ".join((sighting.after, *(claim.name for claim in own))),
            is_parent=sighting.is_parent or place in self.parents,
        )


@dataclass(frozen=True, slots=True)
class _Cell:
    field: Field
    places: tuple[int, ...]
    families: frozenset[str]
    leads: bool
    """Whether it begins with an identifier; a description only mentions some: a row's other fields are not theirs."""

    @property
    def is_id(self) -> bool:
        return len(self.places) == 1


def describe(row: Row, found: Sequence[Mention], *, lexicon: Lexicon, table: bool) -> Described:
    """What a row says of the mentions in it.

    Args:
        row: its fields; their labels are headings or keys.
        found: every mention of the text, in reading order.
        lexicon: names, to know a tactic by.
        table: whether neighbouring columns may go together without a word.
    """
    described = Described()
    if len(row) > MOST_FIELDS:
        return described
    cells = [_cell(one, found) for one in row]
    if not any(cell.places for cell in cells):
        return described
    list_ = next((cell.field.text for cell in cells if cell.field.label == _LIST), "")
    for place, claim in _names(cells, found, lexicon=lexicon, table=table):
        described.names.setdefault(place, claim)
    for place, claim in _tactics(cells, lexicon):
        described.tactics[place].append(claim)
    for cell in cells:
        described.labels.update((place, f"{cell.field.label} {list_}") for place in cell.places)
    described.parents.update(place for cell in cells if _PARENT.search(cell.field.label) for place in cell.places)
    holding = [cell for cell in cells if cell.places and cell.leads][:_MOST_CELLS]
    for left, right in permutations(holding, 2):
        for link in _links(left, right, found=found):
            described.links[link.about].append(link)
    return described


def _cell(one: Field, found: Sequence[Mention]) -> _Cell:
    first = bisect_left(found, one.start, key=lambda mention: mention.start)
    last = bisect_left(found, max(one.end, one.start + 1), key=lambda mention: mention.start)
    places = tuple(range(first, last))
    before = one.text[: max(0, found[places[0]].start - one.start)] if places else ""
    return _Cell(one, places, frozenset(family(found[place].id) for place in places), bool(_LABELLED.fullmatch(before)))


def _names(
    cells: list[_Cell], found: Sequence[Mention], *, lexicon: Lexicon, table: bool
) -> Iterator[tuple[int, Claim]]:
    ids = [
        (at, cell) for at, cell in enumerate(cells)
        if cell.is_id and len(cell.field.text) - (found[cell.places[0]].end - found[cell.places[0]].start) <= _SPARE
    ]  # fmt: skip
    for at, cell in enumerate(cells):
        if cell.places or not cell.field.text.strip():
            continue
        whose, certain = _whose(at, cell.field.label, ids=ids, table=table)
        if whose is None:
            continue
        one = cell.field
        name = _spaced(one.text, lexicon)
        if certain or words.fold(name) in lexicon.names:
            yield whose.places[0], Claim(name, one.start, one.end, marked=True, field=certain)


def _spaced(name: str, lexicon: Lexicon) -> str:
    """A name as words: reports write `PathTraversal`, `path-traversal` and `path_traversal`."""
    if " " in name or not name.isascii() or words.fold(name) in lexicon.names:
        return name
    return re.sub(r"[-_]+|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name).strip()


def _whose(at: int, label: str, *, ids: list[tuple[int, _Cell]], table: bool) -> tuple[_Cell | None, bool]:
    """The identifier that a value names, and whether its label says so."""
    named = _NAME.fullmatch(label.strip())
    of = _key(named["of"] if named else label)
    if not named and of not in _BARE_NAMES:
        left = next((cell for place, cell in ids if place == at - 1), None)
        return (left, False) if table and not label else (None, False)
    exact = [cell for _, cell in ids if of and _key_of_id(cell.field.label) == of]
    kind = next((letter for letter, known in _FAMILY_WORDS.items() if of in known), "")
    of_kind = [cell for _, cell in ids if kind and kind in cell.families]
    fitting = exact or of_kind
    if len(fitting) == 1:
        return fitting[0], of not in _OF_A_CASE and (bool(named) or kind != "W")
    if of or not ids:
        return None, False
    if table:
        before = [(place, cell) for place, cell in ids if place < at]
        place, nearest = before[-1] if before else ids[0]
        return nearest, place == at - 1
    own = [cell for _, cell in ids if _key(cell.field.label) in ("id", "externalid", "identifier")]
    if len(own) == 1:
        return own[0], True
    return (ids[0][1], False) if len(ids) == 1 else (None, False)


def _key(label: str) -> str:
    return re.sub(r"[^0-9a-z\u3400-\u9fff]", "", label.casefold())


def _key_of_id(label: str) -> str:
    parted = _ID.fullmatch(label.strip())
    return _key(parted["of"] if parted else label)


def _tactics(cells: list[_Cell], lexicon: Lexicon) -> Iterator[tuple[int, Claim]]:
    """The tactics that a row names in a column of their own, for each technique in it."""
    techniques = [place for cell in cells if cell.leads and "T" in cell.families for place in cell.places]
    for cell in cells if techniques else ():
        if _TACTIC.search(cell.field.label) and not cell.places:
            for claim in _tactic_names(cell.field, lexicon):
                yield from ((place, claim) for place in techniques)


def _tactic_names(one: Field, lexicon: Lexicon) -> Iterator[Claim]:
    for match in re.finditer(r"[^,;/|，；、]+", one.text):
        name = match.group().strip()
        spelt = name.replace("-", " ").replace("_", " ")
        if words.fold(spelt) in lexicon.tactics:
            start = one.start + match.start() + len(match.group()) - len(match.group().lstrip())
            yield Claim(spelt, start, start + len(name), marked=True)


def _links(left: _Cell, right: _Cell, *, found: Sequence[Mention]) -> Iterator[Link]:
    """What two fields of one row say together, seen from the left one."""
    label = f"{left.field.label} {right.field.label}"
    for a in left.places:
        for b in right.places:
            relation = _relation(family(found[a].id) + family(found[b].id), left.field.label, right=right.field.label)
            if relation:
                start, end = (b, a) if relation in ("has-member", "mitigates") else (a, b)
                legal = relation == "touches" and bool(_LEGAL.search(label))
                yield Link(
                    found[start].id,
                    relation,
                    found[end].id,
                    about=a,
                    other=(found[b].start, found[b].end),
                    authority=legal or bool(_OFFICIAL.search(label)),
                    implied=relation in ("achieves", "has-member"),
                )


_COLUMNS = {"TG": "achieves", "WR": "has-member", "WT": "enables", "WP": "attacked-by", "TM": "mitigates",
            "PT": "carried-out-by", "DT": "counters", "ST": "detects", "WL": "touches", "WW": "child-of",
            "TT": "child-of", "PP": "child-of"}  # fmt: skip
"""What two columns of such families may say of each other."""
_LABELS = {"enables": _MAPPING, "attacked-by": _MAPPING, "carried-out-by": _MAPPING, "counters": _COUNTERS,
           "touches": _TOUCHES, "mitigates": _MITIGATION, "detects": _DETECTS, "child-of": _PARENT}  # fmt: skip
"""The label that makes two columns say it; tactics and classes need none."""


def _relation(families: str, left: str, *, right: str) -> str:
    """The relation that the labels of two columns claim; empty if they claim none."""
    relation = _COLUMNS.get(families, "")
    label = _LABELS.get(relation)
    if label is None:
        return relation
    labels = f"{left} {right}"
    if relation in ("mitigates", "detects", "child-of"):  # these are told by the right column alone
        claimed = bool(label.search(right)) and not _PARENT.search(left)
    else:
        claimed = bool(label.search(labels) or (relation != "touches" and _OFFICIAL.search(labels)))
    return relation if claimed else ""
