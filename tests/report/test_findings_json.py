import json

from casemate.report.findings import to_json
from casemate.report.visible import as_json
from report.sample_audit import EMPTY, HOSTILE, INJECTION, PARTIAL


def test_a_finding_has_exactly_the_promised_fields() -> None:
    first = to_json(PARTIAL)["findings"][0]
    assert list(first) == [
        *("rule", "path", "line", "column", "end_line", "end_column", "cwe", "name", "severity", "confidence", "flow"),
        *(
            "evidence",
            "references",
            "technique",
            "clauses",
            "fingerprint",
            "suppressed",
            "explanation",
            "fix",
            "message",
            "scope",
            "known",
            "patch",
            "cell",
        ),
    ]
    assert first["severity"] == "high"
    assert first["flow"][0] == {"path": "src/a b#1.py", "line": 9, "column": 15, "note": "request argument", "text": ""}
    assert first["clauses"][0] == {
        "framework": "GDPR",
        "id": "Art. 32(1)(b)",
        "title": "Confidentiality of processing",
    }


def test_an_empty_audit_is_a_whole_value() -> None:
    assert to_json(EMPTY) == {
        "schema_version": 1,
        "findings": [],
        "ledger": {"analysed": 0, "skipped": [], "failed": [], "searched": 0, "remarks": [], "limited": ""},
        "suppressions": {"count": 0, "honoured": False},
        "baseline": None,
        "model": {"name": "", "note": ""},
    }


def test_the_ledger_tells_what_was_not_read_and_why() -> None:
    assert to_json(PARTIAL)["ledger"] == {
        "analysed": 7,
        "skipped": [{"path": "static/app.min.js", "reason": "minified"}],
        "failed": [{"path": "src/latin\udce9.py", "reason": "not UTF-8"}],
        "searched": 0,
        "remarks": [],
        "limited": "",
    }


def test_printed_json_is_exact_and_yet_holds_nothing_that_a_terminal_obeys() -> None:
    value = to_json(PARTIAL)
    text = as_json(value)
    assert json.loads(text) == value
    assert text.replace("\n", "").isprintable()
    assert json.loads(text)["findings"][1]["evidence"] == HOSTILE
    text.encode()  # a lone surrogate would raise


def test_chinese_stays_readable_in_printed_json() -> None:
    assert INJECTION.explanation in as_json(to_json(PARTIAL))


def test_eight_bit_controls_and_tag_characters_are_escaped_too() -> None:
    value = {"t": "\x9b2J \U000e0041 \u2066 \x7f"}
    text = as_json(value)
    assert "\x9b" not in text
    assert "\U000e0041" not in text
    assert "\x7f" not in text
    assert json.loads(text) == value
