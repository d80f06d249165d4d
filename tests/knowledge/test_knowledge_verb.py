from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from casemate import settings
from casemate.cli.kb import kb
from casemate.errors import KnowledgeError, UsageError
from casemate.knowledge.graph import Graph
from casemate.knowledge.update import opened


@pytest.fixture
def built(home: Path, real_graph: Graph) -> Path:
    target = settings.load().graph
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(real_graph.path, target)
    return target


def printed(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(kb, arguments, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


def parsed(*arguments: str, code: int = 0) -> dict[str, Any]:
    value = json.loads(printed(*arguments, "--json", code=code))
    assert value["schema_version"] == 1
    return dict(value)


def test_status_counts_what_the_graph_holds(built: Path) -> None:
    value = parsed("status")
    assert value["nodes"]["weakness"] == 944
    assert value["dangling"] == 0
    assert value["dense"]["done"] == 0 < value["dense"]["total"]
    assert "weakness 944" in printed("status")


def test_show_prints_a_node_with_what_is_around_it(built: Path) -> None:
    value = parsed("show", "cwe-89")
    assert value["node"]["id"] == "CWE-89"
    assert value["node"]["address"] == "https://cwe.mitre.org/data/definitions/89.html"
    assert any(edge["end"] == "T1190" and edge["kind"] == "curated" for edge in value["edges"])
    text = printed("show", "CWE-89")
    assert "SQL注入" in text
    assert "touches →" in text


def test_show_of_an_unknown_id_is_an_error(built: Path) -> None:
    with pytest.raises(KnowledgeError, match="the graph has no"):
        printed("show", "CWE-99999")


def test_search_prints_passages_best_first(built: Path) -> None:
    assert parsed("search", "撞库", "--limit", "1")["passages"][0]["node"] == "T1110.004"
    assert printed("search", "SQL注入").startswith("CWE-89  ")
    assert printed("search", "??") == "nothing found\n"


def test_check_names_every_wrong_citation_by_line_and_exits_one(built: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    report.write_text("CWE-89 is right.\n但 CWE-99999 不存在。\nCWE-79 (SQL Injection)\n", encoding="utf-8")
    value = parsed("check", str(report), code=1)
    assert [(row["line"], row["grade"]) for row in value["citations"]] == [(1, "H0"), (2, "H1"), (3, "H4")]
    assert (value["grades"], value["failed_per_100"]) == ({"H0": 1, "H1": 1, "H4": 1}, 66.7)
    text = printed("check", str(report), code=1)
    assert f"{report}:2:3: H1 CWE-99999: does not exist" in text
    assert text.endswith("3 citations, 2 wrong (H0 1, H1 1, H4 1)\n")


def test_check_of_a_right_text_exits_zero(built: Path, tmp_path: Path) -> None:
    (tmp_path / "right.txt").write_text("T1190 and CWE-89")
    assert printed("check", str(tmp_path / "right.txt")) == "2 citations, 0 wrong (H0 2)\n"
    (tmp_path / "none.txt").write_text("")
    assert printed("check", str(tmp_path / "none.txt")) == "0 citations, 0 wrong\n"


def test_check_refuses_what_it_cannot_read_in_one_line(built: Path, tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    for path, what in ((tmp_path / "absent", "No such file"), (tmp_path, "directory"), (tmp_path / "bytes", "UTF-8")):
        with pytest.raises(UsageError, match=what):
            printed("check", str(path))


@pytest.mark.parametrize("arguments", [["status"], ["show", "CWE-89"], ["search", "xss"]])
def test_without_a_graph_the_remedy_is_named(home: Path, arguments: list[str]) -> None:
    with pytest.raises(KnowledgeError, match="casemate kb build"):
        printed(*arguments)


def test_without_sources_build_says_what_to_fetch(home: Path) -> None:
    with pytest.raises(KnowledgeError, match="casemate fetch cwe attack"):
        printed("build")


def test_build_makes_the_graph_once(home: Path, artifacts: Path, real_graph: Graph) -> None:
    folder = settings.load().artifacts
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.symlink_to(artifacts)
    first, second = parsed("build"), parsed("build")
    assert (first["fresh"], second["fresh"]) == (True, False)
    assert Path(first["graph"]).read_bytes() == real_graph.path.read_bytes()


NINE = ("CWE-89", "CWE-79", "CWE-78", "CWE-22", "CWE-502", "CWE-918", "CWE-611", "CWE-352", "CWE-306")


@pytest.mark.parametrize("cwe", NINE)
def test_explain_says_by_what_right_a_weakness_enables_a_technique(built: Path, cwe: str) -> None:
    text = printed("explain", cwe)
    assert "enables" in text
    assert "[evidence of " in text
    assert "[curated; " in text


def test_explain_prints_the_way_with_kinds_and_counts(built: Path) -> None:
    text = printed("explain", "CWE-78", "--to", "T1190")
    assert "evidence of 12 exploited CVEs" in text
    first = parsed("explain", "cwe-78", "--to", "t1190")["routes"][0]
    assert (first["weakest"], len(first["steps"][0]["support"])) == ("evidence", 12)


def test_explain_says_where_nothing_leads(built: Path) -> None:
    assert "nothing in the graph leads" in printed("explain", "CWE-5", "--to", "D3-CH", code=1)


def test_explain_tells_what_became_of_a_technique_that_left(built: Path) -> None:
    text = printed("explain", "T1562.001")
    assert "gone; replaced by T1685" in text
    assert "in ATT&CK 18.1: Defense Evasion" in printed("explain", "TA0005")


@pytest.mark.parametrize("arguments", [("explain", "CWE-99999"), ("explain", "CWE-89", "--to", "T9999"), ("show", "")])
def test_an_id_that_the_graph_lacks_is_an_error(built: Path, arguments: tuple[str, ...]) -> None:
    with pytest.raises(KnowledgeError, match="the graph has no"):
        printed(*arguments)


def test_search_keeps_to_a_budget_of_tokens(built: Path) -> None:
    assert len(parsed("search", "CSRF SSRF XXE XSS", "--limit", "4")["passages"]) == 4
    assert len(parsed("search", "CSRF SSRF XXE XSS", "--limit", "4", "--tokens", "200")["passages"]) < 4


def test_explain_tells_a_vulnerability_s_weaknesses_and_what_exploits_it(built: Path) -> None:
    text = printed("explain", "CVE-2021-44228")
    assert "is a case of" in text
    assert "CWE-502" in text
    assert "was exploited by" in text
    assert "T1190" in text


def test_explain_marks_what_newer_versions_no_longer_say_and_names_the_heir_of_an_end_that_left(built: Path) -> None:
    assert "no longer in newer versions" in printed("explain", "T1562")
    assert "T1562.001 is gone; replaced by T1685" in printed("explain", "CWE-89", "--to", "T1562.001", code=1)
    assert "both ends are CWE-89" in printed("explain", "CWE-89", "--to", "CWE-89", code=1)


def test_a_build_does_not_run_beside_an_update(built: Path) -> None:
    with opened(settings.load().sources), pytest.raises(KnowledgeError, match="update"):
        printed("build")
