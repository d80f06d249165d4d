"""Options of `casemate audit` that say which files are looked at, and which findings are shown."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from agents.audit.reading.checkouts import commit, write
from casemate.cli import main

_WEAK = "import os\nos.system('a ' + input())\n"


@pytest.fixture(autouse=True)
def _home_of_its_own(home: Path) -> None:
    """What these audits keep goes to a home folder of the test."""


def _run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main.run(["audit", *arguments, "--no-model", "--json"])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def test_only_changed_lines_decide_the_exit_code_and_the_report_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path, {"a.py": _WEAK})
    assert _run(str(tmp_path), "--diff", "HEAD") == 0
    assert json.loads(capsys.readouterr().out)["ledger"]["limited"] == "only lines changed since HEAD"
    write(tmp_path, {"a.py": _WEAK + "os.system(input())\n"})
    assert _run(str(tmp_path), "--diff", "HEAD") == 1
    assert [found["line"] for found in json.loads(capsys.readouterr().out)["findings"]] == [3]


@pytest.mark.parametrize("revision", ["no-such", "--output=x"])
def test_a_revision_that_names_nothing_is_one_line_and_exit_3(
    tmp_path: Path, revision: str, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path, {"a.py": _WEAK})
    assert _run(str(tmp_path), f"--diff={revision}") == 3
    assert "no such revision" in capsys.readouterr().err


def test_ignored_files_and_archives_are_looked_at_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path, {".gitignore": "local.py\n", "ok.py": "x = 1\n"})
    write(tmp_path, {"local.py": _WEAK})
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("inner.py", _WEAK)
    assert _run(str(tmp_path)) == 0
    skipped = {row["path"]: row["reason"] for row in json.loads(capsys.readouterr().out)["ledger"]["skipped"]}
    assert skipped["local.py"] == "ignored by .gitignore"
    assert "--archives" in skipped["a.zip"]
    assert _run(str(tmp_path), "--no-ignore", "--archives") == 1
    found = {row["path"] for row in json.loads(capsys.readouterr().out)["findings"]}
    assert found == {"local.py", "a.zip!/inner.py"}
