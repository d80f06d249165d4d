"""The tools stay strict, and every exception from them says why."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from house.source import ROOT

_TEXT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
_TOOLS: dict[str, Any] = tomllib.loads(_TEXT)["tool"]
_CODE = re.compile(r'^\s*"(?P<code>[A-Z]+[0-9]*)",(?P<rest>.*)$', re.MULTILINE)


def test_ruff_checks_everything() -> None:
    assert _TOOLS["ruff"]["lint"]["select"] == ["ALL"]


def test_every_ignored_rule_stands_on_its_own_line_with_the_reason_behind_it() -> None:
    explained = {match["code"] for match in _CODE.finditer(_TEXT) if _is_reason(match["rest"])}
    ignored = set(_TOOLS["ruff"]["lint"]["ignore"])
    for pattern, codes in _TOOLS["ruff"]["lint"]["per-file-ignores"].items():
        line = next(line for line in _TEXT.splitlines() if line.startswith(f'"{pattern}"'))
        ignored |= set() if _is_reason(line.rpartition("]")[2]) else set(codes)
    assert not ignored - explained, "no reason is given for these"


def test_ignored_files_and_untyped_modules_say_why() -> None:
    for key in ("extend-exclude", "module"):
        for line in re.findall(rf"^{key} = .*$", _TEXT, re.MULTILINE):
            assert _is_reason(line.rpartition("]")[2]), line


def test_types_are_strict_over_product_tests_and_benches() -> None:
    assert _TOOLS["mypy"]["strict"] is True
    assert set(_TOOLS["mypy"]["files"]) == {"src", "tests", "bench"}
    assert "ignore-without-code" in _TOOLS["mypy"]["enable_error_code"]
    loose = {"ignore_errors", "disable_error_code", "follow_imports", "allow_untyped_defs"}
    assert not [entry for entry in _TOOLS["mypy"]["overrides"] if loose & set(entry)]


def test_warnings_are_errors_and_an_expected_failure_that_passes_is_one() -> None:
    pytest_options = _TOOLS["pytest"]["ini_options"]
    assert pytest_options["filterwarnings"][0] == "error"
    assert len(pytest_options["filterwarnings"]) == 1, "a warning is mended, not ignored"
    assert pytest_options["xfail_strict"] is True


@pytest.mark.parametrize("flag", ["--strict-markers", "--strict-config", "--allow-hosts=127.0.0.1,::1,localhost"])
def test_tests_know_their_markers_and_reach_loopback_only(flag: str) -> None:
    assert flag in _TOOLS["pytest"]["ini_options"]["addopts"].split()


def test_the_locks_name_no_index_and_pin_everything_by_hash() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert "index-url" not in text, f"{name}: the index is the machine's business"
        assert "find-links" not in text, f"{name}: the index is the machine's business"
        requirements = text.replace("\\\n", " ").splitlines()
        assert not [line for line in requirements if line.strip() and "--hash=sha256:" not in line], name


def _is_reason(text: str) -> bool:
    comment = text.partition("#")[2]
    return len(comment.split()) >= 2
