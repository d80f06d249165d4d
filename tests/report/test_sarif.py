import json
import zlib
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.agents.audit.manuals import manuals
from casemate.agents.audit.rules import RULES
from casemate.agents.phrases import Language
from casemate.finding import AuditResult, Cell, FlowStep, Gone, Ledger, Location, Patch, Trend, Unread
from casemate.report.sarif import address, region, to_sarif, to_text
from report.sample_audit import BACKWARDS, CLEAN, EMPTY, HOSTILE_FINDING, INJECTION, PARTIAL, UNFINISHED
from report.sarif_schema import standard

_PATCHED = replace(
    INJECTION,
    rule="sql-injection",
    scope="Store.find",
    patch=Patch(12, 13, "    cursor.execute(\n        q)", "    cursor.execute(q, (user_id,))"),
)
_IN_A_NOTEBOOK = replace(BACKWARDS, location=Location("n.ipynb", 40, 9, 40, 30, Cell(2, 1)))
_COMPARED = AuditResult(
    (_PATCHED, replace(HOSTILE_FINDING, known=True), _IN_A_NOTEBOOK),
    Ledger(3, limited="only lines changed since main"),
    honoured=True,
    trend=Trend((Gone("f" * 32, "weak-hash", "old.py"),), 2),
)
_AUDITS = {"partial": PARTIAL, "clean": CLEAN, "unfinished": UNFINISHED, "empty": EMPTY, "compared": _COMPARED}


def _run(result: AuditResult, prefix: str = "", **more: Any) -> dict[str, Any]:
    run: dict[str, Any] = to_sarif(result, version="0.1.0", prefix=prefix, **more)["runs"][0]
    return run


@pytest.mark.parametrize("name", _AUDITS)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_audit_gives_a_log_that_is_valid_by_the_standards_schema(name: str, language: Language) -> None:
    result = _AUDITS[name]
    log = to_sarif(result, version="0.1.0", prefix="services/api", manuals=manuals(result.findings, language))
    standard().validate(json.loads(json.dumps(log)))


def test_the_schema_refuses_what_hosts_refuse() -> None:
    log = to_sarif(PARTIAL, version="0.1.0")
    log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    assert not standard().is_valid(log)


