"""`casemate kb update` and `casemate kb diff`: newer sources for the graph, and what they change in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

import typer

from casemate import settings
from casemate.artifacts.partial import Observer
from casemate.artifacts.url import Caution, Patience, download
from casemate.chat.address import hands_out_credentials
from casemate.cli.bars import downloading
from casemate.cli.output import Form, Json, TextOrJson, is_json, print_json
from casemate.errors import ArtifactError, CasemateError, UsageError
from casemate.knowledge import update as updates
from casemate.knowledge.difference import Difference, difference
from casemate.knowledge.feeds.importers import IMPORTERS, Source
from casemate.knowledge.graph import Graph
from casemate.knowledge.update import Outcome, Update
from casemate.report.visible import visible
from casemate.settings import Settings

_DIFFERENT = 1
_INCOMPLETE = 2
_MOST_ROWS = 10
_CAUTION = Caution(most_bytes=2 << 30, forbids=hands_out_credentials)
_PATIENCE = Patience(answer_s=15.0)
"""The official addresses answer, but some take their time."""
_BY_FILE = "bring a file: casemate kb update --from FILE"

_Brought = tuple[Source, str]
"""What was brought, and from where."""
_Missed = tuple[str, CasemateError]
"""What did not come, and why."""


def update(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Sources to bring; without, all with an address.")
    ] = None,
    places: Annotated[
        list[str] | None,
        typer.Option("--from", metavar="PLACE", help="A file, folder or URL to take instead of the official address."),
    ] = None,
    *,
    check: Annotated[bool, typer.Option("--check", help="Only say what would change; exit 1 if something.")] = False,
    form: TextOrJson = Form.TEXT,
    json: Json = False,
) -> int:
    """Bring newer sources and rebuild the graph; what is damaged is refused, and everything stays as it was."""
    config = settings.load()
    wanted = frozenset(_known(names or ()))
    with downloading() as observer, updates.opened(config.sources) as work:
        brought, missed = _gathered(config, work, places=places or (), wanted=wanted, observer=observer)
        outcome = work.carry_out(config.artifacts, config.graph, keep=not check)
    for name, error in missed:
        typer.echo(visible(f"{name} is left out: {error}"), err=True)
    if is_json(form, json):
        print_json(_value(brought, [name for name, _ in missed], outcome=outcome, check=check))
    else:
        typer.echo(visible("\n".join(_story(brought, outcome, check=check))))
    return _INCOMPLETE if missed else _DIFFERENT if check and outcome.changed else 0


def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A graph file.")],
    new: Annotated[Path | None, typer.Argument(metavar="NEW", help="Another; without, the one in use.")] = None,
    *,
    form: TextOrJson = Form.TEXT,
    json: Json = False,
) -> int:
    """Say what differs between two graphs; exit 1 if something does."""
    with Graph.open(old) as before, Graph.open(new or settings.load().graph) as after:
        found = difference(before, after)
        paths = before.path, after.path
    if is_json(form, json):
        print_json({"old": str(paths[0]), "new": str(paths[1]), "changed": not found.empty, **asdict(found)})
    else:
        typer.echo(visible("\n".join(_lines(found)) or "nothing differs"))
    return 0 if found.empty else _DIFFERENT


def _known(names: list[str] | tuple[str, ...]) -> Iterator[str]:
    known = [name for name in IMPORTERS if name not in updates.NOT_BROUGHT]
    for name in names:
        if name not in known:
            raise UsageError(f"there is no source {name!r}", remedy=f"known are: {', '.join(known)}")
        yield name


def _gathered(
    config: Settings, work: Update, *, places: Sequence[str], wanted: frozenset[str], observer: Observer
) -> tuple[list[_Brought], list[_Missed]]:
    if config.offline and (not places or any("://" in place for place in places)):
        raise ArtifactError("fetching is switched off", where="the setting offline", remedy=_BY_FILE)
    if places:
        return [_bring(work, place, wanted=wanted, observer=observer) for place in places], []
    addresses = {name: IMPORTERS[name].address for name in wanted or IMPORTERS}
    for name in wanted:
        if not addresses[name]:
            raise UsageError(f"{name} has no address that always gives the newest", remedy=_BY_FILE)
    brought, missed = _official(work, addresses, observer=observer)
    if missed and (wanted or not brought):
        raise missed[0][1]
    return brought, missed


def _official(
    work: Update, addresses: Mapping[str, str], *, observer: Observer | None
) -> tuple[list[_Brought], list[_Missed]]:
    """What the addresses gave, and who did not answer."""
    brought: list[_Brought] = []
    missed: list[_Missed] = []
    for name, address in addresses.items():
        try:
            brought += [_bring(work, address, wanted=frozenset({name}), observer=observer)] if address else []
        except ArtifactError as error:
            missed.append((name, error))
    return brought, missed


def _bring(work: Update, place: str, *, wanted: frozenset[str], observer: Observer | None) -> _Brought:
    if "://" not in place:
        return work.bring(Path(place), place=place, wanted=wanted), place
    address, shown = _checked(place)
    path = work.downloads / str(sum(1 for _ in work.downloads.iterdir())) / updates.plain(_last(address))
    try:
        path.parent.mkdir()
        download(address, path, caution=_CAUTION, patience=_PATIENCE, observer=observer)
    except ArtifactError as error:
        raise ArtifactError(error.what, where=shown, remedy=f"check the network, or {_BY_FILE}") from error
    except OSError as error:
        raise ArtifactError(f"cannot be written here: {error.strerror}", where=str(path)) from error
    return work.bring(path, place=shown, wanted=wanted), shown


def _checked(place: str) -> tuple[str, str]:
    """An address that we may ask, and what of it may be shown.

    Raises:
        UsageError: it is none, or we may not.
    """
    try:
        split = urlsplit(place)
        host, _ = split.hostname, split.port
    except ValueError as error:
        raise UsageError(f"is no address: {error}", remedy="give an http or https address, or a path") from error
    shown = f"{split.scheme}://{host}" + (f":{split.port}" if split.port else "") + split.path
    if split.scheme not in ("http", "https") or not host or not place.isascii() or not place.isprintable():
        raise UsageError("is no address to fetch from", where=shown, remedy="give an http or https address, or a path")
    if split.username is not None or split.password is not None:
        raise UsageError("an address may not hold a name or password", where=shown)
    if hands_out_credentials(host):
        raise UsageError("the address is link-local and may hand out a cloud's credentials", where=shown)
    return split._replace(fragment="").geturl(), shown


def _last(address: str) -> str:
    return PurePosixPath(unquote(urlsplit(address).path)).name


def _value(brought: list[_Brought], missed: list[str], *, outcome: Outcome, check: bool) -> dict[str, Any]:
    rows = [{"name": source.importer, "from": place, "kept": source.path.name} for source, place in brought]
    found = asdict(outcome.difference) if outcome.difference else None
    return {
        "brought": rows, "missed": missed, "checked_only": check, "changed": outcome.changed, "difference": found,
        "nodes": outcome.report.nodes, "edges": outcome.report.edges,
    }  # fmt: skip


def _story(brought: list[_Brought], outcome: Outcome, *, check: bool) -> Iterator[str]:
    for source, place in brought:
        yield f"{source.importer} from {place}: whole and well-formed"
    if not outcome.changed:
        yield "nothing changed"
    elif outcome.difference is None:
        yield "there is no graph yet to compare with"
    else:
        yield from _lines(outcome.difference) or ["the graph says the same as before"]
    if check:
        yield "only checked: nothing is kept"
    elif outcome.changed:
        yield f"the graph is rebuilt: {outcome.report.nodes} nodes, {outcome.report.edges} edges"


def _lines(found: Difference) -> list[str]:
    return [*_versions(found), *_nodes(found), *_edges(found)]


def _versions(found: Difference) -> Iterator[str]:
    for row in found.versions:
        yield f"{row.source}: {', '.join(row.before) or 'absent'} → {', '.join(row.after) or 'absent'}"


def _nodes(found: Difference) -> Iterator[str]:
    for kind in found.kinds:
        for what, named in (("new", kind.added), ("gone", kind.gone)):
            rows = [f"{row.id}  {row.name}" for row in named]
            yield from _listed(f"{kind.kind}: {len(rows)} {what}", rows)
        for what, changed in (("renamed", kind.renamed), ("changed state", kind.state), ("changed usage", kind.usage)):
            rows = [f"{row.id}  {row.before or 'none'} → {row.after or 'none'}" for row in changed]
            yield from _listed(f"{kind.kind}: {len(rows)} {what}", rows)


def _listed(head: str, rows: list[str]) -> Iterator[str]:
    if rows:
        yield head
        yield from (f"    {row}" for row in rows[:_MOST_ROWS])
    if len(rows) > _MOST_ROWS:
        yield f"    … {len(rows) - _MOST_ROWS} more"


def _edges(found: Difference) -> Iterator[str]:
    for row in found.edges:
        yield f"edges {row.relation} ({row.source}): {row.added} new, {row.removed} gone"
