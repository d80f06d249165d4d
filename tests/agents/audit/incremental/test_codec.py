"""Values survive the way to the disk and back; bytes that are something else are refused and build nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from casemate.agents.audit.facts.summary import Module
from casemate.agents.audit.facts.values import Attribute, Origin, Parameter, Result, Source
from casemate.agents.audit.incremental.codec import packed, unpacked
from casemate.agents.audit.reading.files import summaries
from casemate.finding import Confidence, FlowStep, Location

_HERE = Location("a.py", 1, 2, 3, 4)
_TAINTS = Mapping[Origin, frozenset[str]]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("text", str),
        ("half a pair \ud800, a name that is no UTF-8 \udcff", str),
        (2**40, int),
        (Confidence.LOW, Confidence),
        (None, Location | None),
        (_HERE, Location | None),
        ((), tuple[str, ...]),
        (("a", 1, True), tuple[str, int, bool]),
        (["b", "a"], list[str]),
        (frozenset({"b", "a"}), frozenset[str]),
        ({("a", "b"): 1.5}, Mapping[tuple[str, str], float]),
        (
            {Parameter("f", "x"): frozenset({"sql"}), Result("k"): frozenset(), Attribute("A", "b"): frozenset()},
            _TAINTS,
        ),
    ],
)
def test_a_value_comes_back_as_it_was(value: object, kind: Any) -> None:
    line = packed(value, kind)
    assert b"\n" not in line
    assert unpacked(line, kind) == value


def test_a_source_comes_back_with_the_step_that_does_not_count_in_comparison() -> None:
    ((source, _),) = unpacked(
        packed({Source("q", "web", FlowStep(_HERE, "note")): frozenset()}, _TAINTS), _TAINTS
    ).items()
    assert source.step == FlowStep(_HERE, "note")


def test_the_order_of_a_mapping_is_kept() -> None:
    kind = Mapping[str, int]
    assert list(unpacked(packed({"z": 1, "a": 2}, kind), kind)) == ["z", "a"]


def test_summaries_of_the_shop_come_back_as_they_were() -> None:
    shop = Path(__file__).resolve().parents[4] / "examples" / "shop"
    files = tuple(path.relative_to(shop).as_posix() for path in sorted(shop.rglob("*.py")))
    outcomes = summaries(str(shop), files)
    assert len(outcomes) > 3
    for outcome in outcomes:
        assert isinstance(outcome, Module)
        line = packed(outcome, Module)
        assert unpacked(line, Module) == outcome
        assert packed(unpacked(line, Module), Module) == line  # equality alone passes over the steps of sources


@pytest.mark.parametrize("line", [b"", b"[]", b"{}", b'"x"', b"[1,2,3,4,5,6]", b'["a",1,2,3,"4",null]', b"[" * 99_999])
def test_what_was_not_written_for_a_type_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        unpacked(line, Location)
