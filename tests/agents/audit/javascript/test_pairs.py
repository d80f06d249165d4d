"""Pairs of small programs: the bad one is found with its weakness, its repaired twin is left alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from casemate.agents.audit.javascript.summary import summarize
from casemate.agents.audit.linking.link import Reached, link
from casemate.agents.audit.rules import RULES

_TABLES = sorted(Path(__file__).parent.glob("*.pairs"))
_HEAD = re.compile(r"^## (\S+) (CWE-\d+) ?(\w*)\n", re.MULTILINE)


def _pairs() -> list[tuple[str, str, str, str, str]]:
    """Name, weakness, ending, bad and good twin of each pair."""
    found = []
    for table in _TABLES:
        _, *fields = _HEAD.split(table.read_text(encoding="utf-8"))
        for name, cwe, ending, body in zip(fields[::4], fields[1::4], fields[2::4], fields[3::4], strict=True):
            bad, good = body.split("\n----\n")
            found.append((name, cwe, ending or "js", bad, good))
    return found


_PAIRS = _pairs()


def _found(code: str, ending: str) -> set[str]:
    module = summarize(code, f"app.{ending}")
    assert not module.remarks
    return {RULES[reached.hit.rule].cwe for reached in link([module]) if isinstance(reached, Reached)}


def test_there_are_at_least_sixty_pairs_of_at_least_twenty_weaknesses() -> None:
    assert len(_PAIRS) >= 60
    assert len({cwe for _, cwe, *_ in _PAIRS}) >= 20


@pytest.mark.parametrize(("name", "cwe", "ending", "bad", "good"), _PAIRS, ids=[pair[0] for pair in _PAIRS])
def test_the_bad_twin_is_flagged_with_its_weakness_and_the_good_twin_is_left_alone(
    name: str, cwe: str, ending: str, bad: str, good: str
) -> None:
    assert _found(bad, ending) == {cwe}, name
    assert _found(good, ending) == set(), name
