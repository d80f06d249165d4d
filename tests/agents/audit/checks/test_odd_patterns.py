"""Regular expressions of audited code are read in silence, whatever the library thinks of them."""

from __future__ import annotations

import pytest

from agents.material import findings_of
from casemate.agents.audit.checks.backtracking import Cost, worst_case
from casemate.agents.audit.checks.patterns import harmless_kinds

_ODD = ("[[a]+", "[a--b]+$", "[a&&b]*$", "[a||b]+", "[a~~b]+", "(", "a{99999999999999999999}", "(?P<x>a)(?P=y)+", "\\")


@pytest.mark.parametrize("pattern", _ODD)
def test_an_odd_pattern_is_neither_warned_of_nor_an_error(pattern: str) -> None:
    assert worst_case(pattern) is Cost.LINEAR
    assert isinstance(harmless_kinds(pattern, whole=True), frozenset)
    assert "regex-denial-of-service" not in {f.rule for f in findings_of(f"import re\nre.match({pattern!r}, input())")}
