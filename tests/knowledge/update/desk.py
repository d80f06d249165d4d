"""A home with small sources of our own, and things to bring to it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casemate.knowledge import tsv
from casemate.knowledge.graph import Graph
from casemate.settings import Settings

SMALL = Path(__file__).parents[1] / "small"
PINNED = {
    "cwe.xml": "cwe-4.14.xml",
    "attack-patterns.json": "attack-18.1-attack-patterns.json",
    "mitigations.json": "attack-18.1-mitigations.json",
    "relationships.json": "attack-18.1-relationships.json",
}
ENTRY = {"cveID": "CVE-2041-0001", "vulnerabilityName": "Gate Left Open", "dateAdded": "2041-02-03", "cwes": ["CWE-89"]}
RENAMED = ENTRY | {"vulnerabilityName": "Gate Left Ajar"}
WITHDRAWN = ENTRY | {"cveID": "CVE-2041-0002"}
GDPR = "id\ttitle\ttitle_zh\nArt. 1\tGates\t门\n"
Run = Callable[..., tuple[int, str]]


SHIPPED = [
    {"cveID": row["id"], "vulnerabilityName": row["name"], "dateAdded": "2025-08-25", "cwes": row["weaknesses"]}
    for row in tsv.rows(tsv.FACTS, "kev-2025-08-25.tsv")
]


def kev(*entries: dict[str, Any], version: str = "2041.02.03") -> str:
    """The catalogue that ships, as its own format has it, and more; half of a catalogue would be refused."""
    return json.dumps({"catalogVersion": version, "vulnerabilities": [*entries, *SHIPPED]})


def cve(number: int) -> str:
    id_ = f"CVE-2041-{number:04}"
    metadata = {"cveId": id_, "state": "PUBLISHED", "dateUpdated": "2041-03-04"}
    cna = {"descriptions": [{"lang": "en", "value": f"Hole {number}."}]}
    return json.dumps(
        {"dataType": "CVE_RECORD", "dataVersion": "5.1", "cveMetadata": metadata, "containers": {"cna": cna}}
    )


@dataclass(frozen=True)
class Desk:
    """A home with small pinned sources and a graph, and a folder of things to bring."""

    config: Settings
    folder: Path

    def put(self, name: str, text: str) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return str(path)

    def kept(self) -> dict[str, bytes | None]:
        """What is in the folder of sources, hidden things too, but for the lock."""
        if not self.config.sources.exists():
            return {}
        found = (path for path in self.config.sources.rglob("*") if path.name != ".lock")
        return {str(p.relative_to(self.config.sources)): p.read_bytes() if p.is_file() else None for p in found}

    def everything(self) -> tuple[Any, ...]:
        return self.kept(), self.config.graph.read_bytes(), {path.name for path in self.config.root.iterdir()}


def node_of(desk: Desk, id_: str) -> Any:
    with Graph.open(desk.config.graph) as graph:
        return graph.node(id_)
