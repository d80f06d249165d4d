import json
from dataclasses import replace

import pytest

from casemate.errors import UsageError
from casemate.finding import AuditResult, Gone, Ledger, Trend, Unread
from casemate.report import baseline
from report.sample_audit import BACKWARDS, CLEAN, HOSTILE_FINDING, INJECTION, PARTIAL

_KNOWN = baseline.parse(baseline.to_text(PARTIAL.findings), where="b.json")


def test_a_baseline_names_fingerprint_rule_and_path_and_holds_no_code() -> None:
    text = baseline.to_text(PARTIAL.findings)
    value = json.loads(text)
    assert (value["schema_version"], value["kind"]) == (1, "casemate-baseline")
    assert value["findings"][0] == {"fingerprint": "b" * 32, "rule": "python.hash.weak", "path": "empty.py"}
    assert all(set(row) == {"fingerprint", "rule", "path"} for row in value["findings"])
    assert INJECTION.evidence not in text


def test_the_same_findings_in_any_order_give_the_same_file() -> None:
    assert baseline.to_text(reversed(PARTIAL.findings)) == baseline.to_text((*PARTIAL.findings, INJECTION))


def test_known_findings_are_told_from_new_ones_and_from_those_that_are_gone() -> None:
    new = replace(INJECTION, fingerprint="n" * 32)
    result = baseline.compared(AuditResult((new, INJECTION), CLEAN.ledger), _KNOWN)
    assert (result.open, result.known) == ((new,), (replace(INJECTION, known=True),))
    assert result.trend is not None
    assert {row.path for row in result.trend.gone} == {"empty.py", "lib/h.py"}


@pytest.mark.parametrize(
    ("ledger", "gone"),
    [
        (Ledger(3), 3),
        (Ledger(3, failed=(Unread("lib/h.py", "too deep"),)), 2),
        (Ledger(3, skipped=(Unread("lib", "installed packages, not entered"),)), 2),
        (Ledger(3, skipped=(Unread("li", "not text"), Unread("h.py", "not text"))), 3),
        (Ledger(3, limited="only lines changed since main"), 0),
    ],
)
def test_what_was_not_looked_at_is_unseen_and_not_gone(ledger: Ledger, gone: int) -> None:
    trend = baseline.compared(AuditResult((), ledger), _KNOWN).trend
    assert trend is not None
    assert (len(trend.gone), trend.unseen) == (gone, 3 - gone)


def test_a_known_finding_stays_known_with_a_mark_and_an_honoured_mark_hides_it() -> None:
    known = baseline.compared(AuditResult((HOSTILE_FINDING, BACKWARDS), CLEAN.ledger), _KNOWN)
    assert (len(known.open), len(known.known)) == (0, 2)
    assert len(replace(known, honoured=True).known) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "not JSON",
        "[" * 100_000,
        '{"kind": "casemate-baseline"}',
        '{"kind": "casemate-baseline", "schema_version": 2, "findings": []}',
        '{"kind": "casemate-baseline", "schema_version": 1, "findings": {}}',
        '{"kind": "casemate-baseline", "schema_version": 1, "findings": [{"fingerprint": 3}]}',
        '{"schema_version": 1, "findings": [], "ledger": {}, "model": {}}',
    ],
)
def test_a_broken_or_foreign_file_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(UsageError, match="--write-baseline"):
        baseline.parse(text, where="b.json")


def test_a_path_that_is_no_text_survives_the_file() -> None:
    odd = replace(INJECTION, location=replace(INJECTION.location, path="latin\udce9\n.py"))
    text = baseline.to_text((odd,))
    text.encode()
    assert baseline.parse(text, where="")[odd.fingerprint] == Gone(odd.fingerprint, odd.rule, odd.location.path)


def test_without_a_baseline_everything_is_open() -> None:
    assert (PARTIAL.open, PARTIAL.known, PARTIAL.trend) == (PARTIAL.findings, (), None)
    assert Trend() == Trend((), 0)
