"""Verbatim code as HTML: numbered lines with what is pointed at, and changes. Every text is escaped."""

from __future__ import annotations

from markupsafe import Markup

from casemate.report.document import Change, Code
from casemate.report.listing import Sign, changed, marked_columns

_CHANGED: dict[Sign, Markup] = {
    " ": Markup("  {}"),
    "-": Markup("<del>- {}</del>"),
    "+": Markup("<ins>+ {}</ins>"),
}


def listing(code: Code) -> Markup:
    """The lines; numbered where they have numbers, with what is pointed at in a `mark`."""
    if not code.first:
        return Markup("{}").format(code.text)
    lines = code.text.split("\n")
    width = len(str(code.first + len(lines) - 1))
    return Markup("\n").join(
        Markup('<span class="line">{}</span>{}').format(f"{number:>{width}}", _marked(code, line, number=number))
        for number, line in enumerate(lines, start=code.first)
    )


def difference(change: Change) -> Markup:
    """The lines of a change: what goes in `del`, what comes in `ins`."""
    return Markup("\n").join(_CHANGED[sign].format(line) for sign, line in changed(change))


def _marked(code: Code, line: str, *, number: int) -> Markup:
    start, end = marked_columns(code.mark, line, number=number)
    if start == end:
        return Markup("{}").format(line)
    return Markup("{}<mark>{}</mark>{}").format(line[:start], line[start:end], line[end:])
