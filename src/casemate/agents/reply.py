"""Reads structured answers as models really write them: fenced, wrapped in prose, cut off, with words of their own.

What can be read is kept and what is missing is said; an answer of which nothing can be read is a Complaint, never an
empty list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from casemate.agents.loop import Complaint, Said

_OPENING = re.compile(r"[\[{]")
_BETWEEN = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder()
_MOST_TRIES = 40
"""Brackets of prose that may stand before the JSON; a text of nothing but brackets must not cost its square."""

OTHER = "other"


@dataclass(frozen=True, slots=True)
class Items:
    """The objects of an answer. Not `complete`: the answer was cut, so ask again with less, and call it partial."""

    values: tuple[Mapping[str, Any], ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """A word of a closed list; `known` is False where the model said something else and `OTHER` stands for it."""

    word: str
    known: bool


def items(said: Said) -> Items | Complaint:
    """The JSON objects of an answer: of a list, of an object that holds one list, or one object alone."""
    for opening in islice(_OPENING.finditer(said.text), _MOST_TRIES):
        start = opening.start()
        value = _decoded(said.text, start)
        found = _objects(value[0]) if value else None
        if found is not None:
            return Items(found, complete=True)
        if value is None and (kept := _salvaged(said.text, start)):
            return Items(kept, complete=False)
    return Complaint("it held no JSON; answer with the JSON alone")


def choice(word: object, known: Mapping[str, str]) -> Choice:
    """The canonical word for what a model said.

    Args:
        word: what it said, of whatever type.
        known: canonical word by spelling; spellings in lower case.
    """
    spelling = " ".join(word.casefold().split()) if isinstance(word, str) else ""
    canonical = known.get(spelling)
    return Choice(canonical, known=True) if canonical else Choice(OTHER, known=False)


def _objects(value: Any) -> tuple[Mapping[str, Any], ...] | None:
    if isinstance(value, dict):
        lists = [item for item in value.values() if isinstance(item, list)]
        if len(value) == 1 and lists:
            return _objects(lists[0])
        return (value,)
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return tuple(value)
    return None


def _salvaged(text: str, start: int) -> tuple[Mapping[str, Any], ...]:
    """The whole objects of a list that breaks off."""
    opening = text.find("[", start)
    kept: list[Mapping[str, Any]] = []
    position = opening + 1
    while opening >= 0 and (value := _decoded(text, _past_commas(text, position))):
        if isinstance(value[0], dict):
            kept.append(value[0])
        position = value[1]
    return tuple(kept)


def _past_commas(text: str, position: int) -> int:
    match = _BETWEEN.match(text, position)
    return match.end() if match else position


def _decoded(text: str, start: int) -> tuple[Any, int] | None:
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):  # cut, not JSON, or nested beyond reason
        return None
