"""Reads JSON, JSON Lines and SARIF of other tools: which values are identifiers, and what stands beside them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from casemate.knowledge.gate import fields, prose, sightings
from casemate.knowledge.gate.layout import Row
from casemate.knowledge.gate.lexicon import Lexicon
from casemate.knowledge.gate.mentions import Mention, find
from casemate.knowledge.gate.sightings import Sighting
from casemate.knowledge.gate.walking import Walk, unescaped, walk

_CONTEXT = 200
_LONGEST_KEY = 60
_KEY = re.compile(r'"(?P<key>[^"\\]{1,48})"\s*:\s*\[?\s*"?\Z')
_HINTED = {"nist": "NIST ", "nist_800_53": "NIST ", "nist80053": "NIST ", "gdpr": "GDPR Art. ", "hipaa": "HIPAA ",
           "mlps": "MLPS ", "asvs": "ASVS ", "owasp": "OWASP "}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Value:
    """A value as it reads, with the place in the file of each of its characters and of its end."""

    text: str
    places: Sequence[int]


def sight(text: str, lexicon: Lexicon) -> list[Sighting] | None:
    """What a JSON text says of its identifiers; None if it is no JSON."""
    walked = walk(text)
    if walked is None:
        return None
    found, holders = _found(text, walked)
    seen = [
        Sighting(mention, context=text[max(0, mention.start - _CONTEXT) : mention.end + _CONTEXT]) for mention in found
    ]
    for first, last, start, end in holders:
        inside = _inside(text, found[first:last], start=start, end=end, lexicon=lexicon)
        key = _key(text, start)
        seen[first:last] = [
            replace(one, context=f"{key} {one.context}", before=f"{key} {one.before}") for one in inside
        ]
    for row in walked.rows:
        described = fields.describe(row, found, lexicon=lexicon, table=False)
        for place in described.places:
            seen[place] = described.onto(seen[place], place)
    return seen


def _key(text: str, start: int) -> str:
    """The key of a value, or of the list that it begins."""
    match = _KEY.search(text, max(0, start - _LONGEST_KEY), start)
    return match["key"] if match else ""


def read(text: str) -> tuple[list[Value], list[Row]] | None:
    """The text values of a JSON text, and its objects as rows of fields; None if it is no JSON."""
    walked = walk(text)
    if walked is None:
        return None
    return [_read(text, start=start, end=end) for _, start, end in walked.values], walked.rows


def _read(text: str, *, start: int, end: int) -> Value:
    if "\\" not in text[start:end]:
        return Value(text[start:end], range(start, end + 1))
    plain, places = unescaped(text[start:end])
    return Value(plain, [start + place for place in places])


def _found(text: str, walked: Walk) -> tuple[list[Mention], list[tuple[int, int, int, int]]]:
    """Every mention in reading order, and for each value with some: their places and its span."""
    everywhere = find(text)
    found: list[Mention] = []
    holders = []
    at = number = 0
    for key, start, end in walked.values:
        while number < len(walked.numbers) and walked.numbers[number].start < start:
            found.append(walked.numbers[number])
            number += 1
        if number < len(walked.numbers) and walked.numbers[number].start == start:
            continue
        while at < len(everywhere) and everywhere[at].start < start:
            at += 1
        inside = []
        while at < len(everywhere) and everywhere[at].start < end:
            if everywhere[at].end <= end:
                inside.append(everywhere[at])
            at += 1
        if not inside or "\\" in text[start:end]:
            inside = _decoded_mentions(text, key, start=start, end=end)
        if inside:
            holders.append((len(found), len(found) + len(inside), start, end))
            found.extend(inside)
    found.extend(walked.numbers[number:])
    return found, holders


def _decoded_mentions(text: str, key: str, *, start: int, end: int) -> list[Mention]:
    """Mentions of a value whose escapes or whose key hide them."""
    hint = _HINTED.get(key.casefold(), "")
    raw = text[start:end]
    if "\\" not in raw and not hint:
        return []
    plain, places = unescaped(raw)
    found = [
        Mention(one.id, start + places[max(0, one.start - len(hint))], start + places[one.end - len(hint)])
        for one in find(hint + plain)
        if one.end > len(hint)
    ]
    return found if not hint or len(found) == 1 else [one for one in found if not hint] or found


def _inside(text: str, found: Sequence[Mention], *, start: int, end: int, lexicon: Lexicon) -> list[Sighting]:
    """What a value says of its own mentions."""
    raw = text[start:end]
    if "\\" not in raw:
        local = [Mention(one.id, one.start - start, one.end - start) for one in found]
        return [sightings.moved(one, None, by=start) for one in prose.sight(raw, local, lexicon=lexicon)]
    plain, places = unescaped(raw)
    back = {place: at for at, place in reversed(list(enumerate(places)))}
    local = [Mention(one.id, back.get(one.start - start, 0), back.get(one.end - start, len(plain))) for one in found]
    return [sightings.moved(one, places, by=start) for one in prose.sight(plain, local, lexicon=lexicon)]
