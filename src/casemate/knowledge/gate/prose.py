"""Reads running text: what it says of each identifier that it names, its tables read by their columns. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from casemate.knowledge.gate import belonging, claims, fields, layout, relations
from casemate.knowledge.gate.claims import Claim
from casemate.knowledge.gate.lexicon import Lexicon
from casemate.knowledge.gate.mentions import Mention
from casemate.knowledge.gate.relations import Link
from casemate.knowledge.gate.sightings import Sighting

_BESIDE = 40
_CONTEXT = 120
_LONGEST_JOINT = 12
_LISTED = 12
"""How many neighbours in a list a name may be meant for."""
_LIST_JOINT = re.compile(r"\s*(?:[,，、/&|;；]|and|or|和|与|及|或)\s*\Z")
_STOP = re.compile(r"[.!?](?=\s)|[。！？；\n]")


def sight(text: str, found: Sequence[Mention], *, lexicon: Lexicon) -> list[Sighting]:
    """What running text says of its mentions, its tables read by their columns."""
    linked: dict[int, list[Link]] = defaultdict(list)
    parents = set()
    for link in relations.links(text, found):
        linked[link.about].append(link)
        if link.relation == "child-of":
            parents.add(link.end)
    lists = _lists(text, found)
    sightings = [
        Sighting(
            mention,
            claims=_claims(text, mention, lexicon=lexicon),
            tactics=_tactics(text, mention, lexicon=lexicon),
            links=tuple(linked.get(place, ())),
            context=_sentence(text, mention),
            before=text[max(0, mention.start - _BESIDE) : mention.start].rpartition("\n")[2],
            after=text[mention.end : mention.end + _BESIDE].partition("\n")[0],
            listed=lists.get(place, ()),
            is_parent=mention.id in parents,
        )
        for place, mention in enumerate(found)
    ]
    for row in layout.rows(text):
        described = fields.describe(row, found, lexicon=lexicon, table=True)
        for place in described.places:
            sightings[place] = described.onto(sightings[place], place)
    return sightings


def _claims(text: str, mention: Mention, *, lexicon: Lexicon) -> tuple[Claim, ...]:
    claim = claims.known(text, mention, terms=lexicon.names) or claims.spoken(text, mention)
    return (claim,) if claim else ()


def _tactics(text: str, mention: Mention, *, lexicon: Lexicon) -> tuple[Claim, ...]:
    if mention.id[0] != "T" or mention.id[1] == "A" or not lexicon.tactics:
        return ()
    claim = belonging.tactic(text, mention, names=lexicon.tactics)
    return (claim,) if claim else ()


def _sentence(text: str, mention: Mention) -> str:
    first = max(0, mention.start - _CONTEXT)
    before = text[first : mention.start]
    stops = [stop.end() for stop in _STOP.finditer(before)]
    stop = _STOP.search(text, mention.end, mention.end + _CONTEXT)
    return text[first + (stops[-1] if stops else 0) : stop.start() if stop else mention.end + _CONTEXT]


def _lists(text: str, found: Sequence[Mention]) -> dict[int, tuple[str, ...]]:
    """For every mention that follows another in a list: the ids of the whole list."""
    joined = [
        left.end <= right.start <= left.end + _LONGEST_JOINT and bool(_LIST_JOINT.match(text[left.end : right.start]))
        for left, right in pairwise(found)
    ]
    lists: dict[int, tuple[str, ...]] = {}
    first = 0
    for place in range(1, len(found) + 1):
        if place < len(found) and joined[place - 1]:
            continue
        for one in range(first + 1, place):
            lists[one] = tuple(mention.id for mention in found[max(first, one - _LISTED) : min(place, one + _LISTED)])
        first = place
    return lists
