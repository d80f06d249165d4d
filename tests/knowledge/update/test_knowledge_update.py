from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from artifacts.origin import Origin
from casemate.errors import KnowledgeError
from casemate.knowledge import build as builder
from casemate.knowledge import update as updates
from casemate.knowledge.difference import Changed, Named, VersionDifference, difference
from casemate.knowledge.feeds import importers
from casemate.knowledge.graph import Graph
from knowledge.update.desk import ENTRY, GDPR, RENAMED, WITHDRAWN, Desk, Run, cve, kev, node_of


def test_a_file_is_kept_and_the_graph_knows_what_it_says(desk: Desk, run: Run) -> None:
    code, text = run("update", "--from", desk.put("kev.json", kev(ENTRY)))
    assert code == 0
    assert "CISA KEV: 2025-08-25 → 2041-02-03, 2025-08-25" in text
    assert "CVE-2041-0001  Gate Left Open" in text
    assert "edges observed-in (CISA KEV): 1 new" in text
    assert desk.kept() == {"kev.kev.json": kev(ENTRY).encode()}
    assert node_of(desk, "CVE-2041-0001").version == "2041-02-03"
    assert (desk.config.sources / "kev.kev.json").stat().st_mode & 0o777 == 0o600
    assert desk.config.sources.stat().st_mode & 0o777 == 0o700


def test_the_same_update_again_changes_nothing(stocked: Desk, run: Run) -> None:
    before = stocked.everything()
    for check in ([], ["--check"]):
        code, text = run("update", *check, "--from", stocked.put("first.json", kev(ENTRY, WITHDRAWN)))
        assert (code, text.splitlines()[1]) == (0, "nothing changed")
        assert stocked.everything() == before


def test_an_update_tells_renamed_and_gone_in_json_and_replaces_what_was_kept(stocked: Desk, run: Run) -> None:
    newer = stocked.put("newer.json", kev(RENAMED, version="2041.02.09"))
    code, text = run("update", "kev", "--from", newer, "--json")
    value = json.loads(text)
    assert (code, value["schema_version"], value["changed"], value["missed"]) == (0, 1, True, [])
    assert value["brought"] == [{"name": "kev", "from": newer, "kept": "kev.newer.json"}]
    (kind,) = value["difference"]["kinds"]
    assert kind["renamed"] == [{"id": "CVE-2041-0001", "before": "Gate Left Open", "after": "Gate Left Ajar"}]
    assert kind["gone"] == [{"id": "CVE-2041-0002", "name": "Gate Left Open"}]
    assert list(stocked.kept()) == ["kev.newer.json"]
    origin = builder.sources(stocked.config.artifacts, stocked.config.sources)
    assert not builder.build(origin, stocked.config.graph).fresh


def test_a_folder_is_kept_without_its_hidden_files_and_links(desk: Desk, run: Run) -> None:
    desk.put("tree/2041/CVE-2041-0001.json", cve(1))
    desk.put("tree/2041/CVE-2041-0002.json", cve(2))
    desk.put("tree/.git/CVE-2041-0003.json", cve(3))
    (desk.folder / "tree" / "CVE-2041-0004.json").symlink_to(desk.put("away.json", cve(4)))
    assert run("update", "--from", str(desk.folder / "tree"))[0] == 0
    files = {name for name, content in desk.kept().items() if content is not None}
    assert files == {"cve.tree/2041/CVE-2041-0001.json", "cve.tree/2041/CVE-2041-0002.json"}
    assert node_of(desk, "CVE-2041-0002").text == "Hole 2."
    assert {p.stat().st_mode & 0o777 for p in desk.config.sources.rglob("*")} == {0o600, 0o700}


@pytest.mark.parametrize("before", ["cve.file", "cve.folder/CVE-2041-0001.json"])
@pytest.mark.parametrize("place", ["file", "folder"])
def test_a_file_and_a_folder_of_one_source_take_each_others_place(
    desk: Desk, run: Run, before: str, place: str
) -> None:
    (desk.config.sources / before).parent.mkdir(parents=True)
    (desk.config.sources / before).write_text(cve(1))
    desk.put("file" if place == "file" else "folder/CVE-2041-0002.json", cve(2))
    run("update", "--from", str(desk.folder / place))
    assert [source.path.name for source in importers.kept(desk.config.sources)] == [f"cve.{place}"]
    assert [content for content in desk.kept().values() if content] == [cve(2).encode()]


