"""OWASP Top 10 of 2021, as the CWE list's own view 1344 has it (https://owasp.org/Top10/)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from casemate.knowledge.node import Edge, EdgeKind, Kind, Node, Record

SOURCE = "OWASP Top 10"

_CATEGORY_2021 = re.compile(r"OWASP Top Ten 2021 Category (A\d\d:2021) - (.+)")


def top_ten_2021(records: Iterable[Record]) -> Iterator[Record]:
    """The records as they came, and behind each category of the 2021 list its risk with the same members."""
    risks: dict[str, Node] = {}
    for record in records:
        yield record
        match record:
            case Node(kind=Kind.CATEGORY) if found := _CATEGORY_2021.match(record.name):
                risks[record.id] = Node(found[1], Kind.RISK, found[2], SOURCE, "2021")
                yield risks[record.id]
            case Edge(relation="has-member") if record.start in risks:
                risk = risks[record.start]
                yield Edge(risk.id, "has-member", record.end, EdgeKind.OFFICIAL, record.source, record.version)
            case _:
                pass
