"""An object or row of a source whose fields are checked as they are read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from casemate.errors import KnowledgeError
from casemate.knowledge.feeds.packed import REMEDY


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one object; one that is null counts as absent.

    A complaint calls the object by `name`, and tells `where` it stands: the file, and what is known of line and object.
    """

    values: dict[str, Any]
    where: str
    name: str = "an entry"

    def text(self, key: str) -> str:
        """A text that must be there, as it stands.

        Raises:
            KnowledgeError: it is missing, empty, or no text.
        """
        if not (found := self.said(key)).strip():
            raise self.lacks(key)
        return found

    def line(self, key: str, shape: re.Pattern[str] | None = None) -> str:
        """A text that must be there, on one line.

        Raises:
            KnowledgeError: it is missing, empty, no text, or has not the shape that the format demands.
        """
        found = self.text(key).strip()
        if shape and not shape.fullmatch(found):
            raise self.complaint(f"has a {key!r} that cannot be: {found[:60]!r}")
        return " ".join(found.split())

    def said(self, key: str) -> str:
        """A text that may be missing; empty then.

        Raises:
            KnowledgeError: it is no text.
        """
        return self._text(key, "" if self.values.get(key) is None else self.values[key])

    def flag(self, key: str) -> bool:
        """Yes or no; a missing one is no.

        Raises:
            KnowledgeError: it is neither.
        """
        value = self.values.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(key, "yes or no")
        return bool(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; a missing one is empty.

        Raises:
            KnowledgeError: it is no list of texts.
        """
        return tuple(self._text(key, value) for value in self._list(key))

    def objects(self, key: str) -> tuple[Fields, ...]:
        """A list of objects, which complaints call as this one; a missing one is empty.

        Raises:
            KnowledgeError: it is no list of objects.
        """
        return tuple(self._object(key, value) for value in self._list(key))

    def entries(self, key: str, *, named: str = "") -> Iterator[Fields]:
        """A list of objects, each told apart in complaints by its field `named`, else by its number.

        Raises:
            KnowledgeError: it is no list of objects.
        """
        for number, value in enumerate(self._list(key), 1):
            name = value.get(named) if isinstance(value, dict) else None
            place = name if name and isinstance(name, str) else f"{key} {number}"
            yield self._object(key, value, where=f"{self.where}, {place}")

    def inner(self, key: str) -> Fields:
        """An object; a missing one has no fields.

        Raises:
            KnowledgeError: it is no object.
        """
        return self._object(key, {} if self.values.get(key) is None else self.values[key])

    def part(self, key: str) -> Fields:
        """An object that must be there.

        Raises:
            KnowledgeError: it is missing, or no object.
        """
        if self.values.get(key) is None:
            raise self.lacks(key)
        return self.inner(key)

    def lacks(self, key: str) -> KnowledgeError:
        """The error of a field that is not there."""
        return self.complaint(f"lacks {key!r}")

    def wrong(self, key: str, expected: str) -> KnowledgeError:
        """The error of a field that is not what it should be."""
        return self.complaint(f"has something else than {expected} in {key!r}")

    def complaint(self, what: str) -> KnowledgeError:
        """The error of an object that is not as it should be."""
        return KnowledgeError(f"{self.name} {what}", where=self.where, remedy=REMEDY)

    def _list(self, key: str) -> list[Any]:
        value = self.values.get(key)
        if value is not None and not isinstance(value, list):
            raise self.wrong(key, "a list")
        return value or []

    def _object(self, key: str, value: object, *, where: str = "") -> Fields:
        if not isinstance(value, dict):
            raise Fields(self.values, where or self.where, self.name).wrong(key, "an object")
        return Fields(value, where or self.where, self.name)

    def _text(self, key: str, value: object) -> str:
        if not isinstance(value, str):
            raise self.wrong(key, "text")
        try:
            value.encode()
        except UnicodeEncodeError as error:  # half of a surrogate pair, which no database takes
            raise self.wrong(key, "text") from error
        return value