def test_of_too_many_results_the_worst_stay_and_a_notification_counts_the_rest() -> None:
    run = _run(PARTIAL, most=1)
    assert [result["ruleId"] for result in run["results"]] == ["python.sql.concat"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["python.sql.concat"]
    (note,) = [n for n in run["invocations"][0]["toolExecutionNotifications"] if n["descriptor"]["id"] == "cut"]
    assert note["message"]["text"].startswith("2 milder results")


def test_a_file_that_would_be_too_big_for_hosts_once_compressed_holds_fewer_of_the_mildest() -> None:
    many = tuple(replace(INJECTION, fingerprint=sha256(b"%d" % number).hexdigest()[:32]) for number in range(500))
    audit = AuditResult((*many, BACKWARDS), CLEAN.ledger)
    whole = to_text(audit, version="0.1.0", manuals={})
    assert len(json.loads(whole)["runs"][0]["results"]) == 501
    cut = to_text(audit, version="0.1.0", manuals={}, most_bytes=10_000)
    assert len(zlib.compress(cut.encode(), 6)) <= 10_000
    (run,) = json.loads(cut)["runs"]
    assert 50 < len(run["results"]) < 500
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"].startswith(f"{501 - len(run['results'])} milder results")


def test_no_rule_and_no_flow_exceeds_what_hosts_take() -> None:
    every = tuple(
        replace(INJECTION, rule=rule.id, cwe=rule.cwe, name=rule.name, flow=(FlowStep(INJECTION.location, "x"),) * 3000)
        for rule in RULES.values()
    )
    run = _run(AuditResult(every, CLEAN.ledger), manuals=manuals(every, "en"))
    for rule in run["tool"]["driver"]["rules"]:
        assert len(rule["shortDescription"]["text"]) <= 1024
        assert len(rule["fullDescription"]["text"]) <= 1024
        assert len(rule["properties"]["tags"]) <= 10
    assert {len(flow["locations"]) for flow in _all(run, "threadFlows") for flow in flow} == {1000}


def test_thousands_of_skipped_files_are_one_notification_a_reason() -> None:
    many = tuple(Unread(f"{number}.js", "no rules for this language (.js)") for number in range(9000))
    (note,) = _run(AuditResult(ledger=Ledger(1, many)))["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"].startswith("9000 skipped, no rules for this language (.js): 0.js, 1.js")
    assert len(note["locations"]) == 10


def test_a_fix_replaces_the_very_lines_of_the_file() -> None:
    (change,) = _run(_COMPARED)["results"][0]["fixes"][0]["artifactChanges"]
    (replacement,) = change["replacements"]
    assert replacement["deletedRegion"] == {"startLine": 12, "startColumn": 1, "endLine": 13, "endColumn": 11}
    assert replacement["insertedContent"]["text"] == "    cursor.execute(q, (user_id,))"
    assert change["artifactLocation"]["uri"] == "src/a%20b%231.py"


@pytest.mark.parametrize("patch", [Patch(1, 1, "a", "b", masked=True), Patch(1, 1, "a", 'b = "\u202e"')])
def test_a_fix_that_may_not_be_shown_as_it_is_is_not_offered_for_use(patch: Patch) -> None:
    (result,) = _run(AuditResult((replace(INJECTION, patch=patch),), CLEAN.ledger))["results"]
    assert "fixes" not in result


def test_with_a_baseline_each_result_has_its_state_and_what_is_gone_is_told_apart() -> None:
    run = _run(_COMPARED)
    assert [result["baselineState"] for result in run["results"]] == ["new", "unchanged", "new"]
    assert run["properties"]["baseline"]["gone"] == [{"fingerprint": "f" * 32, "rule": "weak-hash", "path": "old.py"}]
    assert all("baselineState" not in result for result in _run(PARTIAL)["results"])


def test_in_a_notebook_the_place_is_the_files_own_and_the_cell_stands_in_the_message() -> None:
    result = _run(_COMPARED)["results"][2]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 40
    assert result["properties"]["cell"] == {"number": 2, "line": 1}
    assert result["message"]["text"].startswith("[cell 2, line 1] ")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_rules_of_ours_bring_their_manual_in_the_readers_language(language: Language) -> None:
    run = _run(_COMPARED, manuals=manuals(_COMPARED.findings, language))
    rule, ours = run["tool"]["driver"]["rules"][0], RULES["sql-injection"]
    assert rule["shortDescription"]["text"] == f"CWE-89: {ours.title(language)}"
    assert ours.guidance(language) in rule["help"]["markdown"]
    assert ours.bad.strip() in rule["help"]["markdown"]
    assert run["results"][0]["message"]["text"] == ours.message(language)


@given(*[st.integers(-3, 9)] * 4)
def test_any_place_becomes_a_region_that_starts_at_one_and_does_not_end_before_it_starts(
    line: int, column: int, end_line: int, end_column: int
) -> None:
    found = region(Location("a.py", line, column, end_line, end_column))
    assert min(found.values()) >= 1
    assert (found["startLine"], found["startColumn"]) <= (found["endLine"], found["endColumn"])


def test_a_right_place_is_kept() -> None:
    assert region(Location("a.py", 2, 3, 4, 1)) == {"startLine": 2, "startColumn": 3, "endLine": 4, "endColumn": 1}


@pytest.mark.parametrize(
    ("path", "prefix", "uri"),
    [
        ("src/a b#1.py", "services/api", "services/api/src/a%20b%231.py"),
        ("a.py", "services/api/", "services/api/a.py"),
        ("./a.py", "", "a.py"),
        ("c:d.py", "", "c%3Ad.py"),
        ("100%.py", "", "100%25.py"),
        ("目录/x.py", "", "%E7%9B%AE%E5%BD%95/x.py"),
        ("latin\udce9.py", "", "latin%E9.py"),
        ("high\ud800.py", "", "high%E2%9F%A8U%2BD800%E2%9F%A9.py"),
    ],
)
def test_an_address_is_relative_to_the_repository_and_percent_encoded(path: str, prefix: str, uri: str) -> None:
    assert address(path, prefix) == uri


def test_the_folder_of_a_monorepo_stands_before_every_address() -> None:
    run = _run(PARTIAL, prefix="services/api")
    addresses = [found["uri"] for found in _all(run, "artifactLocation")]
    assert len(addresses) == 7
    assert {"uriBaseId"} == {key for found in _all(run, "artifactLocation") for key in found} - {"uri"}
    assert all(uri.startswith("services/api/") for uri in addresses)


def test_rules_and_weaknesses_are_listed_once_and_pointed_at_by_index() -> None:
    run = _run(PARTIAL)
    rules, taxa = run["tool"]["driver"]["rules"], run["taxonomies"][0]["taxa"]
    assert [rule["id"] for rule in rules] == ["python.sql.concat", "python.hash.weak"]
    assert [taxon["id"] for taxon in taxa] == ["CWE-89", "CWE-328"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    for reference in [*_all(run, "target"), *(taxon for result in run["results"] for taxon in result["taxa"])]:
        assert taxa[reference["index"]]["id"] == reference["id"]


def test_a_rule_says_what_it_is_about_and_where_to_read_on() -> None:
    rule = _run(PARTIAL)["tool"]["driver"]["rules"][0]
    assert rule["shortDescription"]["text"] == "CWE-89: SQL injection"
    assert "https://cwe.mitre.org/data/definitions/89.html" in rule["help"]["text"]
    assert rule["properties"]["tags"] == ["security", "external/cwe/cwe-089"]


def test_fingerprints_are_the_findings_own_and_do_not_move_with_lines() -> None:
    first, *_ = _run(PARTIAL)["results"]
    assert first["partialFingerprints"] == {"primaryLocationLineHash": f"{'a' * 32}:1", "casemate/v1": "a" * 32}


def test_the_flow_is_a_code_flow_with_its_notes() -> None:
    run = _run(PARTIAL)
    steps = run["results"][0]["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [step["location"]["message"]["text"] for step in steps] == ["request argument", "sink"]
    assert [step["location"]["physicalLocation"]["region"]["startLine"] for step in steps] == [9, 12]
    assert "codeFlows" not in run["results"][1]


def test_a_mark_in_the_source_is_recorded_but_does_not_hide_the_result() -> None:
    marks = [result["suppressions"] for result in _run(PARTIAL)["results"]]
    assert [len(mark) for mark in marks] == [0, 1, 0]
    assert (marks[1][0]["kind"], marks[1][0]["status"]) == ("inSource", "underReview")
    (mark,) = _run(_COMPARED)["results"][1]["suppressions"]
    assert (mark["kind"], mark["status"]) == ("inSource", "accepted")


def test_files_that_were_not_read_are_notifications_and_a_failure_is_not_a_success() -> None:
    invocation = _run(PARTIAL)["invocations"][0]
    notes = [(note["descriptor"]["id"], note["level"]) for note in invocation["toolExecutionNotifications"]]
    assert notes == [("skipped", "note"), ("failed", "error")]
    assert not invocation["executionSuccessful"]
    assert _run(CLEAN)["invocations"][0]["executionSuccessful"]


def test_no_text_carries_a_control_character_or_an_override() -> None:
    text = json.dumps(to_sarif(AuditResult((HOSTILE_FINDING, BACKWARDS, INJECTION)), version="0.1.0"))
    assert "\\u001b" not in text
    assert "\\u202e" not in text


def _all(value: Any, key: str) -> list[Any]:
    if isinstance(value, list):
        return [found for item in value for found in _all(item, key)]
    if isinstance(value, dict):
        own = [value[key]] if key in value else []
        return own + [found for item in value.values() for found in _all(item, key)]
    return []
