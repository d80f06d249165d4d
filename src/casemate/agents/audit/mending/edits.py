"""Changes of source text at places of its tree. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from casemate.agents.audit.facts.syntax import Source
from casemate.finding import Location


@dataclass(frozen=True, slots=True)
class Edit:
    """New text for one span of the source."""

    location: Location
    text: str


@dataclass(frozen=True, slots=True)
class Region:
    """Whole lines `first` to `last` (from 1) and the text to put in their place."""

    first: int
    last: int
    text: str


def region(source: Source, edits: Sequence[Edit]) -> Region:
    """The lines of all statements that the edits touch, with the edits made."""
    spans = [_statement_lines(source, edit.location) for edit in edits]
    first, last = min(span[0] for span in spans), max(span[1] for span in spans)
    lines = list(source.lines[first - 1 : last])
    for edit in sorted(edits, key=lambda edit: (edit.location.line, edit.location.column), reverse=True):
        at = edit.location
        start, end = at.line - first, at.end_line - first
        head, tail = lines[start][: at.column - 1], lines[end][at.end_column - 1 :]
        lines[start : end + 1] = (head + edit.text + tail).split("\n")
    return Region(first, last, "\n".join(lines))


def replaced(source: Source, change: Region) -> str:
    """The whole file with the region's lines replaced."""
    return "\n".join([*source.lines[: change.first - 1], *change.text.split("\n"), *source.lines[change.last :]])


def parents(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    """The parent of every node."""
    return {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}


def find(source: Source, location: Location) -> Iterator[ast.AST]:
    """Nodes that fill a span exactly, outermost first."""
    for node in ast.walk(source.tree):
        if getattr(node, "lineno", 0) == location.line and source.location(node) == location:
            yield node


def statements(tree: ast.AST) -> Iterable[ast.stmt]:
    """Every statement of a tree."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.stmt))


def _statement_lines(source: Source, location: Location) -> tuple[int, int]:
    """The lines of the innermost statement around a span; of a compound one only those of the span."""
    best = (location.line, location.end_line)
    for node in statements(source.tree):
        end = node.end_lineno or node.lineno
        simple = not hasattr(node, "body") and not isinstance(node, ast.Match)
        if simple and node.lineno <= location.line and location.end_line <= end:
            best = (node.lineno, end)
    return best
