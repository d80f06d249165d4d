"""What git leaves alone is left out and said; what it tracks is looked at, whatever a `.gitignore` says."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from agents.audit.reading.checkouts import commit, git, write
from casemate.agents.audit.reading.material import Material, walk


def _ignored(material: Material) -> set[str]:
    return {unread.path for unread in material.skipped if unread.reason == "ignored by .gitignore"}


@pytest.mark.parametrize(
    ("rules", "ignored"),
    [
        ("*.log.py\n", {"a.log.py", "d/b.log.py"}),
        ("/a.log.py\n", {"a.log.py"}),
        ("d/\n", {"d"}),
        ("*.py\n!keep.py\n", {"a.log.py", "d/b.log.py", "d/e/c.py"}),
        ("d/*\n!d/keep.py\n", {"d/b.log.py", "d/e"}),
        ("**/e/\n", {"d/e"}),
        ("# d/\n\n   \n", set()),
        ("d/e/c.py   \n", {"d/e/c.py"}),
        ("[", set()),
    ],
)
def test_untracked_files_are_ignored_as_git_ignores_them(tmp_path: Path, rules: str, ignored: set[str]) -> None:
    commit(tmp_path, {".gitignore": rules})
    write(tmp_path, dict.fromkeys(("a.log.py", "keep.py", "d/b.log.py", "d/keep.py", "d/e/c.py"), "x = 1\n"))
    assert _ignored(walk(tmp_path)) == ignored
    told = git(tmp_path, "status", "--porcelain", "--ignored=matching", "--untracked-files=all")
    assert {line[3:].rstrip("/") for line in told.splitlines() if line.startswith("!!")} == ignored
    assert not _ignored(walk(tmp_path, ignore=False))


def test_rules_of_inner_folders_win_and_those_above_the_audited_folder_hold(tmp_path: Path) -> None:
    commit(tmp_path, {".gitignore": "*.tmp.py\nbuild/\n", "s/.gitignore": "!a.tmp.py\n/own.py\n"})
    write(tmp_path, dict.fromkeys(("s/a.tmp.py", "s/b.tmp.py", "s/own.py", "s/build/x.py", "s/t/own.py"), "x = 1\n"))
    assert _ignored(walk(tmp_path / "s")) == {"b.tmp.py", "own.py", "build"}


def test_a_folder_that_git_leaves_alone_is_audited_when_it_is_named(tmp_path: Path) -> None:
    commit(tmp_path, {".gitignore": "build/\n*.tmp.py\n"})
    write(tmp_path, dict.fromkeys(("build/x/a.py", "build/x/b.tmp.py", "a.tmp.py"), "x = 1\n"))
    assert walk(tmp_path / "build" / "x").files == ("a.py", "b.tmp.py")
    assert walk(tmp_path / "a.tmp.py").files == ("a.tmp.py",)


def test_what_is_tracked_is_never_hidden_by_a_gitignore(tmp_path: Path) -> None:
    commit(tmp_path, {".gitignore": "*\n", "evil.py": "x = 1\n", "d/evil.py": "x = 1\n"})
    write(tmp_path, {"d/local.py": "x = 1\n", "other/y.py": "x = 1\n"})
    material = walk(tmp_path)
    assert material.files == ("d/evil.py", "evil.py")
    assert _ignored(material) == {"d/local.py", "other"}


def test_without_a_checkout_nothing_is_ignored(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "*\n", "evil.py": "x = 1\n"})
    assert walk(tmp_path).files == ("evil.py",)


def test_where_git_cannot_tell_what_it_tracks_nothing_is_ignored(tmp_path: Path) -> None:
    write(tmp_path, {".git/HEAD": "nonsense", ".gitignore": "*\n", "evil.py": "x = 1\n"})
    assert walk(tmp_path).files == ("evil.py",)


def test_a_submodule_is_entered_and_has_rules_of_its_own(tmp_path: Path) -> None:
    commit(tmp_path / "library", {"code.py": "x = 1\n", ".gitignore": "local.py\n"})
    commit(tmp_path / "app", {"main.py": "x = 1\n", ".gitignore": "code.py\n"})
    git(tmp_path / "app", "submodule", "--quiet", "add", str(tmp_path / "library"), "vendored")
    write(tmp_path / "app", {"vendored/local.py": "x = 1\n"})
    material = walk(tmp_path / "app")
    assert material.files == ("main.py", "vendored/code.py")
    assert _ignored(material) == {"vendored/local.py"}
    assert "vendored/.git" in {unread.path for unread in material.skipped}


def test_a_gitignore_that_is_a_link_a_pipe_or_too_large_is_not_read(tmp_path: Path) -> None:
    commit(tmp_path, {"x.txt": "x\n"})
    (tmp_path / ".gitignore").symlink_to("/dev/zero")
    write(tmp_path, {"d/.gitignore": "*\n" * 40_000, "a.py": "x = 1\n", "d/b.py": "x = 1\n", "e/c.py": "x = 1\n"})
    os.mkfifo(tmp_path / "e" / ".gitignore")
    assert _ignored(walk(tmp_path)) == set()


def test_a_pattern_made_to_take_for_ever_does_not(tmp_path: Path) -> None:
    commit(tmp_path, {".gitignore": "a*" * 40 + "b\n" + "**/a/" * 30 + "b\n"})
    write(tmp_path, {f"{'a' * 240}.py": "x = 1\n", "a/" * 30 + "c.py": "x = 1\n"})
    began = time.process_time()
    assert len(walk(tmp_path).files) == 2
    assert time.process_time() - began < 5
