"""Notebooks (nbformat 2 to 4) as one module: their code cells in order, each place where its author finds it.

What cells show and what is noted about them is searched for secrets only. Source: the nbformat JSON schema.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from casemate.agents.audit.facts.summary import Hit, Module
from casemate.agents.audit.facts.syntax import Source, parse
from casemate.agents.audit.flow.statements import summarize
from casemate.agents.audit.reading import magics, placed
from casemate.agents.audit.reading.placed import Lines, Placed
from casemate.agents.audit.reading.plain import told
from casemate.agents.audit.reading.relocated import relocated
from casemate.finding import Cell, Location

_PICTURES = ("image/", "application/pdf", "application/octet-stream", "video/", "audio/")


@dataclass(frozen=True, slots=True)
class _Code:
    """A code cell: its number, its text, and for each character where it stands in the file."""

    number: int
    text: str
    spans: tuple[tuple[int, int], ...]
    begins: tuple[int, ...]


@dataclass(slots=True)
class _Notebook:
    """A notebook while it is read: lines of Python and of the cells themselves, and whose they are."""

    path: str
    lines: Lines
    python: list[str] = field(default_factory=lambda: [f"import os as {magics.SHELL}"])
    shown: list[str] = field(default_factory=lambda: [""])
    firsts: list[int] = field(default_factory=list)
    cells: list[_Code] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def add(self, cell: _Code) -> None:
        """Append a cell, or note why it is not analysed."""
        translated = magics.translated(cell.text)
        if translated.language:
            self.others.append(f"{cell.number} ({translated.language})")
            return
        try:
            parse(translated.text, self.path)
        except SyntaxError as error:
            self.broken.append(f"cell {cell.number}: not valid Python: {error.msg} (line {error.lineno or 1})")
            return
        self.firsts.append(len(self.python) + 1)
        self.cells.append(cell)
        self.python += translated.text.split("\n")
        self.shown += cell.text.split("\n")

    def source(self) -> Source:
        """All of it as one file, in lines of Python; what is quoted are the cells as they stand."""
        return replace(parse("\n".join(self.python), self.path), lines=tuple(self.shown))

    def place(self, found: Location) -> Location:
        """Where a span of the module stands in the file, and in which cell."""
        at = bisect_right(self.firsts, found.line) - 1
        if at < 0:
            return found
        cell, first = self.cells[at], self.firsts[at]
        begin, _ = _span(cell, found.line - first, column=found.column - 1)
        _, end = _span(cell, min(found.end_line - first, len(cell.begins) - 1), column=found.end_column - 2)
        line, column = self.lines.place(begin)
        end_line, end_column = self.lines.place(max(begin, end))
        return Location(self.path, line, column, end_line, end_column, Cell(cell.number, found.line - first + 1))


def summarize_notebook(text: str, path: str) -> Module:
    """Analyse a notebook.

    Raises:
        ValueError: it is no notebook.
        RecursionError: it is nested too deeply.
    """
    whole = placed.load(text)
    cells = _cells(whole)
    language = _language(whole)
    if language not in {"python", "ipython"}:
        return Module(path, "", skipped=f"no rules for this language (notebook in {language})")
    notebook = _Notebook(path, Lines.of(text))
    for number, cell in enumerate(cells, start=1):
        if cell.get("cell_type") == "code":
            notebook.add(_code(number, cell))
    module = relocated(summarize(notebook.source()), notebook.place)
    return replace(
        module,
        hits=(*module.hits, *_secrets(whole, cells, text=text, path=path)),
        remarks=(f"cells in other languages not analysed: {', '.join(notebook.others)}",) if notebook.others else (),
        unread="; ".join(notebook.broken),
    )


def _cells(whole: Any) -> list[dict[str, Any]]:
    match whole:
        case {"cells": list(cells)}:
            found = cells
        case {"worksheets": list(sheets)}:
            found = [cell for sheet in sheets if isinstance(sheet, dict) for cell in sheet.get("cells") or ()]
        case _:
            raise ValueError("no notebook: it has no cells")
    return [cell if isinstance(cell, dict) else {} for cell in found]


def _language(whole: dict[str, Any]) -> str:
    match whole.get("metadata"):
        case {"language_info": {"name": str(name)}} | {"kernelspec": {"language": str(name)}}:
            return name.lower()
        case _:
            return "python"


def _code(number: int, cell: dict[str, Any]) -> _Code:
    source = cell.get("source", cell.get("input", ""))
    pieces = [piece for piece in (source if isinstance(source, list) else [source]) if isinstance(piece, Placed)]
    text = "".join(pieces)
    spans = tuple(span for piece in pieces for span in piece.spans())
    begins = (0, *(at + 1 for at, character in enumerate(text) if character == "\n"))
    return _Code(number, text, spans, begins)


def _span(cell: _Code, line: int, *, column: int) -> tuple[int, int]:
    """Where a character of a cell stands in the file; beyond the end of its line that is the line's last."""
    begin = cell.begins[line]
    end = cell.begins[line + 1] - 1 if line + 1 < len(cell.begins) else len(cell.text)
    at = max(begin, min(begin + column, end - 1))
    return cell.spans[min(at, len(cell.spans) - 1)] if cell.spans else (0, 0)


def _secrets(whole: dict[str, Any], cells: list[dict[str, Any]], *, text: str, path: str) -> Iterator[Hit]:
    """Secrets in what is no code: text cells, outputs, and notes on cells and notebook."""
    lines = Lines.of(text)
    for number, cell in enumerate(cells, start=1):
        if cell.get("cell_type") != "code":
            prose = _code(number, cell)
            for hit in told(prose.text, path, lines=lines, offsets=[begin for begin, _ in prose.spans]):
                at = bisect_right(prose.spans, (lines.offset(hit.location.line, hit.location.column), 0))
                yield _in_cell(hit, Cell(number, bisect_right(prose.begins, at)))
    for found, number in _beside(whole, {id(cell): number for number, cell in enumerate(cells, start=1)}):
        for hit in told(found, path, lines=lines, offsets=[begin for begin, _ in found.spans()]):
            yield _in_cell(hit, Cell(number, 0) if number else None)


def _beside(whole: dict[str, Any], numbers: dict[int, int]) -> Iterator[tuple[Placed, int]]:
    """Every text of a notebook but those that its cells are made of, with the number of its cell (0: of none)."""
    waiting: list[tuple[Any, int]] = [(whole, 0)]
    while waiting:
        value, number = waiting.pop()
        match value:
            case Placed():
                yield value, number
            case dict():
                number = numbers.get(id(value), number)
                left_out = (*_PICTURES, "source", "input") if id(value) in numbers else _PICTURES
                waiting += ((held, number) for key, held in value.items() if not key.startswith(left_out))
            case list():
                waiting += ((held, number) for held in value)


def _in_cell(hit: Hit, cell: Cell | None) -> Hit:
    return replace(hit, location=replace(hit.location, cell=cell))
