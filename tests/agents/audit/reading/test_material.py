"""Every file lands in one of analysed, skipped and failed, with its reason; nothing outside the root is read."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from casemate.agents.audit.reading.material import walk
from casemate.agents.audit.scan import scan
from casemate.errors import UsageError

_WEAK = "import os, sys\nname = '名'\nos.system('x ' + sys.argv[1])\n"


def _reasons(root: Path) -> dict[str, str]:
    result = scan(root)
    return {unread.path: unread.reason for unread in (*result.ledger.skipped, *result.ledger.failed)}


def test_other_files_are_skipped_each_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "ok.py").write_text("x = 1\n")
    (tmp_path / "tool").write_text("#!/usr/bin/env python3\nx = 1\n")
    (tmp_path / "main.c").write_text("int main;\n")
    (tmp_path / "all.css").write_text("a{b:c}" * 1000)
    (tmp_path / "old.zip").write_bytes(b"PK")
    (tmp_path / "notes.txt").write_text("nothing here\n")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0\0\0")
    (tmp_path / "big.py").write_text("x = 1\n" * 1_700_000)
    assert _reasons(tmp_path) == {
        "main.c": "no rules for this language (.c)",
        "all.css": "minified",
        "old.zip": "archive, not opened (`--archives` opens it)",
        "picture.png": "not text",
        "big.py": "larger than 10 MB",
    }
    ledger = scan(tmp_path).ledger
    assert (ledger.analysed, ledger.searched) == (3, 1)


def test_what_cannot_be_parsed_fails_with_its_reason_and_the_rest_goes_on(tmp_path: Path) -> None:
    (tmp_path / "ok.py").write_text("x = 1\n")
    (tmp_path / "syntax.py").write_text("x = 1\ndef f(:\n")
    (tmp_path / "null.py").write_bytes(b"x = 1\nprint('\0')\n")
    (tmp_path / "deep.py").write_text("x = " + "(" * 3000 + ")" * 3000 + "\n")
    (tmp_path / "nested.py").write_text("x = " + "-" * 20_000 + "1\n")
    result = scan(tmp_path)
    failed = {unread.path: unread.reason for unread in result.ledger.failed}
    assert result.ledger.analysed == 1
    assert failed.keys() == {"syntax.py", "null.py", "deep.py", "nested.py"}
    assert "line 2" in failed["syntax.py"]
    assert "null" in failed["null.py"]
    assert not result.ledger.complete


def test_a_very_long_chain_of_additions_is_analysed(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text("x = " + " + ".join(["'a'"] * 900) + "\n")
    assert scan(tmp_path).ledger.analysed == 1


def test_links_are_not_followed_out_of_the_root_and_loops_end(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "weak.py").write_text(_WEAK)
    root = tmp_path / "root"
    root.mkdir()
    (root / "ok.py").write_text("x = 1\n")
    (root / "away.py").symlink_to(outside / "weak.py")
    (root / "folder").symlink_to(outside)
    (root / "loop").symlink_to(root)
    (root / "dangling.py").symlink_to(root / "nowhere.py")
    result = scan(root)
    assert result.findings == ()
    assert result.ledger.analysed == 1
    assert {unread.path for unread in result.ledger.skipped} == {"away.py", "folder", "loop", "dangling.py"}


def test_a_link_says_no_more_than_is_true_of_its_target(tmp_path: Path) -> None:
    (tmp_path / "ok.py").write_text("x = 1\n")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "weak.py").write_text(_WEAK)
    (tmp_path / "inside.py").symlink_to("ok.py")
    (tmp_path / "hidden.py").symlink_to(".git/weak.py")
    (tmp_path / "outside.py").symlink_to(os.devnull)
    (tmp_path / "self.py").symlink_to("self.py")
    (tmp_path / "chain0.py").symlink_to("ok.py")
    for number in range(1, 1200):
        (tmp_path / f"chain{number}.py").symlink_to(f"chain{number - 1}.py")
    reasons = _reasons(tmp_path)
    assert reasons["inside.py"] == reasons["hidden.py"] == "link within the audited folder, not followed"
    assert reasons["outside.py"] == "link out of the audited folder, not followed"
    assert reasons["self.py"] == reasons["chain1199.py"] == "link that leads nowhere"


@contextmanager
def _nested(folder: Path, names: list[str]) -> Iterator[None]:
    """A weak file in the innermost of folders nested as deep as one likes; removed without recursion."""
    inner = os.open(folder, os.O_RDONLY)
    for name in names:
        outer = inner
        os.mkdir(name, dir_fd=outer)
        inner = os.open(name, os.O_RDONLY, dir_fd=outer)
        os.close(outer)
    with os.fdopen(os.open("weak.py", os.O_WRONLY | os.O_CREAT, dir_fd=inner), "w") as file:
        file.write(_WEAK)
    try:
        yield
    finally:
        os.unlink("weak.py", dir_fd=inner)
        for name in reversed(names):
            outer = os.open("..", os.O_RDONLY, dir_fd=inner)
            os.close(inner)
            os.rmdir(name, dir_fd=outer)
            inner = outer
        os.close(inner)


def test_folders_nested_beyond_every_recursion_limit_are_audited_to_the_last(tmp_path: Path) -> None:
    with _nested(tmp_path, ["d"] * 1200):
        (tmp_path / "a.py").write_text(_WEAK)
        (tmp_path / "e.py").write_text("x = 1\n")
        result = scan(tmp_path)
        assert walk(tmp_path).files == ("a.py", "d/" * 1200 + "weak.py", "e.py")
    assert {finding.location.path for finding in result.findings} == {"a.py", "d/" * 1200 + "weak.py"}
    assert result.ledger.complete


@pytest.mark.parametrize("last", [9, 10, 200, 255])
def test_a_path_too_long_for_the_system_fails_with_its_reason_and_the_rest_goes_on(tmp_path: Path, last: int) -> None:
    room = os.pathconf(tmp_path, "PC_PATH_MAX") - 1 - len(os.fsencode(tmp_path)) - 1 - last
    names = ["d" * 200] * (room // 201)
    names.append("e" * max(1, room - len(names) * 201 - 1))
    names.append("f" * last)
    (tmp_path / "ok.py").write_text("x = 1\n")
    with _nested(tmp_path, names):
        result = scan(tmp_path)
    assert result.ledger.analysed + len(result.ledger.failed) == 2
    (failed,) = result.ledger.failed
    assert failed.reason == "cannot be read: File name too long"


def test_history_environments_and_caches_are_not_entered_but_named(tmp_path: Path) -> None:
    (tmp_path / "ok.py").write_text("x = 1\n")
    for folder in (".git/hooks", "venv/lib", "__pycache__", "sub/.hg"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "weak.py").write_text(_WEAK)
    (tmp_path / "venv" / "pyvenv.cfg").write_text("home = /usr\n")
    reasons = _reasons(tmp_path)
    assert reasons.keys() == {".git", "venv", "__pycache__", "sub/.hg"}
    assert all("not entered" in reason for reason in reasons.values())


def test_what_is_not_a_regular_file_is_named_and_not_opened(tmp_path: Path) -> None:
    (tmp_path / "ok.py").write_text("x = 1\n")
    os.mkfifo(tmp_path / "pipe.py")
    assert _reasons(tmp_path) == {"pipe.py": "not a regular file"}


def test_a_single_file_is_its_own_material(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(_WEAK)
    (tmp_path / "b.py").write_text(_WEAK)
    assert walk(tmp_path / "a.py").files == ("a.py",)


def test_an_empty_folder_and_a_path_that_is_not_there_are_usage_errors_of_one_line(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UsageError) as caught:
            scan(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("path", ["a" * 5000, "a/" * 2500, "a\0b"], ids=["name", "folders", "null byte"])
def test_a_root_that_the_system_cannot_name_is_a_usage_error_of_one_line(path: str) -> None:
    with pytest.raises(UsageError) as caught:
        scan(Path(path))
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


@contextmanager
def _closed(folder: Path, mode: int = 0) -> Iterator[None]:
    """A folder that may not be read, not even by root."""
    folder.chmod(mode)
    try:
        with _without_powers() if sys.platform == "linux" else nullcontext():
            yield
    finally:
        folder.chmod(0o700)


@contextmanager
def _without_powers() -> Iterator[None]:
    """This thread gives up the capabilities to pass over modes, for a while."""
    libc = ctypes.CDLL(None)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # capabilities(7): version 3, this thread
    held = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable: low words, then high words
    assert libc.capget(header, held) == 0
    fewer = (ctypes.c_uint32 * 6)(*held)
    fewer[0] &= ~0b110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    assert libc.capset(header, fewer) == 0
    try:
        yield
    finally:
        assert libc.capset(header, held) == 0


@pytest.mark.parametrize("mode", [0, 0o400], ids=["closed", "names only"])
def test_an_unreadable_folder_is_a_line_of_the_ledger_and_the_rest_goes_on(tmp_path: Path, mode: int) -> None:
    (tmp_path / "ok.py").write_text("x = 1\n")
    (tmp_path / "shut").mkdir()
    (tmp_path / "shut" / "a.py").write_text(_WEAK)
    with _closed(tmp_path / "shut", mode):
        material = walk(tmp_path)
    assert material.files == ("ok.py",)
    assert [unread.reason for unread in material.failed] == ["cannot be read: Permission denied"]


@pytest.mark.parametrize("name", ["", "inner", "a.py"])
def test_a_root_that_may_not_be_read_is_a_usage_error_of_one_line(tmp_path: Path, name: str) -> None:
    shut = tmp_path / "shut"
    shut.mkdir()
    with _closed(shut), pytest.raises(UsageError, match="cannot be read: Permission denied") as caught:
        walk(shut / name)
    assert "\n" not in str(caught.value)
