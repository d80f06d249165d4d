"""`casemate audit`, as a person or a pipeline calls it."""

import json
import os
import stat
from pathlib import Path

import pytest

from casemate.cli import main

_HASH = "import hashlib\n\ndef stored(password):\n    return hashlib.md5(password.encode()).hexdigest()\n"
_SAFE = "def total(a, b):\n    return a + b\n"


@pytest.fixture(autouse=True)
def _home_of_its_own(home: Path) -> None:
    """Reports of these audits go to a home folder of the test."""


def _run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main.run(["audit", *arguments, "--no-model"])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def _tree(folder: Path, **files: str) -> str:
    for name, content in files.items():
        (folder / f"{name}.py").write_text(content)
    return str(folder)


def test_a_tree_without_findings_is_clean_and_exits_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(_tree(tmp_path, safe=_SAFE)) == 0
    assert "no model: rules only" in capsys.readouterr().out


def test_findings_exit_1_and_json_says_what_where_and_how_to_fix_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(_tree(tmp_path, weak=_HASH), "--json") == 1
    told = json.loads(capsys.readouterr().out)
    (finding,) = told["findings"]
    assert (told["schema_version"], told["ledger"]["analysed"]) == (1, 1)
    assert (finding["path"], finding["line"], finding["cwe"]) == ("weak.py", 4, "CWE-328")
    assert finding["evidence"].strip() == _HASH.splitlines()[3].strip()


def test_only_findings_as_severe_as_asked_make_it_fail(tmp_path: Path) -> None:
    tree = _tree(tmp_path, weak=_HASH)
    assert _run(tree, "--fail-on", "medium") == 1
    assert _run(tree, "--fail-on", "critical") == 0


def test_a_file_that_cannot_be_read_as_python_makes_it_incomplete_whatever_was_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = _tree(tmp_path, weak=_HASH, broken="def (:\n")
    assert _run(tree, "--format", "json") == 2
    (failed,) = json.loads(capsys.readouterr().out)["ledger"]["failed"]
    assert failed["path"] == "broken.py"
    assert "line 1" in failed["reason"]


def test_a_tree_of_which_nothing_could_be_analysed_is_not_clean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "app.c").write_text("int main(void) { return 0; }\n")
    assert _run(str(tmp_path)) == 2
    assert "Nothing was analysed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("form", "opening"), [("md", "# "), ("html", "<!doctype html>"), ("sarif", "{"), ("text", "Code audit")]
)
def test_every_form_goes_to_a_file_when_asked(tmp_path: Path, form: str, opening: str) -> None:
    (tmp_path / "in").mkdir()
    target = tmp_path / "report"
    assert _run(_tree(tmp_path / "in", weak=_HASH), "--format", form, "--output", str(target)) == 1
    assert target.read_text().lower().startswith(opening.lower())


def test_sarif_addresses_begin_at_the_top_of_the_checkout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    service = tmp_path / "services" / "a b"
    service.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    _run(_tree(service, weak=_HASH), "--format", "sarif")
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    place = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place["uri"] == "services/a%20b/weak.py"


def test_the_report_is_kept_for_the_page_and_for_us_alone(tmp_path: Path, home: Path) -> None:
    (tmp_path / "in").mkdir()
    _run(_tree(tmp_path / "in", weak=_HASH))
    (run,) = (home / ".casemate" / "runs" / "audit").iterdir()
    assert {path.name for path in run.iterdir()} == {"findings.json", "report.html", "manifest.json"}
    assert stat.S_IMODE(run.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in run.iterdir()} == {0o600}


def test_chinese_is_spoken_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run(_tree(tmp_path, weak=_HASH), "--language", "zh")
    assert "严重程度" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["text", "json", "md", "html", "sarif"])
def test_a_file_name_that_is_not_utf_8_is_audited_and_shown_in_every_form(
    tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / os.fsdecode(b"bad\xff\x1b[31m.py")).write_text(_HASH)
    assert _run(str(tmp_path), "--format", form) == 1
    told = capsys.readouterr().out
    assert "bad" in told
    assert "\x1b" not in told


def test_an_output_that_cannot_be_finished_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    target = tmp_path / "report.json"
    target.write_text("old")
    assert _run(_tree(tmp_path / "in", weak=_HASH), "--json", "--output", str(tmp_path / "in")) == 3
    assert _run(str(tmp_path / "in"), "--json", "--output", str(target)) == 1
    assert json.loads(target.read_text())["findings"]
    assert {path.name for path in tmp_path.iterdir()} == {"in", "report.json"}


def test_what_cannot_be_audited_or_written_is_one_line_and_exits_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    tree = _tree(tmp_path, weak=_HASH)
    for arguments in (
        [str(tmp_path / "nowhere")],
        [str(tmp_path / "empty")],
        [tree, "--format", "md", "--output", str(tmp_path / "no" / "such" / "folder")],
        [tree, "--format", "nonsense"],
    ):
        assert _run(*arguments) == 3, arguments
        told = capsys.readouterr().err.strip()
        assert told.startswith("casemate: "), told
        assert "\n" not in told
