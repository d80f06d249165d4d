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
from casemate.knowledge.node import Edge, EdgeKind, Node, State
from casemate.knowledge.routes import Route, Step, routes
from casemate.report.visible import visible

_NOTHING = 1
_MOST_ROWS = 5
_KEV = "CISA KEV"
_HEADINGS = {
    "child-of": ("belongs to", "has below it"),
    "part-of": ("belongs to", "has below it"),
    "has-member": ("has below it", "belongs to"),
    "achieves": ("belongs to", "is achieved by"),
    "enables": ("enables", "is enabled by"),
    "attacked-by": ("is attacked by", "attacks"),
    "carried-out-by": ("is carried out by", "carries out"),
    "mitigates": ("counters", "is countered by"),
    "counters": ("counters", "is countered by"),
    "detects": ("detects", "is detected by"),
    "touches": ("touches", "is touched by"),
    "observed-in": ("was seen in", "is a case of"),
    "way-in": ("was exploited by", "was the way into"),
    "first-effect": ("led to", "was an effect of"),
    "second-effect": ("led to", "was an effect of"),
}
"""What a relation says of the node where it starts, and of the one where it ends."""


def explain(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The node to explain: CWE-78, T1190, GDPR Art. 32 …")],
    to: Annotated[str, typer.Option(metavar="ID", help="Show the ways from the node to this one.")] = "",
    *,
    form: TextOrJson = Form.TEXT,
    json: Json = False,
) -> None:
    """Explain a node by its relations, or how it leads to another; each with its kind, source and CVE count."""
    with Graph.open(settings.load().graph) as graph:
        start = named(graph, id_)
        if to:
            end = named(graph, to)
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


def named(graph: Graph, text: str) -> Node:
    """The node of an id as a person types it.

    Raises:
        KnowledgeError: there is none.
    """
    node = graph.node(mentions.canonical(text))
    if node is None:
        raise KnowledgeError(f"the graph has no {text!r}", remedy='try casemate kb search "…"')
    return node


def _ways(graph: Graph, start: Node, *, end: Node, found: tuple[Route, ...]) -> Iterator[str]:
    if start.id == end.id:
        yield f"both ends are {start.id}"
    elif not found:
        yield f"nothing in the graph leads from {start.id} to {end.id}"
    if end.state is not State.LIVE:
        heirs = ", ".join(edge.end for edge in graph.around(end.id, "replaced-by") if edge.start == end.id)
        yield f"{end.id} is {end.state}" + (f"; replaced by {heirs}" if heirs else "")
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
    number = len(edge.support) if edge.relation == "enables" else 0
    count = f" of {number} exploited CVE{'s' if number > 1 else ''}" if number else ""
    former = "no longer in newer versions" if edge.former else ""
    return "; ".join(filter(None, (f"{edge.kind}{count}", f"{edge.source} {edge.version}", former, edge.note)))


def _chapters(graph: Graph, node: Node) -> Iterator[tuple[str, list[Edge]]]:
    edges = sorted(graph.around(node.id, former=node.state is not State.LIVE), key=lambda edge: edge.source != _KEV)
    chapters: dict[str, list[Edge]] = {heading: [] for pair in _HEADINGS.values() for heading in pair}
    for edge in edges:
        if edge.relation in _HEADINGS:
            chapters[_HEADINGS[edge.relation][edge.start != node.id]].append(edge)
    yield from ((heading, found) for heading, found in chapters.items() if found)


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


def _name(graph: Graph, id_: str) -> str:
    node = graph.node(id_)
    return node.name if node else ""
