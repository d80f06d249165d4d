"""What the graph's pages and their JSON twins tell, over a small graph."""

from __future__ import annotations

import re

import pytest

from casemate.knowledge.node import EdgeKind, Kind, State
from casemate.web.atlas import words
from casemate.web.atlas.picture import MOST
from fakes import atlas
from fakes.pages import get, page, twin

RULE = "Sigma 00000000-0000-4000-8000-000000000007"


async def test_the_start_page_leads_to_the_graph(address: str) -> None:
    start = await page(address, "/")
    assert {"lang": ["en"]} in start.links("/graph")
    lobby = await page(address, "/graph")
    assert lobby.status == 200
    assert "CWE-89" in lobby.nodes()
    assert "3 Weaknesses" in lobby.text
    assert ("form", "/graph/path") in [(tag, given.get("action")) for tag, given in lobby.tags]


@pytest.mark.parametrize(
    "asked", ["CWE-89", "cwe89", " CWE 89 ", "查询注入", "careless making of a query ('sql injection')"]
)
async def test_an_exact_id_or_name_goes_straight_to_its_node(asked: str, address: str) -> None:
    status, _, headers = await get(address, "/graph", q=asked, lang="zh")
    assert (status, headers["Location"]) == (303, "/graph/node?lang=zh&id=CWE-89")


@pytest.mark.parametrize("asked", ["the quote in a search box broke it", "查询的草率"])
async def test_a_question_in_either_language_finds_nodes(asked: str, address: str) -> None:
    found = await page(address, "/graph", q=asked)
    assert found.status == 200
    assert found.nodes()[0] == "CWE-89"
    _, value = await twin(address, "/graph.json", q=asked)
    assert value["passages"][0]["node"] == "CWE-89"


async def test_a_question_that_nothing_answers_says_so(address: str) -> None:
    found = await page(address, "/graph", q="zzzz")
    assert (found.status, found.nodes()) == (200, [])
    assert words.WORDS["en"]["no_results"] in found.text


@pytest.mark.parametrize(
    ("language", "first", "second"),
    [
        ("en", "CWE-89 Careless Making of a Query ('SQL Injection')", "SQL 查询的草率拼接"),
        ("zh", "CWE-89 SQL 查询的草率拼接", "Careless Making of a Query ('SQL Injection')"),
    ],
)
async def test_a_node_shows_both_names_that_of_the_pages_language_first(
    language: str, first: str, second: str, address: str
) -> None:
    node = await page(address, "/graph/node", id="CWE-89", lang=language)
    assert ("html", {"lang": language}) in node.tags
    assert node.text.index(first) < node.text.index(second)


async def test_a_node_shows_who_says_what_of_it_in_which_version(address: str) -> None:
    node = await page(address, "/graph/node", id="CWE-89")
    for part in (
        "CWE 9.1",
        "Base",
        "mapping: Allowed",
        "text of CWE 9.0",
        "CWE 9.0",
        "Careless Query (",
        "查询注入",
    ):
        assert part in node.text
    assert "https://cwe.mitre.org/data/definitions/89.html" in [given.get("href") for tag, given in node.tags]


async def test_neighbours_stand_by_relation_with_counts_by_kind_and_the_source_of_each(address: str) -> None:
    node = await page(address, "/graph/node", id="CWE-89")
    relations = node.text.partition(" Relations ")[2]
    for part in (
        "Child of official 2",
        "official CWE 9.1 CWE-20 Improper Input Validation",
        "Enables evidence 1 evidence KEV 2026-02-02 T1190 Exploit Public-Facing Application way in 3 3 CVEs",
        "Touches curated 1 curated Casemate's own tables GDPR Art. 32(1)(b) Confidentiality",
        "Observed in evidence 1 evidence CWE 9.1 CVE-2021-1111 A shop let strangers ask.",
    ):
        assert part in relations
    assert set(atlas.CVES) <= set(node.nodes())
    other = await page(address, "/graph/node", id="T1190")
    assert "Enabled by evidence 1 evidence KEV 2026-02-02 CWE-89" in other.text


async def test_an_edge_that_newer_versions_no_longer_have_is_marked(address: str) -> None:
    node = await page(address, "/graph/node", id="CWE-89")
    assert "official CWE 9.0 former newer versions of the source no longer have it CWE-74 Injection" in node.text


async def test_the_dossier_comes_in_the_pages_language_with_examples_as_code_and_cases_with_addresses(
    address: str,
) -> None:
    english = await page(address, "/graph/node", id="CWE-89")
    chinese = await page(address, "/graph/node", id="CWE-89", lang="zh")
    assert words.WORDS["en"]["triggers"] in english.text
    assert words.WORDS["zh"]["triggers"] in chinese.text
    assert english.count("pre") == chinese.count("pre") > 1
    records = [given["href"] or "" for tag, given in english.tags if "cve.org" in (given.get("href") or "")]
    assert records
    assert all(record.startswith("https://www.cve.org/CVERecord?id=CVE-") for record in records)
    assert words.WORDS["en"]["triggers"] not in (await page(address, "/graph/node", id="T1190")).text


