"""`casemate kb explain`: what a node hangs together with, and by what right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any

import typer

from casemate import settings
from casemate.cli.output import Form, Json, TextOrJson, is_json, print_json
from casemate.errors import KnowledgeError
from casemate.knowledge.gate import mentions
from casemate.knowledge.graph import Graph
from casemate.knowledge.node import Edge, EdgeKind, Kind, Node, State
from casemate.knowledge.routes import Route, Step, routes
from casemate.report.visible import visible

_NOTHING = 1
_MOST_ROWS = 5
_KEV = "CISA KEV"
_CHAPTERS: tuple[tuple[str, tuple[str, ...], tuple[Kind, ...]], ...] = (
    ("belongs to", ("child-of", "has-member", "part-of", "achieves"), tuple(Kind)),
    ("enables", ("enables",), (Kind.TECHNIQUE, Kind.WEAKNESS)),
    ("attacked by", ("attacked-by", "carried-out-by"), (Kind.PATTERN, Kind.WEAKNESS, Kind.TECHNIQUE)),
    ("countered by", ("mitigates", "counters"), (Kind.MITIGATION, Kind.CONTROL, Kind.COUNTERMEASURE, Kind.TECHNIQUE)),
    ("detected by", ("detects",), (Kind.DETECTION, Kind.TECHNIQUE)),
    ("touches", ("touches",), (Kind.CLAUSE, Kind.CONTROL, Kind.REQUIREMENT, Kind.WEAKNESS)),
    ("seen in", ("observed-in", "way-in", "first-effect", "second-effect"), (Kind.VULNERABILITY,)),
)
"""Heading, relations, and the kinds of the node at the other end."""


def explain(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The node to explain: CWE-78, T1190, GDPR Art. 32 …")],
    to: Annotated[str, typer.Option(metavar="ID", help="Show the ways from the node to this one.")] = "",
    *,
    form: TextOrJson = Form.TEXT,
    json: Json = False,
) -> None:
    """Explain a node by its relations, or how it leads to another; each with its kind, source and CVE count."""
    with Graph.open(settings.load().graph) as graph:
        start = _node(graph, id_)
        if to:
            end = _node(graph, to)
            found = routes(graph, start.id, end=end.id)
            value: dict[str, Any] = {"routes": [_route(graph, route) for route in found]}
            lines = list(_ways(graph, start, end=end, found=found))
        else:
            value = {
                "chapters": {heading: [asdict(edge) for edge in edges] for heading, edges in _chapters(graph, start)}
            }
            lines = list(_story(graph, start))
    if is_json(form, json):
        print_json({"from": start.id, "to": to and end.id, **value})
    else:
        typer.echo(visible("\n".join(lines)))
    if to and not value["routes"]:
        raise typer.Exit(_NOTHING)


def _node(graph: Graph, text: str) -> Node:
    node = graph.node(mentions.canonical(text))
    if node is None:
        raise KnowledgeError(f"the graph has no {text!r}", remedy='try casemate kb search "…"')
    return node


def _ways(graph: Graph, start: Node, *, end: Node, found: tuple[Route, ...]) -> Iterator[str]:
    if not found:
        yield f"nothing in the graph leads from {start.id} to {end.id}"
    for number, route in enumerate(found, 1):
        yield f"{number}. {start.id} {start.name} → {end.id} {end.name}; its weakest step is {route.weakest}"
        for step in route.steps:
            yield f"     {_step(graph, step)}"


def _step(graph: Graph, step: Step) -> str:
    relation = f"{step.edge.relation} →" if step.along else f"← {step.edge.relation}"
    node = graph.node(step.to)
    return f"{step.at} {relation} {step.to} {node.name if node else ''}  [{_right(step.edge)}]"


def _right(edge: Edge) -> str:
    """By what right an edge stands: its kind, its count, its source, and the reason that it carries."""
    count = f" of {len(edge.support)} exploited CVEs" if edge.support and edge.relation == "enables" else ""
    return "; ".join(filter(None, (f"{edge.kind}{count}", f"{edge.source} {edge.version}", edge.note)))


def _chapters(graph: Graph, node: Node) -> Iterator[tuple[str, list[Edge]]]:
    around = sorted(graph.around(node.id, former=node.state is not State.LIVE), key=lambda edge: edge.source != _KEV)
    for heading, relations, kinds in _CHAPTERS:
        edges = [edge for edge in around if edge.relation in relations and _kind(graph, _other(edge, node)) in kinds]
        if edges:
            yield heading, edges


def _story(graph: Graph, node: Node) -> Iterator[str]:
    yield (
        f"{node.id}  {node.name}" + (f"  {node.name_zh}" if node.name_zh else "") + f"  ({node.source} {node.version})"
    )
    for edition in graph.editions(node.id):
        if edition.version != node.version and (edition.name, edition.state) != (node.name, node.state):
            yield f"    in {edition.source} {edition.version}: {edition.name}, {edition.state}"
    for heir in (edge for edge in graph.around(node.id, "replaced-by") if edge.start == node.id):
        yield f"    {node.state}; replaced by {heir.end} {_name(graph, heir.end)}  [{_right(heir)}]"
    for heading, edges in _chapters(graph, node):
        shown = _shown(edges)
        yield f"  {heading}: {len(edges)}" + (f", the first {len(shown)}" if len(shown) < len(edges) else "")
        for edge in shown:
            other = _other(edge, node)
            arrow = "→" if edge.start == node.id else "←"
            yield f"    {arrow} {edge.relation} {other} {_name(graph, other)}  [{_right(edge)}]"


def _shown(edges: list[Edge]) -> list[Edge]:
    """The first few edges of each relation and kind, so that none hides another."""
    counts: Counter[tuple[str, EdgeKind]] = Counter()
    shown = []
    for edge in edges:
        counts[edge.relation, edge.kind] += 1
        if counts[edge.relation, edge.kind] <= _MOST_ROWS:
            shown.append(edge)
    return shown


def _route(graph: Graph, route: Route) -> dict[str, Any]:
    steps = [{"at": step.at, "to": step.to, "name": _name(graph, step.to), **asdict(step.edge)} for step in route.steps]
    return {"weakest": route.weakest, "steps": steps}


def _other(edge: Edge, node: Node) -> str:
    return edge.end if edge.start == node.id else edge.start


def _kind(graph: Graph, id_: str) -> Kind | None:
    node = graph.node(id_)
    return node.kind if node else None


def _name(graph: Graph, id_: str) -> str:
    node = graph.node(id_)
    return node.name if node else ""
