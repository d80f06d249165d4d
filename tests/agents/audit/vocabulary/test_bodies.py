"""A client's data does harm in the calls of many libraries; what is bound, escaped, checked or converted does none."""

from __future__ import annotations

import pytest

from agents.audit.vocabulary.programs import bodies, weaknesses
from casemate.agents.audit.rules import RULES
from casemate.agents.audit.sinks.tables import SINKS


@pytest.mark.parametrize(("cwe", "program"), bodies("harmful"))
def test_a_harmful_program_is_flagged_with_its_weakness(cwe: str, program: str) -> None:
    assert cwe in weaknesses(program)


@pytest.mark.parametrize(("cwe", "program"), bodies("harmless"))
def test_a_look_alike_is_left_alone(cwe: str, program: str) -> None:
    assert cwe not in weaknesses(program)


def test_the_manual_of_every_rule_that_follows_data_says_what_it_does_not_see() -> None:
    following = {sink.rule for sinks in SINKS.values() for sink in sinks}
    assert following <= RULES.keys()
    assert [rule for rule in sorted(following) if not RULES[rule].blind] == []
