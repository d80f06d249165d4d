"""`casemate kb check`: what it reads, and what it prints."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from casemate import settings
from casemate.cli import checking
from casemate.cli.kb import kb
from casemate.errors import UsageError
from casemate.knowledge.graph import Graph


@pytest.fixture
def built(home: Path, real_graph: Graph) -> Path:
    target = settings.load().graph
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(real_graph.path, target)
    return target


def printed(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(kb, ["check", *arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


def parsed(*arguments: str, code: int = 0) -> dict[str, Any]:
    return dict(json.loads(printed(*arguments, "--json", code=code)))


def test_rows_carry_proposals_and_the_rates_their_denominator(built: Path, tmp_path: Path) -> None:
    (tmp_path / "r.md").write_text("T1002 ran.\nCWE-200: the error message\nCWE-89 and CWE-99999\n")
    value = parsed(str(tmp_path / "r.md"), code=1)
    assert [(row["line"], row["column"], row["grade"]) for row in value["citations"]] == [
        (1, 1, "H2"),
        (2, 1, "H5"),
        (3, 1, "H0"),
        (3, 12, "H1"),
    ]
    assert value["citations"][0]["proposals"] == ["T1560"]
    assert value["citations"][1]["proposals"][0] == "CWE-209"
    assert value["rates"] == {
        "citations": 4,
        "per_100": {"H0": 25.0, "H1": 25.0, "H2": 25.0, "H5": 25.0},
        "failed": 3,
        "failed_per_100": 75.0,
    }
    text = printed(str(tmp_path / "r.md"), code=1)
    assert "H2 T1002: revoked; right is T1560" in text
    assert "H5 CWE-200: mapping to it is discouraged; narrower are CWE-209" in text


def test_with_material_quotations_and_places_are_checked(built: Path, tmp_path: Path) -> None:
    folder = tmp_path / "input" / "src"
    folder.mkdir(parents=True)
    (folder / "app.py").write_text("a = 1\nrun(a)\n")
    (tmp_path / "out.py").write_text("outside()\n")
    (folder / "link.py").symlink_to(tmp_path / "out.py")
    report = tmp_path / "r.md"
    report.write_text("In src/app.py:2 stands `run(a)` (CWE-89).\nThe code reads `os.system(a)` in link.py:1.\n")
    value = parsed(str(report), "--against", str(tmp_path / "input"), code=1)
    assert value["grades"] == {"E1": 1, "E2": 1, "H0": 3}
    assert parsed(str(report))["grades"] == {"H0": 1}
    value = parsed(str(report), "--against", str(folder / "app.py"), code=1)
    assert value["grades"] == {"E1": 1, "E2": 1, "H0": 3}


def test_json_and_sarif_are_known_by_their_content(built: Path, tmp_path: Path) -> None:
    (tmp_path / "report.txt").write_text('{"results": [{"cweId": 99999}]}')
    assert printed(str(tmp_path / "report.txt"), code=1).startswith(f"{tmp_path / 'report.txt'}:1:24: H1 CWE-99999")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le-bom", "gbk"])
def test_a_text_is_read_in_any_usual_encoding(tmp_path: Path, encoding: str) -> None:
    text = "跨站脚本（CWE-89）\r\n第二行"
    content = b"\xff\xfe" + text.encode("utf-16-le") if encoding == "utf-16-le-bom" else text.encode(encoding)
    (tmp_path / "r.txt").write_bytes(content)
    assert checking.read(tmp_path / "r.txt") == text.replace("\r\n", "\n")


@pytest.mark.parametrize(
    "content", [b"\x7fELF" + bytes(range(32)) * 40, b"\x89PNG\r\n\x1a\n" + bytes(200), b"\xff\xff\xff", b"\xff\xfe\x00"]
)
def test_what_is_no_text_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "r.bin").write_bytes(content)
    with pytest.raises(UsageError, match="is not text"):
        checking.read(tmp_path / "r.bin")


def test_a_few_nul_bytes_are_survived(tmp_path: Path, real_graph: Graph) -> None:
    (tmp_path / "r.txt").write_bytes(b"some text of a report\0 and CWE-99999 in it\0")
    report = checking.check(tmp_path / "r.txt", real_graph)
    assert [verdict.grade for verdict in report.verdicts] == ["H1"]


def test_a_file_that_is_too_large_or_absent_is_refused_in_one_line(tmp_path: Path) -> None:
    with (tmp_path / "large.txt").open("wb") as file:
        file.truncate(50_000_001)
    for path, what in ((tmp_path / "large.txt", "50 MB"), (tmp_path / "none", "No such"), (tmp_path, "directory")):
        with pytest.raises(UsageError, match=what):
            checking.read(path)


def test_a_report_of_one_long_line_is_placed_by_its_columns(tmp_path: Path, real_graph: Graph) -> None:
    (tmp_path / "r.txt").write_text("x" * 1_000_000 + " CWE-99999 " + "y" * 1_000_000)
    rows = checking.check(tmp_path / "r.txt", real_graph).as_json()["citations"]
    assert [(row["line"], row["column"]) for row in rows] == [(1, 1_000_002)]
