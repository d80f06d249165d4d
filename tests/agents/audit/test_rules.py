"""Every rule is its own manual, and both of its examples are true."""

from __future__ import annotations

import re

import pytest

from agents.material import findings_of
from casemate.agents.audit.rules import RULES, Rule, message

_DISCOURAGED_OR_PROHIBITED = {"CWE-20", "CWE-74", "CWE-200", "CWE-330", "CWE-345", "CWE-400", "CWE-668", "CWE-703"}
"""The usual answers that MITRE asks not to map to; bandit's and semgrep's rules use several of them."""


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_the_bad_example_is_flagged_by_its_own_rule_and_the_good_one_by_none(rule: Rule) -> None:
    assert rule.id in {finding.rule for finding in findings_of(rule.bad)}
    assert [finding.rule for finding in findings_of(rule.good)] == []


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_a_rule_speaks_both_languages_and_names_official_references(rule: Rule) -> None:
    for english, chinese in (
        (rule.title_en, rule.title_zh),
        (rule.message_en, rule.message_zh),
        (rule.fix_en, rule.fix_zh),
    ):
        assert english.isascii()
        assert re.search(r"[一-鿿]", chinese)
    assert message(rule.id, "zh") == rule.message_zh
    assert message(rule.id) == rule.message_en
    assert rule.references[0].endswith(f"/{rule.cwe.removeprefix('CWE-')}.html")
    assert all(reference.startswith("https://") for reference in rule.references)


def test_no_rule_maps_to_a_weakness_that_mitre_asks_not_to_map_to() -> None:
    assert not {rule.cwe for rule in RULES.values()} & _DISCOURAGED_OR_PROHIBITED


def test_one_weakness_has_one_name() -> None:
    names = {(rule.cwe, rule.name) for rule in RULES.values()}
    assert len(names) == len({cwe for cwe, _ in names})
