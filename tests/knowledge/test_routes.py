from __future__ import annotations

from itertools import pairwise

import pytest

from casemate.knowledge.graph import Graph
from casemate.knowledge.node import EdgeKind, Kind
from casemate.knowledge.routes import routes

NINE = ("CWE-89", "CWE-79", "CWE-78", "CWE-22", "CWE-502", "CWE-918", "CWE-611", "CWE-352", "CWE-306")


@pytest.mark.parametrize("cwe", NINE)
def test_each_way_is_unbroken_and_ends_where_it_was_to(real_graph: Graph, cwe: str) -> None:
    found = routes(real_graph, cwe, end="TA0001")
    assert found
    for route in found:
        assert (route.steps[0].at, route.steps[-1].to) == (cwe, "TA0001")
        assert all(one.to == other.at for one, other in pairwise(route.steps))
        assert all({step.at, step.to} == {step.edge.start, step.edge.end} for step in route.steps)


def test_the_best_way_says_what_stands_behind_it(real_graph: Graph) -> None:
    best, *others = routes(real_graph, "CWE-78", end="T1190")
    assert [(step.at, step.to) for step in best.steps] == [("CWE-78", "T1190")]
    assert (best.weakest, len(best.steps[0].edge.support)) == (EdgeKind.EVIDENCE, 12)
    assert best.steps[0].edge not in [route.steps[0].edge for route in others]


def test_two_weaknesses_are_not_tied_by_a_technique_that_both_enable(real_graph: Graph) -> None:
    for route in routes(real_graph, "CWE-89", end="CWE-78"):
        for one, other in pairwise(route.steps):
            assert one.edge.relation != other.edge.relation or one.along == other.along


def test_no_way_leads_through_a_place_where_everything_meets(real_graph: Graph) -> None:
    for route in routes(real_graph, "CWE-352", end="T1690", limit=5):
        for step in route.steps[:-1]:
            node = real_graph.node(step.to)
            assert node is not None
            assert node.kind not in (Kind.VIEW, Kind.CATEGORY, Kind.TACTIC, Kind.VULNERABILITY, Kind.DETECTION)


@pytest.mark.parametrize(("start", "end"), [("CWE-89", "CWE-0"), ("CWE-0", "CWE-89"), ("CWE-89", "CWE-89")])
def test_what_is_not_there_or_the_place_itself_is_no_goal(real_graph: Graph, start: str, end: str) -> None:
    assert routes(real_graph, start, end=end) == ()
