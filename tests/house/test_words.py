"""What must stand in no file of the project: paths of somebody's machine, keys, tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from house.source import ROOT, files

_TEMPORARY = re.compile(r"(?<![\w.<])/tmp/\w")
_SOMEBODYS = re.compile(r"(?<![\w.<])/(?:root/[.\w]|home/[a-z]\w*/|Users/[A-Za-z]\w*/)")
_BAD_INPUT = ("tests/", "examples/", "docs/bad-input.md", "src/casemate/knowledge/curated/")
"""Where a made-up path may be what is tested or shown."""

_SECRETS = re.compile(
    r"""-----BEGIN[ A-Z]*PRIVATE\ KEY-----\s+[A-Za-z0-9+/=]{40}
    | \b(?: (?:AKIA|ASIA)[A-Z0-9]{16}
          | gh[pousr]_[A-Za-z0-9]{36} | github_pat_\w{60} | glpat-[\w-]{20} | hf_[A-Za-z0-9]{34}
          | sk-[A-Za-z0-9_-]{32} | xox[abprs]-[\w-]{20} | pypi-AgE[\w-]{40} | AIza[\w-]{35} | npm_[A-Za-z0-9]{36} )""",
    re.VERBOSE,
)
_PLAINLY_MADE_UP = re.compile(r"example|fake|dummy|not.?a|1234|abcd|0000|xxxx", re.IGNORECASE)


def test_no_file_names_a_path_of_somebodys_machine() -> None:
    assert not [place for path, text in _texts() for place in _paths(path, text)]


def test_no_file_names_the_folder_or_the_home_that_this_run_is_in() -> None:
    own = [str(folder) for folder in (ROOT, Path("~").expanduser()) if len(folder.parts) > 2]
    assert not [f"{path}: {folder}" for path, text in _texts() for folder in own if f"{folder}/" in text]


def test_no_file_holds_a_key_or_token_that_is_not_plainly_made_up() -> None:
    assert not [place for path, text in _texts() for place in _secrets(path, text)]


@pytest.mark.parametrize(
    "line", ["open('/ro" + "ot/.x')", "see /ho" + "me/alice/src", "/Us" + "ers/Alice/x", "/tm" + "p/x"]
)
def test_a_path_of_somebodys_machine_is_caught(line: str) -> None:
    assert list(_paths("docs/x.md", line))


def test_a_made_up_path_in_a_test_and_the_route_of_a_page_pass() -> None:
    assert not list(_paths("tests/x.py", "open('/tm" + "p/x')"))
    assert not list(_paths("docs/x.md", "GET example.org/home/index and ./tm" + "p/x"))


@pytest.mark.parametrize("token", ["AKIA" + "QWERTZUIOPASDFGH", "ghp_" + "qW" * 18, "sk-" + "qW" * 16])
def test_a_token_is_caught(token: str) -> None:
    assert list(_secrets("docs/x.md", f"key = {token}"))


def test_a_token_that_is_plainly_made_up_passes() -> None:
    assert not list(_secrets("docs/x.md", "AKIA" + "IOSFODNN7EXAMPLE"))


def _texts() -> Iterator[tuple[str, str]]:
    for file in files():
        try:
            yield file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")
        except UnicodeDecodeError:  # not a text
            continue


def _paths(path: str, text: str) -> Iterator[str]:
    patterns = () if path.startswith(_BAD_INPUT) else (_TEMPORARY, _SOMEBODYS)
    for number, line in enumerate(text.splitlines(), start=1):
        if any(pattern.search(line) for pattern in patterns):
            yield f"{path}:{number}: {line.strip()[:100]}"


def _secrets(path: str, text: str) -> Iterator[str]:
    for match in _SECRETS.finditer(text):
        if not _PLAINLY_MADE_UP.search(match[0]):
            yield f"{path}: {match[0][:12]}…"
