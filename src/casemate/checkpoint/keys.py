"""A config.json as checked values: every number that leaves here has its type and lies in bounds that some model needs.

A config comes from anywhere; what it says is printed, multiplied and used as a count of loops.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import NoReturn

from casemate.checkpoint.jsonscan import shown_path
from casemate.checkpoint.listing import opened
from casemate.errors import UsageError
from casemate.report.visible import visible

MOST_BYTES = 4 << 20
"""A config of today has some kilobytes; one with a long list of quantised layers, some hundred."""
MOST_LAYERS = 1 << 10
MOST_NUMBER = 1 << 24
"""Widths, vocabularies, heads, experts: the largest of today is a vocabulary of about 2**18."""
MOST_CONTEXT = 1 << 32
_MOST_TEXT = 100
_REMEDY = "give the model's own config.json, or the folder with its safetensors files"


def load(path: Path) -> dict[str, object]:
    """Read a JSON object from a file.

    Raises:
        UsageError: it cannot be read, has more than `MOST_BYTES`, or is no JSON object (numbers like NaN are none).
    """
    with opened(path) as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise UsageError(f"the file has more than {MOST_BYTES >> 20} MiB", where=shown_path(path), remedy=_REMEDY)
    try:
        value = json.loads(content, parse_constant=_no_constant)
    except RecursionError as error:
        raise UsageError("the file is nested too deeply", where=shown_path(path), remedy=_REMEDY) from error
    except ValueError as error:
        raise UsageError(f"not a JSON file: {shown(error)}", where=shown_path(path), remedy=_REMEDY) from error
    if not isinstance(value, dict):
        raise UsageError("the file holds no JSON object", where=shown_path(path), remedy=_REMEDY)
    return value


def shown(value: object) -> str:
    """Any value of a config as one short printable line."""
    try:
        text = value if isinstance(value, str) else str(value)
    except (RecursionError, ValueError):
        return "something that cannot be shown"
    line = " ".join(visible(text[: 4 * _MOST_TEXT]).split())
    return line if len(line) <= _MOST_TEXT else line[: _MOST_TEXT - 1] + "…"


class Keys:
    """One JSON object of a config, with the family's defaults behind it.

    Args:
        values: the object.
        where: the file, for errors.
        path: how the object is reached in the file (`text_config.`), empty at the top.
        defaults: what the model's class assumes for keys that the file leaves out.
    """

    def __init__(
        self,
        values: Mapping[str, object],
        *,
        where: str,
        path: str = "",
        defaults: Mapping[str, object] | None = None,
    ) -> None:
        self._values = values
        self._defaults = defaults or {}
        self.where = where
        self.path = path

    def behind(self, defaults: Mapping[str, object]) -> Keys:
        """The same keys with these defaults behind those that are already there."""
        return Keys(self._values, where=self.where, path=self.path, defaults={**defaults, **self._defaults})

    def get(self, name: str) -> object:
        """The value as it is; None where it is absent or null."""
        value = self._values.get(name)
        return self._defaults.get(name) if value is None else value

    def has(self, name: str) -> bool:
        """Whether there is a value that is not null."""
        return self.get(name) is not None

    def number(self, *names: str, default: int | None = None, least: int = 1, most: int = MOST_NUMBER) -> int:
        """The first of these keys that has a value: a whole number from `least` to `most`.

        Raises:
            UsageError: none has one and there is no default, or it is no such number.
        """
        for name in names:
            value = self.get(name)
            if value is not None:
                return self._whole(value, name, least=least, most=most)
        if default is None:
            self.refuse(f"the config does not tell {self.path}{names[0]}")
        return default

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A yes or no."""
        value = self.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.refuse(f"{self.path}{name} is {shown(value)}, not true or false")
        return value

    def text(self, *names: str, default: str = "") -> str:
        """The first of these keys that has a value, made printable and short."""
        for name in names:
            value = self.get(name)
            if value is not None and not isinstance(value, str):
                self.refuse(f"{self.path}{name} is {shown(value)}, not a text")
            if value is not None:
                return shown(value)
        return default

    def numbers(self, name: str, *, least: int = 0, most: int = MOST_NUMBER, longest: int = MOST_LAYERS) -> list[int]:
        """A list of whole numbers; empty where the key is absent."""
        return [self._whole(value, name, least=least, most=most) for value in self._items(name, longest)]

    def texts(self, name: str, *, longest: int = MOST_LAYERS) -> list[str]:
        """A list of texts as they are (compare them, do not print them); empty where the key is absent."""
        items = self._items(name, longest)
        for item in items:
            if not isinstance(item, str):
                self.refuse(f"{self.path}{name} holds {shown(item)}, not a text")
        return [item for item in items if isinstance(item, str)]

    def names(self) -> list[str]:
        """The keys that the file itself has."""
        return list(self._values)

    def inner(self, name: str) -> Keys | None:
        """An object inside this one; None where the key is absent."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.refuse(f"{self.path}{name} is {shown(value)}, not an object")
        return Keys(value, where=self.where, path=f"{self.path}{name}.")

    def inners(self) -> list[tuple[str, Keys]]:
        """Every object inside this one, by its key."""
        found = [(name, self.inner(name)) for name, value in self._values.items() if isinstance(value, dict)]
        return [(name, inner) for name, inner in found if inner is not None]

    def refuse(self, what: str, *, remedy: str = _REMEDY) -> NoReturn:
        """Say that the config does not do.

        Raises:
            UsageError: always.
        """
        raise UsageError(shown(what), where=self.where, remedy=remedy)

    def _items(self, name: str, longest: int) -> list[object]:
        value = self.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self.refuse(f"{self.path}{name} is {shown(value)}, not a list")
        if len(value) > longest:
            self.refuse(f"{self.path}{name} has {len(value)} items where {longest} would be many")
        return value

    def _whole(self, value: object, name: str, *, least: int, most: int) -> int:
        if isinstance(value, float) and isfinite(value) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self.refuse(f"{self.path}{name} is {shown(value)}, not a whole number")
        if not least <= value <= most:
            self.refuse(f"{self.path}{name} is {shown(value)}, where {least} to {most} is possible")
        return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}, which is no number of JSON")