async def test_a_node_that_was_replaced_leads_to_its_successor(address: str) -> None:
    node = await page(address, "/graph/node", id="T1064")
    assert "No longer valid (revoked). Its successor: T1059 Command and Scripting Interpreter" in node.text


async def test_a_long_list_is_folded_and_whole(address: str) -> None:
    node = await page(address, "/graph/node", id="T1190")
    assert f"{atlas.MANY - 8} more" in node.text
    assert len({id_ for id_ in node.nodes() if id_.startswith("Sigma ")}) == atlas.MANY


async def test_the_picture_shows_a_bounded_share_of_each_kind_and_every_neighbour_is_a_link(address: str) -> None:
    node = await page(address, "/graph/node", id="T1190")
    assert node.count("svg") == 1 + len(EdgeKind)  # the picture, and a line of each kind in the legend
    assert 2 <= node.count("a", "spot") <= MOST
    assert node.count("a", "spot") == node.count("rect") - 1
    assert re.search(rf"Detection rules\s*\d+ of {atlas.MANY}", node.text)
    assert node.count("g", "evidence") == 1
    assert (await page(address, "/graph/node", id=RULE)).count("a", "spot") == 1


async def test_a_node_alone_has_no_picture_and_says_that_it_has_no_relations(address: str) -> None:
    node = await page(address, "/graph/node", id="CVE-2022-2222")
    assert node.count("svg") == 0
    assert words.WORDS["en"]["no_relations"] in node.text


async def test_the_ways_between_two_nodes_show_each_step_with_kind_count_and_source(address: str) -> None:
    ways = await page(address, "/graph/path", **{"from": "GDPR Art. 32(1)(b)", "to": "t1190"})
    for part in (
        "weakest step: curated",
        "Touched by curated Casemate's own tables",
        "Enables evidence KEV 2026-02-02 way in 3 3 CVEs",
    ):
        assert part in ways.text
    _, value = await twin(address, "/graph/path.json", **{"from": "GDPR Art. 32(1)(b)", "to": "T1190"})
    assert [(step["to"], step["along"]) for step in value["routes"][0]["steps"]] == [("CWE-89", False), ("T1190", True)]
    assert value["routes"][0]["weakest"] == "curated"


@pytest.mark.parametrize(("end", "said"), [("CWE-89", "same"), (RULE, "no_way")])
async def test_where_no_way_leads_the_page_says_why(end: str, said: str, address: str) -> None:
    ways = await page(address, "/graph/path", **{"from": "CWE-89" if said == "same" else "T1059", "to": end})
    assert (ways.status, words.WORDS["en"][said] in ways.text) == (200, True)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("T1059.999", ["T1059"]),
        ("GDPR Art. 32(1)(b)(9)", ["GDPR Art. 32(1)(b)"]),
        ("CWE-99999", []),
        ("careless making", ["CWE-89"]),
    ],
)
async def test_what_the_graph_does_not_have_is_not_found_and_something_is_suggested(
    asked: str, meant: list[str], address: str
) -> None:
    for path, parameters in (("/graph/node", {"id": asked}), ("/graph/path", {"from": "CWE-89", "to": asked})):
        lost = await page(address, path, **parameters)
        assert (lost.status, lost.nodes()) == (404, meant)
        assert [link["q"] for link in lost.links("/graph") if "q" in link] == [[asked]]
        status, value = await twin(address, f"{path}.json", **parameters)
        assert (status, value["error"]["code"], value["nearest"]) == (404, "no_such_node", meant)


async def test_the_twin_of_a_node_has_every_fact_of_its_page(address: str) -> None:
    status, value = await twin(address, "/graph/node.json", id="CWE-89")
    assert status == 200
    assert value["node"]["address"] == "https://cwe.mitre.org/data/definitions/89.html"
    assert [edition["version"] for edition in value["editions"]] == ["9.1", "9.0"]
    assert {edge["end"]: edge["former"] for edge in value["edges"] if edge["relation"] == "child-of"} == {
        "CWE-20": False,
        "CWE-74": True,
    }
    assert value["dossier"]["cwe"] == "CWE-89"


async def test_every_page_links_to_itself_in_the_other_language_and_as_json(address: str) -> None:
    node = await page(address, "/graph/path", **{"from": "CWE-89", "to": "T1190"})
    ends = {"from": ["CWE-89"], "to": ["T1190"]}
    assert ends | {"lang": ["zh"]} in node.links("/graph/path", "hreflang")
    assert ends in node.links("/graph/path.json")


def test_every_word_kind_state_and_relation_stands_in_both_languages() -> None:
    assert words.WORDS["en"].keys() == words.WORDS["zh"].keys()
    for name, english in words.WORDS["en"].items():
        assert words.WORDS["zh"][name].count("{}") == english.count("{}"), name
    for table, whole in ((words.KINDS, Kind), (words.EDGE_KINDS, EdgeKind), (words.STATES, State)):
        assert all(set(table[language]) == set(whole) for language in ("en", "zh"))
    assert all(label.strip() for pair in words.RELATIONS.values() for labels in pair for label in labels)
    assert words.relation("sings-of", "zh", outward=False) == "← sings-of"
