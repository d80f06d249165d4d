"""Kinds that are weak by themselves: each bad program is flagged by its rule, and its safe look-alike is not.

The files hold a block for each pair: `==== rule`, `---- bad` and its program, `---- good` and its program.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.material import findings_of

_FOLDER = Path(__file__).parent


def _pairs() -> list[tuple[str, str, str]]:
    found = []
    for path in sorted(_FOLDER.glob("*.pairs")):
        for block in path.read_text(encoding="utf-8").split("==== ")[1:]:
            rule, rest = block.split("\n---- bad\n")
            bad, good = rest.split("\n---- good\n")
            found.append((rule, bad, good))
    return found


_PAIRS = _pairs()


@pytest.mark.parametrize(("rule", "bad", "good"), _PAIRS, ids=[f"{pair[0]}-{n}" for n, pair in enumerate(_PAIRS)])
def test_the_bad_program_is_flagged_and_its_safe_look_alike_is_not(rule: str, bad: str, good: str) -> None:
    assert rule in {finding.rule for finding in findings_of(bad)}
    assert rule not in {finding.rule for finding in findings_of(good)}
