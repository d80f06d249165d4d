"""Every file of any tree is in exactly one of analysed, skipped and failed; hostile code ends, and so do the others."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.audit.reading.checkouts import write
from casemate.agents.audit.reading.files import summaries
from casemate.agents.audit.reading.material import walk
from casemate.agents.audit.scan import scan
from casemate.process import Broken, Limits, each

_NAMES = st.sampled_from(
    [
        *(
            b"a.py",
            b"b\xff.py",
            b"c\n\x1b[31m.py",
            b"d e.py",
            b"-rf.py",
            b"f.ipynb",
            b"g.json",
            b"h.md",
            b"i",
            b"j.min.js",
        ),
        *(b"k.zip", b"l.png", b"__init__.py", "名.py".encode(), b".env", b"Dockerfile", b"m.c", b"!n.py", b"o!"),
    ]
)
_CONTENTS = st.sampled_from(
    [
        *(
            b"",
            b"x = 1\n",
            b"x = = 1\n",
            b"\0\0\0",
            b"#!/usr/bin/python\nx = 1\n",
            "é = 1\n".encode("latin-1"),
            b"\xff\xfe",
        ),
        *(b"{}", b'{"cells": []}', b"PK\x03\x04", b"-" * 5000 + b"1\n", b"# coding: undefined\nx = 1\n", b"x = 1\r"),
        *(b"\xef\xbb\xbfx = 1\n", b"password = 'tr0ub4dor&3'\n", b"a{}" * 3000, b"# coding: utf-7\n+AHg- = 1\n"),
    ]
)
_FOLDERS = st.sampled_from([b"", b"d", b"d/e", b"node_modules", b"__pycache__", b".git", b"\xfe\xff", b"d/.hg"])
_OTHERS = st.sampled_from(["link in", "link out", "dangling", "loop", "pipe"])


def _made(root: Path, files: dict[tuple[bytes, bytes], bytes], others: set[str]) -> None:
    for (folder, name), content in files.items():
        inside = root / os.fsdecode(folder)
        inside.mkdir(parents=True, exist_ok=True)
        (inside / os.fsdecode(name)).write_bytes(content)
    for other in others:
        place = root / other.replace(" ", "_")
        if other == "pipe":
            os.mkfifo(place)
        else:
            target = {"link in": ".", "link out": "/", "dangling": "nowhere", "loop": place.name}[other]
            place.symlink_to(target)


def _places(root: Path) -> set[str]:
    """Every file of the tree, and links and pipes; of folders that are not entered, the folder alone."""
    found = set()
    for folder, folders, files in os.walk(root):
        closed = {name for name in folders if name in {"node_modules", "__pycache__", ".git", ".hg"}}
        linked = {name for name in folders if (Path(folder) / name).is_symlink()}
        folders[:] = [name for name in folders if name not in closed | linked]
        found |= {(Path(folder) / name).relative_to(root).as_posix() for name in {*files, *closed, *linked}}
    return found


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.tuples(_FOLDERS, _NAMES), _CONTENTS, min_size=1, max_size=12), st.sets(_OTHERS))
def test_each_file_of_any_tree_is_in_exactly_one_class(
    tmp_path_factory: pytest.TempPathFactory, files: dict[tuple[bytes, bytes], bytes], others: set[str]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    _made(root, files, others)
    material = walk(root)
    classes = [*material.files, *(unread.path for unread in (*material.skipped, *material.failed))]
    assert sorted(classes) == sorted(_places(root))
    assert all(unread.reason for unread in (*material.skipped, *material.failed))
    outcomes = summaries(str(root), material.files)
    assert len(outcomes) == len(material.files)
    assert all(outcome if isinstance(outcome, str) else outcome.path for outcome in outcomes)


def test_the_counts_of_a_whole_audit_add_up(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"a.py": "x = 1\n", "b.py": "x = = 1\n", "c.md": "x\n", "d.c": "x\n", "e.py": "é = 1\n".encode("latin-1")},
    )
    ledger = scan(tmp_path).ledger
    assert (ledger.analysed, ledger.searched, len(ledger.skipped), len(ledger.failed)) == (3, 1, 1, 1)
    assert [remark.path for remark in ledger.remarks] == ["e.py"]
    assert not ledger.complete


@pytest.mark.parametrize(("files", "complete"), [({"a.md": "x\n"}, True), ({"a.md": "x\n", "b.c": "x\n"}, False)])
def test_text_alone_is_complete_only_if_no_code_was_left_out(
    tmp_path: Path, files: dict[str, str | bytes], *, complete: bool
) -> None:
    write(tmp_path, files)
    assert scan(tmp_path).ledger.complete is complete


_HOSTILE = {
    "brackets": "x = " + "(" * 10_000 + ")" * 10_000,
    "terms": "x = " + " + ".join(["a"] * 100_000),
    "elifs": "if a == 0:\n    pass\n" + "".join(f"elif a == {n}:\n    b = {n}\n" for n in range(3000)),
    "functions": "".join(" " * n + f"def f{n}(a):\n" for n in range(3000)) + " " * 3000 + "pass",
    "members": "x = a" + ".b" * 50_000,
    "calls": "x = a" + ".b()" * 20_000,
    "signs": "x = " + "-" * 20_000 + "1",
    "lambdas": "x = " + "lambda: " * 5000 + "1",
    "conditions": "x = " + "a if b else " * 5000 + "c",
    "comparisons": "x = " + " < ".join(["a"] * 20_000),
    "choices": "x = " + " and b or ".join(["a"] * 10_000),
    "literals": "x = " + " ".join(["'a'"] * 50_000),
    "numbers": "x = 9 ** 9 ** 9 ** 9\ny = 'a' * 10 ** 10\nz = 1 << 10 ** 10",
    "excepts": "try:\n  pass\n" + "".join(f"except E{n}:\n  x = {n}\n" for n in range(3000)),
    "blocks": "".join(" " * n + f"while a{n}:\n" for n in range(90)) + " " * 90 + "x = a",
    "comprehensions": "x = " + "[" * 80 + "a for a in b" + " for a in b]" * 79 + "]",
}


@pytest.mark.parametrize("name", _HOSTILE)
def test_code_made_to_kill_a_parser_ends_with_a_summary_or_a_reason(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.py").write_text(_HOSTILE[name] + "\n")
    ((_, outcome),) = each(_read, [str(tmp_path)], limits=Limits(time_s=60, memory_bytes=2 << 30, processes=1))
    assert not isinstance(outcome, Broken)


def _read(root: str) -> str:
    (outcome,) = summaries(root, ("a.py",))
    return outcome if isinstance(outcome, str) else "analysed"


def test_no_python_file_of_the_standard_library_is_skipped() -> None:
    material = walk(Path(sysconfig.get_paths()["stdlib"]))
    left_out = [u for u in (*material.skipped, *material.failed) if u.path.endswith((".py", ".pyw"))]
    assert [unread for unread in left_out if "link" not in unread.reason] == []
    assert len(material.files) > 500
