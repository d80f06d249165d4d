"""Every file lands in one of analysed, skipped and failed, with its reason; nothing outside the root is read."""

from __future__ import annotations

import codecs
import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.agents.audit.material import decode, walk
from casemate.agents.audit.scan import scan
from casemate.errors import UsageError

_WEAK = "import os, sys\nname = '名'\nos.system('x ' + sys.argv[1])\n"


def _reasons(root: Path) -> dict[str, str]:
    result = scan(root)
    return {unread.path: unread.reason for unread in (*result.ledger.skipped, *result.ledger.failed)}


@pytest.mark.parametrize(
    "data",
    [
        _WEAK.encode(),
        codecs.BOM_UTF8 + _WEAK.encode(),
        _WEAK.encode("utf-16"),
        _WEAK.encode("utf-16-le"),
        _WEAK.encode("gbk"),
        b"# -*- coding: gb2312 -*-\n" + _WEAK.encode("gb2312"),
        b"# vim: set fileencoding=latin-1 :\n" + _WEAK.replace("名", "é").encode("latin-1"),
        _WEAK.replace("\n", "\r\n").encode(),
    ],
    ids=[
        "utf-8",
        "utf-8 with BOM",
        "utf-16",
        "utf-16 without BOM",
        "gbk",
        "declared gb2312",
        "declared latin-1",
        "crlf",
    ],
)
def test_a_file_is_read_in_the_encoding_that_it_has(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.py").write_bytes(data)
    assert [finding.rule for finding in scan(tmp_path).findings] == ["command-injection"]


@given(st.binary(max_size=400))
def test_any_bytes_decode_to_text_or_are_refused_as_a_value_error(data: bytes) -> None:
    with suppress(ValueError):
        assert isinstance(decode(data), str)


def test_other_files_are_skipped_each_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "ok.py").write_text("x = 1\n")
    (tmp_path / "tool").write_text("#!/usr/bin/env python3\nx = 1\n")
    (tmp_path / "page.js").write_text("alert(1)\n")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0\0\0")
    (tmp_path / "big.py").write_text("x = 1\n" * 1_700_000)
    assert _reasons(tmp_path) == {
        "page.js": "no rules for this language (.js)",
        "picture.png": "not text",
        "big.py": "larger than 10 MB",
    }
    assert scan(tmp_path).ledger.analysed == 2


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
    assert walk(tmp_path / "a.py").python == ("a.py",)


def test_an_empty_folder_and_a_path_that_is_not_there_are_usage_errors_of_one_line(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UsageError) as caught:
            scan(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
