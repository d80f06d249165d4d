"""Documents as plain text for a terminal. No colour: it must read the same in a pipe, a mail and a log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from casemate.report import document as d
from casemate.report.columns import cells, padded, wrapped
from casemate.report.listing import lines_of

_MARKS: dict[d.Tone, str] = {"good": "✓", "bad": "✗", "warn": "!", "note": "·"}
_GAP = "  "
_NARROWEST = 6
"""No table column gets narrower than this, in terminal cells."""


def render(document: d.Document, width: int = 100) -> str:
    """The document as lines of at most `width` terminal cells (verbatim code and addresses keep their own)."""
    document = d.shown(document)
    lines = [*_title(document.title, "="), *_blocks(document.lead, width)]
    for section in document.sections:
        lines += _section(section, width)
    return "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"


def _section(section: d.Section, width: int) -> list[str]:
    lines = ["", *_title(section.title, "-"), *_blocks(section.blocks, width)]
    for inner in section.sections:
        lines += ["", *wrapped(d.one_line(inner.title), width), *_blocks(inner.blocks, width, indent="  ")]
    return lines


def _title(title: str, rule: str) -> list[str]:
    line = d.one_line(title)
    return [line, rule * max(1, cells(line))]


def _blocks(blocks: tuple[d.Block, ...], width: int, *, indent: str = "") -> Iterator[str]:
    for position, block in enumerate(blocks):
        if position or not indent:
            yield ""
        for line in _block(block, width - len(indent)):
            yield indent + line


def _block(block: d.Block, width: int) -> list[str]:
    match block:
        case d.Paragraph(text=text):
            lines = wrapped(text, width)
        case d.Verdict(tone=tone, text=text):
            lines = _hanging(f"{_MARKS[tone]} ", text, width=width)
        case d.Figures(figures=figures):
            lines = _figures(figures, width)
        case d.Table():
            lines = _table(block, width)
        case d.Code(caption=caption) | d.Change(caption=caption):
            lines = [*_caption(caption), *(f"    {line}" for line in lines_of(block))]
        case d.Steps(steps=steps, caption=caption):
            lines = [
                *_caption(caption),
                *(line for at, step in enumerate(steps, 1) for line in _step(at, step, width=width)),
            ]
        case d.Fold(title=title, blocks=blocks):
            lines = [*_caption(title), *_blocks(blocks, width)]
        case d.Quote(speaker=speaker, text=text):
            lines = [*_caption(speaker), *(f"  | {line}" for line in wrapped(text, width - 4))]
        case d.Links(label=label, addresses=addresses):
            lines = [*_caption(label), *(f"    {d.one_line(address)}" for address in addresses)]
        case _:
            assert_never(block)
    return lines


def _step(number: int, step: d.Step, *, width: int) -> list[str]:
    head = ": ".join(filter(None, (step.place, step.note)))
    lines = _hanging(f"  {number}. ", d.one_line(head), width=width)
    return [*lines, f"        {d.one_line(step.code)}"] if step.code else lines


def _caption(caption: str) -> list[str]:
    return [f"{d.one_line(caption)}:"] if caption else []


def _hanging(mark: str, text: str, *, width: int) -> list[str]:
    first, *rest = wrapped(text, width - cells(mark))
    return [mark + first, *(" " * cells(mark) + line for line in rest)]


def _figures(figures: tuple[d.Figure, ...], width: int) -> list[str]:
    column = max((cells(d.one_line(figure.label)) for figure in figures), default=0)
    lines: list[str] = []
    for figure in figures:
        lines += _hanging(padded(d.one_line(figure.label), column) + _GAP, figure.value, width=width)
    return lines


def _table(table: d.Table, width: int) -> list[str]:
    rows = [[d.one_line(cell) for cell in row] for row in (table.header, *table.rows)]
    widths = _fitted([max(cells(cell) for cell in column) for column in zip(*rows, strict=True)], width)
    header, *body = [_row(row, widths) for row in rows]
    rule = _GAP.join("-" * column for column in widths)
    return [*header, rule, *(line for row in body for line in row)]


def _row(row: list[str], widths: list[int]) -> list[str]:
    columns = [wrapped(cell, column) for cell, column in zip(row, widths, strict=True)]
    height = max(len(column) for column in columns)
    return [
        _GAP.join(
            padded(column[line] if line < len(column) else "", wide)
            for column, wide in zip(columns, widths, strict=True)
        )
        for line in range(height)
    ]


def _fitted(widths: list[int], width: int) -> list[int]:
    """Column widths whose sum fits: the widest gives way, down to the narrowest that can be read."""
    room = width - len(_GAP) * (len(widths) - 1)
    while sum(widths) > room and max(widths) > _NARROWEST:
        widest = widths.index(max(widths))
        widths[widest] -= 1
    return widths
