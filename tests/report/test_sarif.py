import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.finding import AuditResult, Location
from casemate.report.sarif import address, region, to_sarif
from report.sample_audit import BACKWARDS, CLEAN, EMPTY, HOSTILE_FINDING, INJECTION, PARTIAL, UNFINISHED
from report.sarif_shape import LOG


def _run(result: AuditResult, prefix: str = "") -> dict[str, Any]:
    run: dict[str, Any] = to_sarif(result, version="0.1.0", prefix=prefix)["runs"][0]
    return run


@pytest.mark.parametrize("result", [PARTIAL, CLEAN, UNFINISHED, EMPTY], ids=["partial", "clean", "unfinished", "empty"])
def test_every_audit_gives_a_log_of_the_standards_shape(result: AuditResult) -> None:
    log = json.loads(json.dumps(to_sarif(result, version="0.1.0")))
    jsonschema.Draft202012Validator(LOG).validate(log)


def test_the_shape_itself_refuses_what_hosts_refuse() -> None:
    log = to_sarif(PARTIAL, version="0.1.0")
    log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    assert not jsonschema.Draft202012Validator(LOG).is_valid(log)


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
