"""`casemate kb`: build the knowledge graph, look things up in it, and check what a text cites."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich import progress
from rich.console import Console

from casemate import settings
from casemate.cli import checking, tracing, updating
from casemate.cli.output import Form, Json, TextOrJson, is_json, print_json, width
from casemate.gateway.grounding import within
from casemate.knowledge import build as builder
from casemate.knowledge import embed
from casemate.knowledge.curated import dossiers
from casemate.knowledge.graph import Graph
from casemate.knowledge.node import Edge, Node
from casemate.knowledge.search import Search
from casemate.knowledge.update import opened
from casemate.report.visible import visible

_FOUND = 1
_SHOWN_EDGES = 8

kb = typer.Typer(help="Build and query the knowledge graph.", add_completion=False, rich_markup_mode=None)
kb.command()(updating.update)
kb.command()(tracing.explain)
kb.command()(updating.diff)


@kb.command()
def build(
    dense: Annotated[bool, typer.Option(help="Also embed every node, so that search finds meaning (minutes).")] = False,
    force: Annotated[bool, typer.Option(help="Build even if nothing changed.")] = False,
    *,
    form: TextOrJson = Form.TEXT,
    json: Json = False,
) -> None:
    """Build the graph from the fetched sources; the old one stays in use until the new one is whole."""
    wanted = settings.load()
    with _bars() as bars, opened(wanted.sources):  # an update that is under way would be undone
        origin = builder.sources(wanted.artifacts, wanted.sources)
        report = builder.build(origin, wanted.graph, observe=lambda step: _advance(bars, step), force=force)
        embedded = _embed(wanted.graph, bars) if dense else 0
    if is_json(form, json):
        print_json({"graph": str(wanted.graph), **asdict(report), "embedded": embedded})
        return
    state = "built" if report.fresh else "up to date"
    typer.echo(f"{wanted.graph}: {state}, {report.nodes} nodes, {report.edges} edges, {report.aliases} aliases")
    if embedded:
        typer.echo(f"{embedded} nodes embedded")


@kb.command()
def status(form: TextOrJson = Form.TEXT, json: Json = False) -> None:
    """Say what the graph holds, of which versions."""
    path = settings.load().graph
    with Graph.open(path) as graph:
        census, dense = graph.census(), embed.coverage(graph)
    if is_json(form, json):
        print_json({"graph": str(path), "size_bytes": path.stat().st_size, **asdict(census), "dense": asdict(dense)})
        return
    typer.echo(f"{path} ({path.stat().st_size / 1e6:.1f} MB)")
    for label, counts in (("nodes", census.nodes), ("edges", census.edges)):
        typer.echo(f"{label:<9} " + ", ".join(f"{name} {value}" for name, value in sorted(counts.items())))
    versions = (f"{source} {' and '.join(held)}" for source, held in sorted(census.versions.items()))
    typer.echo("versions  " + ", ".join(versions))
    typer.echo(f"aliases   {census.aliases}\ndangling  {census.dangling}")
    remedy = "" if dense.whole else ": casemate kb build --dense"
    typer.echo(f"dense     {dense.done} of {dense.total} texts{remedy}")


@kb.command()
def show(
    id_: Annotated[str, typer.Argument(metavar="ID", help="CWE-89, T1059.007, TA0001, M1013, A03:2021, CAPEC-66 …")],
    *,
    form: TextOrJson = Form.TEXT,
    json: Json = False,
) -> None:
    """Show a node, its other names, and what is around it."""
    with Graph.open(settings.load().graph) as graph:
        node = tracing.named(graph, id_)
        edges, aliases, editions = graph.around(node.id), graph.aliases(node.id), graph.editions(node.id)
    written = dossiers.dossier(node.id)
    if is_json(form, json):
        around, known = [asdict(edge) for edge in edges], [asdict(edition) for edition in editions]
        value = {"node": asdict(node) | {"address": node.address}, "aliases": aliases, "editions": known}
        print_json({**value, "dossier": asdict(written) if written else None, "edges": around})
        return
    typer.echo(visible("\n".join(_page(node, aliases, edges=edges))))


@kb.command()
def search(
    text: Annotated[str, typer.Argument(help="What to look for, in Chinese or English.")],
    limit: Annotated[int, typer.Option(min=1, max=40, help="How many passages.")] = 5,
    *,
    tokens: Annotated[int, typer.Option(min=0, help="At most so many tokens of passages; 0 sets no bound.")] = 0,
    form: TextOrJson = Form.TEXT,
    json: Json = False,
) -> None:
    """Find the passages that bear on a text, best first."""
    with Graph.open(settings.load().graph) as graph:
        dense = embed.open_dense(graph, embed.E5()) if embed.coverage(graph).whole else None
        found = Search(graph, dense).search(text, limit)
    if tokens:
        found = list(within(found, tokens))
    if is_json(form, json):
        print_json({"passages": [asdict(passage) for passage in found]})
        return
    for passage in found:
        typer.echo(visible(f"{passage.node}  {passage.title}  ({passage.source} {passage.version})"))
        typer.echo(visible(textwrap.indent(textwrap.fill(passage.text, width() - 4), "    ")))
    if not found:
        typer.echo("nothing found" + (f" that fits into {tokens} tokens" if tokens else ""))


@kb.command()
def check(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A text, JSON or SARIF file.")],
    against: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="The file or folder that it quotes: check quotations and places, too."),
    ] = None,
    *,
    form: TextOrJson = Form.TEXT,
    json: Json = False,
) -> None:
    """Grade every identifier that a file cites; exit 1 if one is wrong."""
    with Graph.open(settings.load().graph) as graph:
        report = checking.check(path, graph, against=against)
    if is_json(form, json):
        print_json(report.as_json())
    else:
        for line in report.lines():
            typer.echo(visible(line))
    if report.failed:
        raise typer.Exit(_FOUND)


@contextmanager
def _bars() -> Iterator[progress.Progress]:
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(bar_width=16),
        progress.TextColumn("{task.completed:.0f}"),
    )
    with progress.Progress(*columns, console=Console(stderr=True)) as bars:
        yield bars


def _advance(bars: progress.Progress, step: builder.Progress) -> None:
    task = next((task.id for task in bars.tasks if task.description == step.stage), None)
    task = bars.add_task(step.stage, total=None) if task is None else task
    bars.update(task, completed=step.done, total=step.total or None)


def _embed(path: Path, bars: progress.Progress) -> int:
    with Graph.open(path) as graph:
        return embed.build_index(
            graph,
            embed.E5(),
            observe=lambda done, total: _advance(bars, builder.Progress("embedding", done, total)),
        )


def _page(node: Node, aliases: tuple[str, ...], *, edges: tuple[Edge, ...]) -> Iterator[str]:
    facts = (node.kind, node.abstraction, node.state, node.usage and f"mapping {node.usage.lower()}")
    yield f"{node.id}  {node.name}" + (f"  {node.name_zh}" if node.name_zh else "")
    yield "    " + " · ".join(filter(None, (*facts, f"{node.source} {node.version}", node.address)))
    written = dossiers.dossier(node.id)
    told = [("", half.description) for half in (written.en, written.zh)] if written else [("", node.text)]
    for label, text in (*told, ("prevent: ", node.advice), ("also: ", ", ".join(aliases))):
        if text:
            yield textwrap.indent(textwrap.fill(label + text, width() - 4), "    ")
    groups: dict[tuple[str, str], list[str]] = {}
    for edge in edges:
        arrow, other = (f"{edge.relation} →", edge.end) if edge.start == node.id else (f"← {edge.relation}", edge.start)
        groups.setdefault((arrow, edge.kind), []).append(
            other + (f" ({len(edge.support)})" if edge.relation == "enables" and edge.support else "")
        )
    for (arrow, kind), others in groups.items():
        more = f" … {len(others)} in all" if len(others) > _SHOWN_EDGES else ""
        yield f"  {arrow:<16} {kind:<9} {', '.join(others[:_SHOWN_EDGES])}{more}"
