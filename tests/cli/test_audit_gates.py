"""What lets a pipeline pass: a baseline, suppression marks, the severity that fails."""

import json
import stat
from pathlib import Path

import pytest

from casemate.cli import main
from casemate.cli.remembering import Explanations

_OLD = "import hashlib\n\ndef stored(password):\n    return hashlib.md5(password.encode()).hexdigest()\n"
_NEW = "\n\ndef again(password):\n    return hashlib.sha1(password.encode()).hexdigest()\n"
_MARKED = (
    "import pickle\nfrom flask import Flask, request\n\napp = Flask(__name__)\n\n\n"
    "@app.post('/')\ndef load():\n    return str(pickle.loads(request.data)){}\n"
)


@pytest.fixture(autouse=True)
def _home_of_its_own(home: Path) -> None:
    """Reports of these audits go to a home folder of the test."""


def _run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        main.run(["audit", *map(str, arguments), "--no-model"])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.py").write_text(_OLD)
    return folder


@pytest.fixture
def known(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A baseline with what is found at first."""
    path = tmp_path / "known.json"
    assert _run(tree, "--write-baseline", path) == 1
    capsys.readouterr()
    return path


def test_what_the_baseline_has_does_not_fail_and_is_shown_as_known(
    tree: Path, known: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(tree, "--baseline", known) == 0
    told = capsys.readouterr().out
    assert "Nothing new in 1 analysed files" in told
    assert "Known from the baseline (1)" in told


def test_only_new_findings_decide_and_those_that_are_gone_are_counted(
    tree: Path, known: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "a.py").write_text("# moved down\n" + _OLD + _NEW)
    assert _run(tree, "--baseline", known, "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert sorted((one["scope"], one["known"]) for one in told["findings"]) == [("again", False), ("stored", True)]
    assert (told["baseline"]["new"], told["baseline"]["known"], told["baseline"]["gone"]) == (1, 1, [])
    assert _run(tree, "--baseline", known, "--fail-on", "critical") == 0
    (tree / "a.py").write_text("x = 1\n")
    capsys.readouterr()
    assert _run(tree, "--baseline", known, "--json") == 0
    assert [row["path"] for row in json.loads(capsys.readouterr().out)["baseline"]["gone"]] == ["a.py"]


def test_a_baseline_can_be_renewed_in_its_place(tree: Path, known: Path) -> None:
    (tree / "a.py").write_text(_OLD + _NEW)
    assert _run(tree, "--baseline", known, "--write-baseline", known) == 1
    assert _run(tree, "--baseline", known) == 0


def test_a_file_that_failed_is_incomplete_whatever_the_baseline_says(tree: Path, known: Path) -> None:
    (tree / "b.py").write_text("def (:\n")
    assert _run(tree, "--baseline", known) == 2


@pytest.mark.parametrize("content", [None, b"{}", b"\xff\xfe", b'{"kind": "casemate-baseline"}'])
def test_a_baseline_that_is_none_is_one_line_and_exits_3(
    content: bytes | None, tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "b.json"
    if content is not None:
        path.write_bytes(content)
    assert _run(tree, "--baseline", path) == 3
    told = capsys.readouterr().err.strip()
    assert told.startswith("casemate: the baseline cannot be")
    assert "\n" not in told


@pytest.mark.parametrize(
    "mark", ["  # nosec", "  # nosemgrep", "  # noqa: S301", "  # lgtm", "  # pragma: allowlist secret"]
)
def test_a_mark_in_the_source_counts_always_and_hides_only_by_policy(
    mark: str, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "a.py").write_text(_MARKED.format(mark))
    assert _run(tree) == 1
    assert "1, honoured: no" in capsys.readouterr().out
    assert _run(tree, "--honor-suppressions") == 0
    told = capsys.readouterr().out
    assert "1, honoured: yes" in told
    assert "Suppressed in the source, honoured (1)" in told
    assert _run(tree, "--honor-suppressions", "--format", "sarif") == 0
    (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    assert [mark["status"] for mark in result["suppressions"]] == ["accepted"]


def test_explanations_are_kept_for_the_owner_alone_and_the_oldest_go(tmp_path: Path) -> None:
    memory = Explanations(tmp_path / "kept", most=20)
    for number in range(23):
        memory.keep(f"{number:064}", "A sentence.")
    kept = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert len(kept) == 20
    assert memory.recall(f"{22:064}") == "A sentence."
    assert memory.recall(f"{0:064}") == ""
    assert stat.S_IMODE((tmp_path / "kept").stat().st_mode) == 0o700
    assert {stat.S_IMODE((tmp_path / "kept" / name).stat().st_mode) for name in kept} == {0o600}


def test_a_damaged_or_planted_explanation_is_none(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("not ours")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "kept" / "bytes").write_bytes(b"\xff\xfe")
    memory = Explanations(tmp_path / "kept")
    assert [memory.recall(name) for name in ("link", "bytes", "absent")] == ["", "", ""]
    memory.keep("x", "y" * 20_000)
    assert memory.recall("x") == ""


def test_a_home_that_takes_nothing_loses_the_memory_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    memory = Explanations(tmp_path / "file" / "kept")
    memory.keep("x", "y")
    assert memory.recall("x") == ""
