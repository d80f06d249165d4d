"""Text that is no code, searched for secrets and for orders to whoever reads it. Pure.

Secrets show by their own forms and, in settings, by the names that they are given to.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from casemate.agents.audit.checks import secrets
from casemate.agents.audit.checks.planted import is_order
from casemate.agents.audit.checks.words import words
from casemate.agents.audit.facts.masking import masked
from casemate.agents.audit.facts.summary import Hit, Module
from casemate.agents.audit.facts.syntax import Source
from casemate.agents.audit.reading.kinds import Kind
from casemate.agents.audit.reading.placed import Lines
from casemate.finding import Confidence, Location

_RULE = "hard-coded-secret"
_ORDER = "planted-instruction"
_NAME = r"[\"']?([A-Za-z_][\w.\-]{0,80})[\"']?"
_ASSIGNED = re.compile(rf"^\s*(?:export\s+|set\s+|ENV\s+|ARG\s+|-\s+|\$)?{_NAME}\s*[:=]\s*(\S.*)$")
_SPACED = re.compile(r"^\s*(?:ENV|ARG)\s+([A-Za-z_]\w*)\s+([^\s=]\S*)\s*$")
_PAIRS = re.compile(r"[\"']([\w.\-]{1,80})[\"']\s*:\s*[\"']((?:[^\"'\\]|\\.)*)[\"']")
_ATTRIBUTES = re.compile(r"(?<![\w.\-:])([\w.\-:]{1,80})\s{0,8}=\s{0,8}[\"']([^\"'<>]*)[\"']")
_ELEMENTS = re.compile(r"<([\w.\-:]{1,80})(?:\s[^<>]*)?>([^<>]+)</")
_COMMENT = re.compile(r"\s[#;].*$")
_VERSION = re.compile(r"[\^~<>=v\s]*\d+(?:\.[\dx*]+)+\S*$|[\^~]?\d+$")
_MODELS = frozenset({"example", "sample", "template", "dist", "tmpl", "skeleton"})
"""Words in the name of a file that only shows how settings look: what is given to names there is a placeholder."""
_LINE_END = re.compile("\r\n|\r|\n")
_LONGEST = 4000
"""Characters of a line in which an order is looked for."""
_SHOWN = 160
"""Characters of a line around a secret that are shown, where the line is longer."""


def search(text: str, path: str, *, kind: Kind) -> Module:
    """What stands in a text that is no code.

    Args:
        text: all of it.
        path: under the root.
        kind: `SETTINGS` or `TEXT`.
    """
    lines = Lines.of(text)
    hits = list(told(text, path, lines=lines))
    known = {hit.location.line for hit in hits}
    source = Source(path, tuple(_LINE_END.split(text)), ast.Module([], []))
    if kind is Kind.SETTINGS and not words(path.rpartition("/")[2]) & _MODELS:
        hits += [hit for hit in _named(source) if hit.location.line not in known]
    hits += _orders(source, tuple(hit.code for hit in hits))
    return Module(path, "", tuple(sorted(hits, key=_order)), searched=True)


def told(text: str, path: str, *, lines: Lines, offsets: Sequence[int] = ()) -> Iterator[Hit]:
    """Secrets with a form of their own in any text.

    Args:
        text: where to look.
        path: of the file.
        lines: those of the whole file.
        offsets: where each character of the text stands in the file; empty where the text is the file.
    """
    for begin, secret in secrets.in_text(text):
        end = begin + len(secret.split("\n", 1)[0].rstrip("\r")) - 1
        first, last = (offsets[begin], offsets[end]) if offsets else (begin, end)
        line, column = lines.place(first)
        end_line, end_column = lines.place(last)
        shown = text[max(text.rfind("\n", 0, begin) + 1, begin - _SHOWN) : text.find("\n", begin) % (len(text) + 1)]
        place = Location(path, line, column, end_line, end_column + 1)
        yield _hit(place, secret, shown=shown[: 2 * _SHOWN + len(secret)], confidence=Confidence.HIGH)


def _named(source: Source) -> Iterator[Hit]:
    """Secrets by the name that a line gives them to; only where the value looks the part, as words are many here."""
    for number, line in enumerate(source.lines, start=1):
        if line.lstrip().startswith(("#", ";", "//", "<!--")):
            continue
        for name, value, at in _pairs(line):
            if _VERSION.match(value) or secrets.as_named(name, value) is not Confidence.HIGH:
                continue
            place = Location(source.path, number, at + 1, number, at + len(value) + 1)
            yield _hit(place, value, shown=line, confidence=Confidence.MEDIUM, suppressed=source.suppresses(place))
            break


def _orders(source: Source, secret: tuple[str, ...]) -> Iterator[Hit]:
    """Lines, alone or with the next one, that tell a reviewer or a model what to find."""
    lines = [line[:_LONGEST] for line in source.lines]
    said = False
    for number, (line, after) in enumerate(zip(lines, (*lines[1:], ""), strict=True), start=1):
        before = said
        said = is_order(line) or (not is_order(after) and is_order(f"{line.strip()} {after.strip()}"))
        if said and not before:
            begin = len(line) - len(line.lstrip())
            place = Location(source.path, number, begin + 1, number, len(line.rstrip()) + 1)
            shown = masked(source.text(place), secret)
            yield Hit(_ORDER, place, shown, shown, Confidence.MEDIUM)


def _pairs(line: str) -> Iterator[tuple[str, str, int]]:
    """Names, the values that a line gives them, and where each value begins."""
    for form in (_PAIRS, _ELEMENTS, _ATTRIBUTES):
        for found in form.finditer(line):
            yield found.group(1), found.group(2), found.start(2)
    assigned = _ASSIGNED.match(line.rstrip()) or _SPACED.match(line)
    if assigned is None:
        return
    value, at = assigned.group(2), assigned.start(2)
    if value[0] in "\"'":
        value, at = value[1:].partition(value[0])[0], at + 1
    else:
        value = _COMMENT.sub("", value).rstrip(" \t,")
    if value:
        yield assigned.group(1), value, at


def _hit(place: Location, secret: str, *, shown: str, confidence: Confidence, suppressed: bool = False) -> Hit:
    cut = masked(shown, (secret,))
    return Hit(_RULE, place, masked(secret, (secret,)), cut, confidence, suppressed=suppressed)


def _order(hit: Hit) -> tuple[int, int]:
    return hit.location.line, hit.location.column
