"""Whole logs of many kinds, made for the test: the first finding is the line at the root."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from casemate.doctor.diagnose import diagnose

FOLDER = Path(__file__).parent / "samples" / "whole"
EXPECTED = tomllib.loads((FOLDER / "expected.toml").read_text("utf-8"))


def test_every_log_has_its_expectation() -> None:
    assert {path.stem for path in FOLDER.glob("*.log")} == EXPECTED.keys()


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_root_of_a_whole_log_is_found(name: str) -> None:
    with (FOLDER / f"{name}.log").open("rb") as stream:
        told = diagnose(stream)
    found = (told.root.id, told.root.line) if told.root else ("", 0)
    assert found == (EXPECTED[name]["id"], EXPECTED[name]["line"])
    assert told.verdict == ("failed" if told.root else "healthy")
