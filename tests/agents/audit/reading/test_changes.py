"""Only findings on lines changed since a revision; and git is asked so that nothing of the repository runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agents.audit.reading.checkouts import commit, git, write
from casemate.agents.audit.reading.changes import Changes, changes, checked
from casemate.agents.audit.scan import scan
from casemate.errors import UsageError

_OLD = "import os\nos.system('a ' + input())\nx = 1\ny = 2\nos.system('b ' + input())\n"


def _changed(root: Path, *paths: str, since: str = "HEAD") -> Changes:
    return changes(root, paths, since=checked(root, since))


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ("a\nb\nc\n", "a\nB\nc\n", {2}),
        ("a\nb\nc\n", "a\nb\nnew\nc\n", {3}),
        ("a\nb\nc\n", "a\nc\n", {1, 2}),
        ("a\nb\nc\n", "a\r\nb\r\nc\r\n", set()),
        ("a\nb\nc\n", "a\r\nB\r\nc\r\n", {2}),
        ("a\nb", "a\nb\nc", {3}),
        ("a\fb\nc\n", "a\fb\nC\n", {2}),
        ("名\nb\n".encode("gbk"), "名\nb\nc\n".encode(), {3}),
        ("", "a\nb\n", {1, 2}),
    ],
)
def test_changed_lines_are_those_of_the_file_as_it_is_now(
    tmp_path: Path, before: str | bytes, after: str | bytes, lines: set[int]
) -> None:
    commit(tmp_path, {"a.py": before})
    write(tmp_path, {"a.py": after})
    found = _changed(tmp_path, "a.py").lines.get("a.py", frozenset())
    assert found is not None
    assert found - {len(after.splitlines()) + 1} == lines


def test_an_unchanged_file_has_no_changed_line_and_an_untracked_one_no_other(tmp_path: Path) -> None:
    commit(tmp_path, {"a.py": _OLD, "name with\n\x1b.py": _OLD})
    write(tmp_path, {"new.py": _OLD})
    assert _changed(tmp_path, "a.py", "new.py", "name with\n\x1b.py").lines == {"new.py": None}


def test_only_findings_that_touch_a_changed_line_are_reported_and_it_is_said(tmp_path: Path) -> None:
    commit(tmp_path, {"a.py": _OLD, "same.py": _OLD})
    commit(tmp_path, {"other.txt": "x\n"})
    write(tmp_path, {"a.py": _OLD.replace("'b '", "'c '")})
    result = scan(tmp_path, since="HEAD~1")
    assert [(f.location.path, f.location.line) for f in result.findings] == [("a.py", 5)]
    assert result.ledger.limited == "only lines changed since HEAD~1"
    assert result.ledger.analysed == 3


def test_a_flow_that_passes_a_changed_line_is_reported_where_it_ends(tmp_path: Path) -> None:
    commit(
        tmp_path,
        {"sink.py": "import os\ndef act(x):\n    os.system(x)\n", "use.py": "from sink import act\nact('ls')\n"},
    )
    write(tmp_path, {"use.py": "from sink import act\nact(input())\n"})
    assert [f.location.path for f in scan(tmp_path, since="HEAD").findings] == ["sink.py"]


def test_a_folder_of_the_checkout_is_compared_with_itself(tmp_path: Path) -> None:
    commit(tmp_path, {"s/a.py": _OLD, "a.py": "x = 1\n"})
    write(tmp_path, {"s/a.py": _OLD + "z = 1\n"})
    assert scan(tmp_path / "s", since="main").findings == ()
    assert scan(tmp_path / "s" / "a.py", since="main").findings == ()
    assert _changed(tmp_path / "s", "a.py").lines == {"a.py": frozenset({6})}


def test_a_submodule_is_compared_with_the_commit_that_it_stood_at(tmp_path: Path) -> None:
    commit(tmp_path / "library", {"a.py": _OLD})
    commit(tmp_path / "app", {"main.py": "x = 1\n"})
    git(tmp_path / "app", "submodule", "--quiet", "add", str(tmp_path / "library"), "lib")
    commit(tmp_path / "app", {})
    commit(tmp_path / "app" / "lib", {"a.py": _OLD + "z = 1\n", "b.py": "x = 1\n"})
    assert _changed(tmp_path / "app", "lib/a.py", "lib/b.py", "main.py").lines == {
        "lib/a.py": frozenset({6}),
        "lib/b.py": None,
    }


def test_many_changed_files_are_compared_each_with_its_own_past(tmp_path: Path) -> None:
    names = [f"f{number}.py" for number in range(450)]
    commit(tmp_path, {name: f"# {name}\n" * (number % 7 + 1) for number, name in enumerate(names)})
    write(tmp_path, {name: f"# {name}\n" * (number % 7 + 1) + "new\n" for number, name in enumerate(names)})
    assert _changed(tmp_path, *names).lines == {n: frozenset({at % 7 + 2}) for at, n in enumerate(names)}


@pytest.mark.parametrize("revision", ["no-such", "-v", "--output=x", "HEAD:a.py", "a b", "\0", "HEAD^{tree}", "@{u}"])
def test_what_names_no_commit_is_a_usage_error(tmp_path: Path, revision: str) -> None:
    commit(tmp_path, {"a.py": _OLD})
    with pytest.raises(UsageError, match="no such revision"):
        scan(tmp_path, since=revision)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".git", "a.py"]


def test_without_a_checkout_it_is_a_usage_error_with_a_remedy(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": _OLD})
    with pytest.raises(UsageError, match=r"not in a git checkout.*leave out --diff"):
        scan(tmp_path, since="HEAD")


def test_without_git_it_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(tmp_path, {"a.py": _OLD})
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="install git"):
        scan(tmp_path, since="HEAD")


def _hostile(folder: Path, mark: Path) -> None:
    """A repository that would leave a mark wherever git runs what it names."""
    trap = folder / "trap.sh"
    trap.write_text(f"#!/bin/sh\necho \"$0 $@\" >> '{mark}'\ncat\n")
    trap.chmod(0o755)
    commit(folder, {".gitattributes": "*.py filter=trap diff=trap\n", "a.py": _OLD})
    for key in (
        *("core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "core.askPass", "core.gitProxy"),
        *("diff.external", "diff.trap.textconv", "diff.trap.command", "filter.trap.clean", "filter.trap.smudge"),
        *("filter.trap.process", "pager.show", "gpg.program", "credential.helper", "uploadpack.packObjectsHook"),
        *("remote.origin.uploadpack", "core.alternateRefsCommand", "interactive.diffFilter", "log.showSignature"),
    ):
        git(folder, "config", key, str(trap))
    for key, value in (
        *(("core.hooksPath", str(folder / "hooks")), ("filter.trap.required", "true"), ("core.worktree", "/")),
        *(("remote.origin.url", f"ext::{trap}"), ("remote.origin.promisor", "true"), ("protocol.ext.allow", "always")),
        *(("extensions.partialClone", "origin"), ("alias.show", f"!{trap}"), ("alias.ls-tree", f"!{trap}")),
    ):
        git(folder, "config", key, value)
    for hook in ("post-index-change", "post-checkout", "fsmonitor-watchman", "reference-transaction"):
        write(folder, {f"hooks/{hook}": trap.read_bytes(), f".git/hooks/{hook}": trap.read_bytes()})
        for where in ("hooks", ".git/hooks"):
            (folder / where / hook).chmod(0o755)
    (folder / "git").symlink_to("trap.sh")


def test_a_hostile_repository_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark, folder = tmp_path / "mark", tmp_path / "repository"
    folder.mkdir()
    _hostile(folder, mark)
    write(folder, {"a.py": _OLD.replace("'b '", "'c '")})
    mark.unlink(missing_ok=True)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(folder / "trap.sh"))
    monkeypatch.chdir(folder)
    result = scan(Path(), since="HEAD")
    assert [(f.location.path, f.location.line) for f in result.findings] == [("a.py", 5)]
    assert not mark.exists()


def test_the_trap_of_the_hostile_repository_works(tmp_path: Path) -> None:
    mark, folder = tmp_path / "mark", tmp_path / "repository"
    folder.mkdir()
    _hostile(folder, mark)
    write(folder, {"a.py": _OLD.replace("'b '", "'c '")})
    mark.unlink(missing_ok=True)
    git(folder, "--work-tree=.", "-c", "filter.trap.required=false", "-c", "filter.trap.process=", "status", "--short")
    assert "trap" in mark.read_text()


def test_an_object_that_is_missing_is_not_fetched_and_the_repository_is_called_damaged(tmp_path: Path) -> None:
    mark, folder = tmp_path / "mark", tmp_path / "repository"
    folder.mkdir()
    _hostile(folder, mark)
    name = git(folder, "rev-parse", "HEAD:a.py").strip()
    (folder / ".git" / "objects" / name[:2] / name[2:]).unlink()
    mark.unlink(missing_ok=True)
    write(folder, {"a.py": _OLD.replace("'b '", "'c '")})
    with pytest.raises(UsageError, match="git cannot read this repository"):
        scan(folder, since="HEAD")
    assert not mark.exists()