def test_an_address_is_fetched_under_the_name_that_it_ends_in(desk: Desk, run: Run) -> None:
    with Origin({"/feeds/known%20list.json?key=5": kev(ENTRY).encode()}).serving() as origin:
        code, text = run("update", "kev", "--from", f"{origin.url}/feeds/known%20list.json?key=5")
    assert code == 0
    assert "key=5" not in text
    assert list(desk.kept()) == ["kev.known-list.json"]
    assert node_of(desk, "CVE-2041-0001").name == "Gate Left Open"


def test_several_sources_come_in_one_update(desk: Desk, run: Run) -> None:
    with Origin({"/kev.json": kev(ENTRY).encode()}).serving() as origin:
        code, _ = run("update", "--from", f"{origin.url}/kev.json", "--from", desk.put("gdpr.tsv", GDPR))
    assert code == 0
    assert set(desk.kept()) == {"gdpr.gdpr.tsv", "kev.kev.json"}
    assert (node_of(desk, "GDPR Art. 1").name_zh, node_of(desk, "GDPR Art. 99")) == ("门", None)


def test_a_check_says_what_would_change_exits_one_and_changes_nothing(desk: Desk, run: Run) -> None:
    before = desk.everything()
    code, text = run("update", "--check", "--from", desk.put("kev.json", kev(ENTRY)))
    assert code == 1
    assert "CVE-2041-0001  Gate Left Open" in text
    assert text.endswith("only checked: nothing is kept\n")
    assert desk.everything()[:2] == before[:2]


def test_without_a_graph_an_update_makes_one(desk: Desk, run: Run) -> None:
    desk.config.graph.write_bytes(b"no graph")
    code, text = run("update", "--from", desk.put("kev.json", kev(ENTRY)))
    assert (code, "there is no graph yet to compare with" in text) == (0, True)
    assert node_of(desk, "CVE-2041-0001")


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("18.1", "v18.1"),
        ("a b/ü", "a-b-"),
        ("..", "unnamed"),
        (".hidden", "hidden"),
        ("x" * 300 + ".z", "x" * 98 + ".z"),
    ],
)
def test_a_kept_name_is_plain_and_a_version_in_it_stands_alone(name: str, kept: str) -> None:
    assert updates.plain(name) == kept
    assert updates.plain(kept) == kept


def test_a_difference_names_what_came_went_and_changed(stocked: Desk, run: Run) -> None:
    desk, old = stocked, stocked.folder / "old.sqlite"
    shutil.copy(desk.config.graph, old)
    run(
        "update", "--from", desk.put("kev.json", kev(RENAMED, ENTRY | {"cveID": "CVE-2041-0003"}, version="2041.04.04"))
    )
    with Graph.open(old) as before, Graph.open(desk.config.graph) as after:
        found = difference(before, after)
        back = difference(after, before)
        assert difference(after, after).empty
    (kind,), (edge,) = found.kinds, found.edges
    assert kind.added == (Named("CVE-2041-0003", "Gate Left Open"),)
    assert kind.gone == (Named("CVE-2041-0002", "Gate Left Open"),)
    assert kind.renamed == (Changed("CVE-2041-0001", "Gate Left Open", "Gate Left Ajar"),)
    assert (edge.relation, edge.source, edge.added, edge.removed) == ("observed-in", "CISA KEV", 1, 1)
    assert found.versions == (
        VersionDifference("CISA KEV", ("2041-02-03", "2025-08-25"), ("2041-04-04", "2025-08-25")),
    )
    assert (back.kinds[0].added, back.kinds[0].gone) == (kind.gone, kind.added)


def test_diff_compares_a_graph_with_the_one_in_use_or_another(stocked: Desk, furnished: Path, run: Run) -> None:
    desk, old = stocked, furnished / "graph.sqlite"
    assert run("diff", str(desk.config.graph)) == (0, "nothing differs\n")
    code, text = run("diff", str(old))
    assert (code, "CVE-2041-0001  Gate Left Open" in text) == (1, True)
    code, text = run("diff", str(desk.config.graph), str(old), "--json")
    value = json.loads(text)
    assert (code, value["changed"], value["new"]) == (1, True, str(old))
    with pytest.raises(KnowledgeError, match="there is no graph"):
        run("diff", str(desk.folder / "absent"))
