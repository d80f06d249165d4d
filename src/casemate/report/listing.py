"""Verbatim code for readers: numbered lines with what is pointed at, and changes line by line."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Literal

from casemate.report.columns import cells
from casemate.report.document import Change, Code, Mark

Sign = Literal[" ", "-", "+"]


def lines_of(block: Code | Change) -> list[str]:
    """The lines of code as plain text: numbered where they have numbers, signed where they changed."""
    if isinstance(block, Code):
        return numbered(block)
    return [f"{sign} {line}".rstrip() for sign, line in changed(block)]


def numbered(code: Code) -> list[str]:
    """The lines with their numbers in a gutter; a `>` before those pointed at, and carets below a part of a line."""
    lines = code.text.split("\n")
    if not code.first:
        return lines
    width = len(str(code.first + len(lines) - 1))
    shown: list[str] = []
    for number, line in enumerate(lines, start=code.first):
        start, end = marked_columns(code.mark, line, number=number)
        gutter = f"{'>' if start < end else ' '} {number:>{width}} | "
        shown.append(gutter + line)
        if start < end and line[:start].strip() + line[end:].strip():
            shown.append(" " * (len(gutter) - 2) + "| " + _carets(line, slice(start, end)))
    return shown


def marked_columns(mark: Mark | None, line: str, *, number: int) -> tuple[int, int]:
    """From where to where a line is pointed at, as a slice of it; (0, 0) where it is not."""
    if mark is None or not mark.line <= number <= mark.end_line:
        return 0, 0
    start = mark.column - 1 if mark.column and number == mark.line else len(line) - len(line.lstrip())
    end = mark.end_column - 1 if mark.end_column and number == mark.end_line else len(line)
    start, end = min(start, len(line)), min(end, len(line))
    return (start, end) if start < end else (0, 0)


def changed(change: Change) -> Iterator[tuple[Sign, str]]:
    """The lines of a change in order, each with whether it stays, goes or comes."""
    before, after = change.before.split("\n"), change.after.split("\n")
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, old, old_end, new, new_end in matcher.get_opcodes():
        if kind == "equal":
            yield from ((" ", line) for line in before[old:old_end])
            continue
        yield from (("-", line) for line in before[old:old_end])
        yield from (("+", line) for line in after[new:new_end])


def _carets(line: str, span: slice) -> str:
    before = "".join("\t" if character == "\t" else " " * cells(character) for character in line[: span.start])
    return before + "^" * cells(line[span])
