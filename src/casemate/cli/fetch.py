"""`casemate fetch`: the pinned model files and the graph's sources, on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from casemate import settings
from casemate.artifacts import lock
from casemate.artifacts.fetch import fetch as obtain
from casemate.artifacts.fetch import present
from casemate.artifacts.lock import Artifact, Url
from casemate.cli import output
from casemate.cli.bars import downloading
from casemate.cli.choosing import choose_model
from casemate.settings import Settings

_SOURCES = ("cwe", "attack")
_INCOMPLETE = 2


def fetch(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Artefacts or groups; without, the best model that fits and the graph's sources."),
    ] = None,
    listing: Annotated[
        bool, typer.Option("--list", help="Say what is pinned and what is here; fetch nothing.")
    ] = False,
    *,
    format_: output.TextOrJson = output.Form.TEXT,
    json_: output.Json = False,
) -> int:
    """Fetch pinned artefacts: the model and the graph's sources."""
    config = settings.load()
    note = ""
    if listing:
        chosen = lock.select(names or lock.catalogue())
    elif names:
        chosen = _obtained(config, names)
    else:
        chosen, note = _what_is_used(config)
    rows = [_row(artifact, config.artifacts) for artifact in chosen]
    if output.is_json(format_, json_):
        output.print_json({"artifacts": rows, "dependencies": _dependencies(), "note": note})
    else:
        typer.echo("\n".join(filter(None, (*_lines(rows, listing=listing), note))))
    return 0 if listing or names or any(row["group"] == "model" for row in rows) else _INCOMPLETE


def _obtained(config: Settings, names: Sequence[str]) -> tuple[Artifact, ...]:
    chosen = lock.select(names)
    with downloading() as observer:
        for artifact in chosen:
            obtain(artifact, config.artifacts, observer=observer, offline=config.offline)
    return chosen


def _what_is_used(config: Settings) -> tuple[tuple[Artifact, ...], str]:
    """The graph's sources, and the model that will run here; with what is to be known about that choice."""
    sources = _obtained(config, _SOURCES)
    with downloading() as observer:
        note = choose_model(config, observer).note
    model = lock.select([note.name]) if note.name else ()
    return (*model, *sources), note.note


def _row(artifact: Artifact, folder: Path) -> dict[str, Any]:
    path = present(artifact, folder)
    return {
        "name": artifact.name,
        "group": artifact.group,
        "path": str(path) if path else None,
        "size_bytes": artifact.size_bytes,
        "sha256": artifact.sha256,
        "licence": artifact.licence,
        "upstream": artifact.upstream,
        "revision": artifact.revision or None,
        "sources": [place for source in artifact.sources for place in _places(source)],
    }


def _places(source: Url | lock.Carrier) -> list[str]:
    return [source.address] if isinstance(source, Url) else [part.requirement for part in source.parts]


def _dependencies() -> list[dict[str, str]]:
    return [
        {
            "requirement": f"{held.package}=={held.version}",
            "holds": held.holds,
            "licence": held.licence,
            "upstream": held.upstream,
        }
        for held in lock.dependencies()
    ]


def _lines(rows: Sequence[dict[str, Any]], *, listing: bool) -> Iterator[str]:
    for row in rows:
        yield f"{row['name']:<28} {row['size_bytes'] / 1e6:>8.1f} MB  {row['path'] or 'not fetched'}"
        if listing:
            first, *more = row["sources"]
            yield f"    {row['licence']}; {row['upstream']}; revision {row['revision'] or 'not established'}"
            yield f"    from {first}" + (f" … {more[-1]}" if more else "")
            yield f"    sha256 {row['sha256']}"
    if listing:
        yield from (
            f"{held['requirement']:<28} comes with Casemate: {held['holds']} ({held['licence']}; {held['upstream']})"
            for held in _dependencies()
        )
