"""What a text of any form tells of its material: prose by its sentences, JSON and SARIF by their values. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from casemate.knowledge.gate import evidence, layout, structured, walking
from casemate.knowledge.gate.evidence import Exhibit, Material
from casemate.knowledge.gate.layout import Field, Row
from casemate.knowledge.gate.mentions import Mention

_FILES = frozenset(("uri", "file", "filename", "file_name", "filepath", "file_path", "path", "文件", "文件名", "路径"))
_LINES = frozenset(("startline", "start_line", "line", "line_number", "linenumber", "lineno", "行", "行号"))
_QUOTES = frozenset(("snippet", "quote", "quotation", "原文", "引文", "引用"))


def examine(text: str, material: Material) -> Iterator[Exhibit]:
    """Every quotation and place of a text, judged."""
    read = structured.read(text) if walking.is_json(text) else None
    if read is None:
        seen = {found.mention: found for found in evidence.examine(text, material)}
        seen |= {found.mention: found for row in layout.rows(text) for found in _of_record(row, material)}
        yield from seen.values()
        return
    values, rows = read
    for value in values:
        for found in evidence.examine(value.text, material):
            start, end = value.places[found.mention.start], value.places[found.mention.end]
            yield Exhibit(Mention(found.mention.id, start, end), found.grade, found.reason)
    told = {found.mention: found for row in rows for found in _of_record(row, material)}  # rows share lifted fields
    yield from told.values()


def _of_record(row: Row, material: Material) -> Iterator[Exhibit]:
    """The place that the fields of a record name, and the words that they quote from it."""
    file, line = _one(row, _FILES), _one(row, _LINES)
    quotes = [one for one in row if one.label.casefold() in _QUOTES and one.text.strip()]
    said = [quote.text.strip() for quote in quotes if material.holds(quote.text)]
    if file and line and line.text.isdecimal() and evidence.is_file(file.text):
        yield evidence.judged(file.text, (int(line.text), int(line.text)), said=said, material=material).at(
            line.start, line.end
        )
    for quote in quotes:
        mention = Mention(evidence.quoted(quote.text), quote.start, quote.end)
        held = quote.text.strip() in said
        yield Exhibit(mention, "H0" if held else "E1", "" if held else evidence.NOT_THERE)


def _one(row: Row, labels: frozenset[str]) -> Field | None:
    return next((one for one in row if one.label.casefold() in labels), None)
