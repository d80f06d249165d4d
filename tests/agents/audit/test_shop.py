"""The example shop: every seeded weakness, none of the look-alikes, nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from casemate.agents.audit.scan import Scan, scan

_SHOP = Path(__file__).parents[3] / "examples" / "shop"
_EXPECTED = json.loads((_SHOP / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def shop() -> Scan:
    return scan(_SHOP)


def test_the_shop_holds_enough_weaknesses_of_enough_kinds_and_as_many_look_alikes() -> None:
    assert len(_EXPECTED["weaknesses"]) >= 14
    assert len({weakness["cwe"] for weakness in _EXPECTED["weaknesses"]}) >= 10
    assert len(_EXPECTED["safe"]) >= len(_EXPECTED["weaknesses"])


def test_every_weakness_is_found_and_nothing_else(shop: Scan) -> None:
    found = sorted((f.location.path, f.location.line, f.cwe, f.rule) for f in shop.findings)
    wanted = sorted((w["path"], w["line"], w["cwe"], w["rule"]) for w in _EXPECTED["weaknesses"])
    assert found == wanted


def test_no_look_alike_is_flagged(shop: Scan) -> None:
    flagged = {
        (f.location.path, line) for f in shop.findings for line in range(f.location.line, f.location.end_line + 1)
    }
    assert not flagged & {(safe["path"], safe["line"]) for safe in _EXPECTED["safe"]}


def test_every_file_is_looked_at_and_the_list_of_answers_is_not_taken_for_code(shop: Scan) -> None:
    assert shop.ledger.analysed == len(list(_SHOP.rglob("*.py"))) + shop.ledger.searched
    assert (shop.ledger.searched, shop.ledger.skipped) == (1, ())
    assert shop.ledger.complete


def test_evidence_is_verbatim_except_for_masked_secrets(shop: Scan) -> None:
    for finding in shop.findings:
        lines = (_SHOP / finding.location.path).read_text(encoding="utf-8").splitlines()
        verbatim = "\n".join(lines[finding.location.line - 1 : finding.location.end_line])
        assert finding.evidence == verbatim or "…(masked)" in finding.evidence


def test_two_runs_give_the_same_findings(shop: Scan) -> None:
    assert scan(_SHOP) == shop


def test_what_can_be_mended_safely_carries_corrected_code_and_nothing_else_does(shop: Scan) -> None:
    mended = {finding.rule for finding in shop.findings if finding.fix}
    assert mended == {
        "sql-injection",
        "unsafe-deserialization",
        "certificate-not-verified",
        "cookie-without-secure",
        "debug-enabled",
        "weak-randomness",
    }
