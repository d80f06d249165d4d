from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from casemate.engine.simulator import Faults, Script
from casemate.engine.simulator_server import tokens


def test_a_script_survives_the_command_line() -> None:
    script = Script(answers=(("a", "b"),), load_ms=3, faults=Faults(die_at_start='a "quoted" 词', deaf=True))
    assert Script.from_json(script.to_json()) == script


@given(st.text())
def test_tokens_joined_are_the_text(text: str) -> None:
    assert "".join(tokens(text)) == text
