"""Documents as Markdown (CommonMark with GitHub's tables). Foreign text cannot become markup, a link or an image."""

from __future__ import annotations

import re
from typing import assert_never

from casemate.report import document as d
from casemate.report.listing import lines_of

_MARKS: dict[d.Tone, str] = {"good": "✅", "bad": "❌", "warn": "⚠️", "note": "ℹ️"}
_SPECIAL = re.compile(r"[\\`*_\[\]<>|~&#$!]|:(?=//)|(?<=\bwww)\.")
"""What CommonMark or a host's extensions would read as markup inside a line: emphasis, links, images, autolinks."""

_LEADING = re.compile(r"^([-+=]|\d+(?=[.)]))")
"""What would open a list, a rule or a heading at the start of a line."""


def render(document: d.Document) -> str:
    """The document as Markdown text."""
    document = d.shown(document)
    parts = [f"# {_line(document.title)}", *_blocks(document.lead)]
    for section in document.sections:
        parts += [f"## {_line(section.title)}", *_blocks(section.blocks)]
        for inner in section.sections:
            parts += [f"### {_line(inner.title)}", *_blocks(inner.blocks)]
    return "\n\n".join(parts) + "\n"


def _blocks(blocks: tuple[d.Block, ...]) -> list[str]:
    return [_block(block) for block in blocks]


def _block(block: d.Block) -> str:
    match block:
        case d.Paragraph(text=text):
            part = _prose(text)
        case d.Verdict(tone=tone, text=text):
            part = f"{_MARKS[tone]} **{_line(text)}**"
        case d.Figures(figures=figures):
            part = "\n".join(f"- **{_line(f.label)}:** {_inline(f.value)}" for f in figures)
        case d.Table(header=header, rows=rows):
            part = "\n".join((_row(header), "|" + " --- |" * len(header), *(_row(row) for row in rows)))
        case d.Code(caption=caption) | d.Change(caption=caption):
            part = _caption(caption) + _fenced("\n".join(lines_of(block)), _language(block))
        case d.Steps(steps=steps, caption=caption):
            part = _caption(caption) + "\n".join(_step(number, step) for number, step in enumerate(steps, start=1))
        case d.Fold(title=title, blocks=blocks):
            part = "\n\n".join((f"**{_line(title)}**", *_blocks(blocks)))
        case d.Quote(speaker=speaker, text=text):
            lines = f"**{_line(speaker)}**\n\n{_prose(text)}".split("\n")
            part = "\n".join(f"> {line}".rstrip() for line in lines)
        case d.Links(label=label, addresses=addresses):
            part = _caption(label) + "\n".join(f"- {_address(address)}" for address in addresses)
        case _:
            assert_never(block)
    return part


def _step(number: int, step: d.Step) -> str:
    place = _verbatim(step.place) if step.place else ""
    told = ": ".join(filter(None, (place, _inline(step.note))))
    return f"{number}. {told}" + (f"\n   {_verbatim(step.code)}" if step.code else "")


def _verbatim(text: str) -> str:
    """A code span that no backtick of the text can end."""
    text = d.one_line(text)
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{fence} {text} {fence}" if "`" in text else f"{fence}{text}{fence}"


def _caption(caption: str) -> str:
    return f"**{_line(caption)}**\n\n" if caption else ""


def _row(row: tuple[str, ...]) -> str:
    return "| " + " | ".join(_inline(cell) for cell in row) + " |"


def _language(block: d.Code | d.Change) -> str:
    if isinstance(block, d.Change):
        return "diff"
    return "" if block.first else block.language  # the gutter of numbered lines is of no language


def _fenced(text: str, language: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language if language.isalnum() else ''}\n{text}\n{fence}"


def _address(address: str) -> str:
    return f"<{address}>" if d.is_link(address) else _line(address)


def _prose(text: str) -> str:
    # Leading white space would make a code block, so each line is folded.
    return "\n".join(_unlisted(_inline(line)) for line in text.split("\n"))


def _unlisted(line: str) -> str:
    return _LEADING.sub(lambda match: f"\\{match[1]}" if not match[1].isdigit() else f"{match[1]}\\", line)


def _inline(text: str) -> str:
    return "".join(_code(piece) if code else _escaped(piece) for piece, code in d.spans(d.one_line(text)))


def _code(piece: str) -> str:
    # A pipe would end a table cell even inside a code span; hosts take the backslash away again.
    return "`" + piece.replace("|", "\\|") + "`"


def _line(text: str) -> str:
    return _escaped(d.one_line(text))


def _escaped(text: str) -> str:
    text = _SPECIAL.sub(lambda match: f"\\{match.group()}", text)
    return text.replace("@", "&#64;")  # a host would notify whoever is mentioned
