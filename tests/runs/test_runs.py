from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from casemate import runs
from casemate.errors import CasemateError, UsageError
from casemate.runs import Run

BAD_NAMES = ["", ".", "..", "../x", "a/b", "/x", ".hidden", "a\x00b", "a\n", "x" * 129]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_sealed_run_gives_back_what_was_written(tmp_path: Path) -> None:
    run = runs.create(tmp_path, "audit")
    run.append({"n": 1, "text": "第一"})
    run.append({"n": 2})
    run.write("report.md", "# Befund\n")
    sealed = run.seal({"verdict": "clean"})
    assert sealed.manifest == {"verdict": "clean"}
    assert sealed.records() == ({"n": 1, "text": "第一"}, {"n": 2})
    assert sealed.read("report.md") == "# Befund\n"
    assert runs.latest(tmp_path, "audit") == sealed


def test_a_run_without_records_has_none(tmp_path: Path) -> None:
    assert runs.create(tmp_path, "audit").seal({}).records() == ()


def test_folders_are_for_their_owner_alone_and_so_are_files(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        run = runs.create(tmp_path / "runs", "audit")
        run.append({})
        run.write("a.txt", "a")
        run.seal({})
    finally:
        os.umask(before)
    assert {mode(path) for path in (tmp_path / "runs", run.path.parent, run.path)} == {0o700}
    assert {mode(path) for path in run.path.iterdir()} == {0o600}


def test_names_sort_by_age_and_never_clash(tmp_path: Path) -> None:
    names = [runs.create(tmp_path, "audit").path.name for _ in range(50)]
    assert names == sorted(names)
    assert len(set(names)) == 50
    assert all(re.fullmatch(r"\d{8}T\d{6}\.\d{6}Z-[0-9a-f]{6}", name) for name in names)


def test_the_latest_is_the_newest_sealed_one_of_its_kind(tmp_path: Path) -> None:
    first = runs.create(tmp_path, "audit")
    second = runs.create(tmp_path, "audit")
    second.seal({"run": "second"})
    first.seal({"run": "first"})
    runs.create(tmp_path, "audit").append({"broken": "off"})
    runs.create(tmp_path, "ask").seal({"run": "another kind"})
    latest = runs.latest(tmp_path, "audit")
    assert latest is not None
    assert latest.manifest == {"run": "second"}


def test_no_run_is_the_latest_where_there_is_none(tmp_path: Path) -> None:
    assert runs.latest(tmp_path / "none", "audit") is None
    runs.create(tmp_path, "audit")
    assert runs.latest(tmp_path, "audit") is None


@pytest.mark.parametrize("manifest", ["", "{", "[]", "{}", '{"schema_version": 2, "manifest": {}, "files": {}}'])
def test_a_damaged_or_foreign_manifest_is_passed_over(manifest: str, tmp_path: Path) -> None:
    runs.create(tmp_path, "audit").seal({"run": "good"})
    bad = runs.create(tmp_path, "audit")
    (bad.path / "manifest.json").write_text(manifest)
    latest = runs.latest(tmp_path, "audit")
    assert latest is not None
    assert latest.manifest == {"run": "good"}


def test_the_manifest_is_the_last_file_and_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    run = runs.create(tmp_path, "audit")
    run.append({})
    with pytest.raises(TypeError):
        run.seal({"not": object()})
    assert runs.latest(tmp_path, "audit") is None
    run.seal({})
    assert sorted(path.name for path in run.path.iterdir()) == ["manifest.json", "records.jsonl"]


@pytest.mark.parametrize(
    "change", [lambda run: run.append({}), lambda run: run.write("a.txt", "b"), lambda run: run.seal({})]
)
def test_a_sealed_run_does_not_change(change: Callable[[Run], object], tmp_path: Path) -> None:
    run = runs.create(tmp_path, "audit")
    run.seal({})
    with pytest.raises(CasemateError, match="a sealed run does not change"):
        change(run)


def test_a_file_that_was_changed_after_sealing_is_not_read(tmp_path: Path) -> None:
    run = runs.create(tmp_path, "audit")
    run.write("a.txt", "a")
    sealed = run.seal({})
    (run.path / "a.txt").write_text("b")
    with pytest.raises(CasemateError, match=r"a\.txt was changed after the run was sealed"):
        sealed.read("a.txt")


def test_a_file_that_came_after_sealing_is_not_of_the_run(tmp_path: Path) -> None:
    sealed = runs.create(tmp_path, "audit").seal({})
    (sealed.path / "late.txt").write_text("late")
    with pytest.raises(UsageError, match=r"no file 'late\.txt'"):
        sealed.read("late.txt")


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_could_lead_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        runs.create(tmp_path, name)
    with pytest.raises(UsageError):
        runs.latest(tmp_path, name)
    with pytest.raises(UsageError):
        runs.create(tmp_path, "audit").write(name, "x")
    assert [path.name for path in tmp_path.iterdir()] == ["audit"]


@pytest.mark.parametrize("name", ["manifest.json", "records.jsonl"])
def test_the_runs_own_files_are_not_written_by_hand(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not written by hand"):
        runs.create(tmp_path, "audit").write(name, "x")


def test_a_link_in_the_folder_is_neither_written_nor_read_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    run = runs.create(tmp_path / "runs", "audit")
    for name in ("records.jsonl", "a.txt"):
        (run.path / name).symlink_to(outside)
    with pytest.raises(CasemateError):
        run.append({})
    with pytest.raises(CasemateError):
        run.write("a.txt", "overwritten")
    with pytest.raises(CasemateError):
        run.seal({})
    assert outside.read_text() == "mine"


def test_a_folder_that_is_a_link_is_no_run(tmp_path: Path) -> None:
    elsewhere = runs.create(tmp_path / "elsewhere", "audit").seal({})
    (tmp_path / "runs" / "audit").mkdir(parents=True)
    (tmp_path / "runs" / "audit" / elsewhere.path.name).symlink_to(elsewhere.path)
    assert runs.latest(tmp_path / "runs", "audit") is None


def test_a_place_where_no_folder_can_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CasemateError, match="no run can begin here") as caught:
        runs.create(tmp_path / "file", "audit")
    assert "\n" not in str(caught.value)


def test_a_run_whose_folder_is_gone_is_one_line(tmp_path: Path) -> None:
    run = runs.create(tmp_path, "audit")
    run.path.rmdir()
    for deed in (lambda: run.append({}), lambda: run.seal({})):
        with pytest.raises(CasemateError, match="No such file"):
            deed()


def test_the_manifest_on_disk_carries_a_version_and_the_hash_of_every_file(tmp_path: Path) -> None:
    run = runs.create(tmp_path, "audit")
    run.write("empty.txt", "")
    run.seal({"a": 1})
    content = json.loads((run.path / "manifest.json").read_text())
    assert content["schema_version"] == 1
    assert content["files"] == {"empty.txt": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}
