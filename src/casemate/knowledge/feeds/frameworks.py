"""GDPR, HIPAA and MLPS as tables like those that ship: corrected, or with titles in other words.

Such a table takes the place of the one that ships; the ids stay those of the law or the standard.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from casemate.errors import KnowledgeError
from casemate.knowledge.facts import records
from casemate.knowledge.feeds import whole
from casemate.knowledge.feeds.fields import Fields
from casemate.knowledge.node import Record


@dataclass(frozen=True, slots=True)
class Framework:
    """One table: its columns, what the cells of some must look like, which may not be empty, and who makes records."""

    columns: tuple[str, ...]
    shapes: Mapping[str, re.Pattern[str]]
    titled: Callable[[Mapping[str, str]], bool]
    records: Callable[[Iterable[Mapping[str, str]]], Iterator[Record]]

    def recognises(self, path: Path) -> bool:
        """Whether a file's head line is this table's, in any order."""
        found = whole.columns(path)
        return len(found) == len(self.columns) and set(found) == set(self.columns)

    def read(self, path: Path) -> Iterator[Record]:
        """The clauses of a table, and what they are part of.

        Raises:
            KnowledgeError: it is damaged or another's; names the line.
        """
        rows = [self._checked(row) for row in whole.table(path)]
        if not rows:
            raise KnowledgeError("holds no row", where=str(path))
        yield from self.records(rows)

    def _checked(self, row: Fields) -> dict[str, str]:
        if set(row.values) != set(self.columns):
            raise KnowledgeError(f"is not a table of {', '.join(self.columns)}", where=row.where)
        for column, shape in self.shapes.items():
            row.line(column, shape)
        if self.titled(row.values) and not (row.values["title"].strip() and row.values["title_zh"].strip()):
            raise KnowledgeError("a row lacks its title", where=row.where)
        return {column: cell.strip() for column, cell in row.values.items()}


GDPR = Framework(
    ("id", "title", "title_zh"),
    {"id": re.compile(r"Art\. \d{1,2}(\(\w{1,3}\))*", re.ASCII)},
    lambda row: "(" not in row["id"],
    records.gdpr,
)
HIPAA = Framework(
    ("id", "title", "title_zh", "status"),
    {"id": re.compile(r"164\.\d{3}(\(\w{1,4}\))*", re.ASCII)},
    lambda _: True,
    records.hipaa,
)
MLPS = Framework(
    ("clause", "item", "title", "title_zh", "area", "area_zh", "gist", "gist_zh"),
    {"clause": re.compile(r"\d+(\.\d+){2,4}", re.ASCII), "item": re.compile(r"[a-z]|-")},
    lambda _: True,
    records.mlps,
)
