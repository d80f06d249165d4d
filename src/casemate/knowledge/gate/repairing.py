"""Puts what is right in the place of what is wrong: the edits that verdicts ask for. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from casemate.knowledge import words
from casemate.knowledge.gate.grading import Verdict

_OPENED = re.compile(r"[ \t]*[(（\[]\s*\Z")
_CLOSED = re.compile(r"\s*[)）\]]")
_NEAR = 20
_DIGITS = re.compile(r"\d+\Z")

Edit = tuple[int, int, str, str]
"""A span, what belongs there, and what doing so is called."""


def edited(text: str, verdicts: Sequence[Verdict]) -> tuple[str, Counter[str]]:
    """A text with the edits of its verdicts, and how often each kind was made; of two that overlap, the later waits."""
    edits = sorted(edit for verdict in verdicts if (edit := _edit(text, verdict)))
    parts: list[str] = []
    done: Counter[str] = Counter()
    at = 0
    for start, end, right, kind in edits:
        if start < at or text[start:end] == right:
            continue
        parts += [text[at:start], right]
        at = end
        done[kind] += 1
    return "".join([*parts, text[at:]]), done


def _edit(text: str, verdict: Verdict) -> Edit | None:
    mention, claim = verdict.mention, verdict.claim
    match verdict.grade:
        case "H4" if claim and verdict.right:
            return claim.start, claim.end, verdict.right, "renamed"
        case "H7" if claim and verdict.right:
            return claim.start, claim.end, verdict.right, "corrected"
        case "H2" if verdict.replacement:
            return mention.start, mention.end, _spelt(text, verdict), "replaced"
        case "H1" | "H2" | "H3":
            return _dropped(text, mention.start, end=mention.end)
        case "H5" if not verdict.reason.endswith("discouraged"):
            return _dropped(text, mention.start, end=mention.end)
        case _:
            return None


def _spelt(text: str, verdict: Verdict) -> str:
    """The successor as the text spells: a bare number where its key says whose number it is."""
    spelt = text[verdict.mention.start : verdict.mention.end]
    return verdict.replacement.rpartition("-")[2] if _DIGITS.match(spelt) else verdict.replacement


def _dropped(text: str, start: int, *, end: int) -> Edit:
    """Without the id: with its brackets where it stands alone in them, else with a mark in its place."""
    if _DIGITS.match(text[start:end]):
        quoted = text[start - 1 : start] == '"'
        return start, end, "[unverified id]" if quoted else "null", "dropped"
    opened = _OPENED.search(text, max(0, start - _NEAR), start)
    closed = _CLOSED.match(text, end)
    if opened and closed:
        return opened.start(), closed.end(), "", "dropped"
    around = text[max(0, start - _NEAR) : start] + text[end : end + _NEAR]
    return start, end, "（编号未核实）" if words.has_han(around) else "[unverified id]", "dropped"
