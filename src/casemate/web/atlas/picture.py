"""The neighbourhood as a picture: the node in the middle, its neighbours by kind on both sides. Geometry only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from casemate.knowledge.node import EdgeKind, Kind, Node, State
from casemate.report.visible import visible
from casemate.web.atlas.sheet import Neighbour, Sheet, called
from casemate.web.atlas.words import KINDS, relation

WIDTH = 960
MOST = 38
"""How many neighbours are drawn."""
_MOST_OF_KIND = 12
_FEW_OF = {Kind.CATEGORY: 3, Kind.VIEW: 2}
"""Kinds that only sort; they leave the room to others."""
_COLUMN = 310
_ROW = 28
_PILL = 23
_HEADING = 26
_GAP = 14
_CENTRE_WIDTH = 176
_LINE = 18
_PADDING = 8
_SMALL_PX, _LARGE_PX, _CODE_PX = 6.9, 7.4, 7.3
"""How wide half a square character is: of a neighbour's name, of the node's own, of an id."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A neighbour: its box at (`x`, `y`), the line from the node to it, and the arrow's head on that line."""

    id: str
    label: str
    name: str
    title: str
    kind: EdgeKind
    former: bool
    x: int
    y: int
    line: str
    head: str
    thickness: float


@dataclass(frozen=True, slots=True)
class Cluster:
    """The drawn neighbours of one kind; `total` counts those that are not drawn, too."""

    kind: Kind
    heading: str
    total: int
    x: int
    y: int
    spots: tuple[Spot, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that the drawing needs, in pixels of a drawing WIDTH wide."""

    height: int
    pill: tuple[int, int]
    centre: tuple[int, int, int, int]
    id: str
    name: tuple[str, ...]
    clusters: tuple[Cluster, ...]


def picture(sheet: Sheet, language: str) -> Picture | None:
    """The neighbourhood of a node; None where it has no neighbours."""
    chosen = _chosen(sheet)
    if not chosen:
        return None
    sides = _sides(chosen)
    height = max(_height(chosen, side) for side in sides)
    name = _lines(_short(sheet.node, language), _CENTRE_WIDTH - 2 * _PADDING)
    tall = _LINE * (1 + len(name)) + 2 * _PADDING
    centre = ((WIDTH - _CENTRE_WIDTH) // 2, (max(height, tall) - tall) // 2, _CENTRE_WIDTH, tall)
    clusters: list[Cluster] = []
    for number, side in enumerate(sides):
        drawing = _Side(language, right=bool(number), top=(max(height, tall) - _height(chosen, side)) // 2)
        clusters += drawing.clusters(chosen, side, centre=centre)
    return Picture(max(height, tall), (_COLUMN, _PILL), centre, sheet.node.id, name, tuple(clusters))


@dataclass(frozen=True, slots=True)
class _Kind:
    """The neighbours of one kind that are drawn, each with all edges that lead to it."""

    drawn: tuple[tuple[Neighbour, ...], ...]
    total: int


@dataclass(frozen=True, slots=True)
class _Side:
    language: str
    right: bool
    top: int

    def clusters(
        self, chosen: dict[Kind, _Kind], side: Sequence[Kind], *, centre: tuple[int, int, int, int]
    ) -> list[Cluster]:
        x, y = (WIDTH - _COLUMN if self.right else 0), self.top
        count = sum(len(chosen[kind].drawn) for kind in side)
        found, place = [], 0
        for kind in side:
            spots = []
            for row, edges in enumerate(chosen[kind].drawn):
                start = centre[1] + centre[3] * (place + 1) // (count + 1)
                spots.append(self._spot(edges, (x, y + _HEADING + row * _ROW), start=start))
                place += 1
            heading = KINDS[self.language][kind]
            found.append(Cluster(kind, heading, chosen[kind].total, x, y, tuple(spots)))
            y += _HEADING + _ROW * len(spots) + _GAP
        return found

    def _spot(self, edges: Sequence[Neighbour], at: tuple[int, int], *, start: int) -> Spot:
        first, (x, y) = edges[0], at
        label = first.id if first.node is None or first.node.kind is not Kind.DETECTION else first.node.source
        room = _COLUMN - 2 * _PADDING - 8 - len(label) * _CODE_PX
        name = _short(first.node, self.language) if first.node else ""
        line, head = self._line(at, start=start, outward=first.edge.end == first.id)
        return Spot(
            first.id,
            label,
            _clipped(name, room / _SMALL_PX),
            "\n".join([first.id, name, *(self._said(edge) for edge in edges)]),
            first.edge.kind,
            all(one.edge.former for one in edges),
            x,
            y,
            line,
            head,
            round(1.4 + min(max(len(one.support) for one in edges), 24) / 8, 2),
        )

    def _said(self, neighbour: Neighbour) -> str:
        edge = neighbour.edge
        outward = edge.end == neighbour.id
        return f"{relation(edge.relation, self.language, outward=outward)}: {edge.kind}, {edge.source} {edge.version}"

    def _line(self, at: tuple[int, int], *, start: int, outward: bool) -> tuple[str, str]:
        """A curve from the middle's side to the box's, and a head at the box that points along the edge."""
        y = at[1] + _PILL // 2
        sign = 1 if self.right else -1
        near = WIDTH // 2 + sign * _CENTRE_WIDTH // 2
        far = WIDTH // 2 + sign * (WIDTH // 2 - _COLUMN)
        bend = (near + far) // 2
        tip, back = (far, far - sign * 8) if outward else (far - sign * 8, far)
        curve = f"M{near},{start} C{bend},{start} {bend},{y} {far - sign * 8},{y}"
        return curve, f"{tip},{y} {back},{y - 4} {back},{y + 4}"


def _chosen(sheet: Sheet) -> dict[Kind, _Kind]:
    """Who is drawn: of each kind some, turn by turn until the picture is full; live ones by present edges first."""
    edges: dict[str, list[Neighbour]] = {}
    for neighbour in sheet.neighbours:
        if neighbour.node and neighbour.id != sheet.node.id:
            edges.setdefault(neighbour.id, []).append(neighbour)
    kinds: dict[Kind, list[tuple[Neighbour, ...]]] = {kind: [] for kind in KINDS["en"]}
    for found in sorted(edges.values(), key=_rank):
        kinds[_node(found).kind].append(tuple(found))
    present = {kind: found for kind, found in kinds.items() if found}
    shares = _shares([min(len(found), _FEW_OF.get(kind, _MOST_OF_KIND)) for kind, found in present.items()])
    return {
        kind: _Kind(tuple(found[:share]), len(found))
        for (kind, found), share in zip(present.items(), shares, strict=True)
    }


def _node(found: Sequence[Neighbour]) -> Node:
    node = found[0].node
    assert node is not None  # noqa: S101 - only neighbours with a node are collected
    return node


def _rank(found: Sequence[Neighbour]) -> tuple[bool, bool, int]:
    former, live = all(one.edge.former for one in found), _node(found).state is State.LIVE
    return former, not live, -max(len(one.support) for one in found)


def _shares(wanted: Sequence[int]) -> list[int]:
    """How many of each: one more for each in turn, while there is room and somebody wants."""
    shares = [0] * len(wanted)
    left = min(MOST, sum(wanted))
    while left:
        for place, wish in enumerate(wanted):
            if left and shares[place] < wish:
                shares[place] += 1
                left -= 1
    return shares


def _sides(chosen: dict[Kind, _Kind]) -> tuple[list[Kind], list[Kind]]:
    """The kinds left and right, so that both columns are about as tall; the tallest first."""
    left: list[Kind] = []
    right: list[Kind] = []
    for kind in sorted(chosen, key=lambda kind: -len(chosen[kind].drawn)):
        min((right, left), key=lambda side: _height(chosen, side)).append(kind)
    order = list(KINDS["en"])
    return sorted(left, key=order.index), sorted(right, key=order.index)


def _height(chosen: dict[Kind, _Kind], side: Iterable[Kind]) -> int:
    heights = [_HEADING + _ROW * len(chosen[kind].drawn) for kind in side]
    return sum(heights) + _GAP * max(len(heights) - 1, 0)


def _short(node: Node, language: str) -> str:
    """A node's name; of CWE's long ones the usual name that they close with: `… ('SQL Injection')`."""
    name = visible(called(node, language))  # before it is measured
    usual = _USUAL.search(name)
    return usual[1] if usual else name


_USUAL = re.compile(r"\('([^']+)'\)$")


def _lines(text: str, width_px: float) -> tuple[str, ...]:
    """A text in at most three lines."""
    units = width_px / _LARGE_PX
    lines = [""]
    for word in _words(text):
        if lines[-1] and _units(lines[-1] + word) > units:
            lines.append("")
        lines[-1] = (lines[-1] + word).lstrip()
    if len(lines) > 3:
        lines[2:] = [lines[2].rstrip() + "…"]
    return tuple(_clipped(line.strip(), units) for line in lines if line.strip())


def _words(text: str) -> list[str]:
    """Pieces between which a line may break: words with the space before them, and every wide character."""
    pieces: list[str] = []
    for character in text:
        if character == " " or not pieces or ord(character) > 0x2E7F or ord(pieces[-1][-1]) > 0x2E7F:
            pieces.append(character)
        else:
            pieces[-1] += character
    return pieces


def _clipped(text: str, units: float) -> str:
    if _units(text) <= units:
        return text
    kept = ""
    for character in text:
        if _units(kept + character) > units - 1:
            break
        kept += character
    return kept.rstrip() + "…"


def _units(text: str) -> int:
    """How wide a text is in halves of a square character."""
    return sum(2 if ord(character) > 0x2E7F else 1 for character in text)
