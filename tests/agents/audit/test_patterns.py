"""What a regular expression lets through, and which ones can take exponential time."""

from __future__ import annotations

import pytest

from casemate.agents.audit.checks.patterns import can_explode, harmless_kinds


@pytest.mark.parametrize(
    "pattern", [r"(a+)+$", r"^(\w+\s?)*$", r"([a-z0-9]+)+@", r"(.*,)*x.*y", r"(a|aa)+$", r"((ab)*)*c"]
)
def test_nested_or_ambiguous_repetition_can_explode(pattern: str) -> None:
    assert can_explode(pattern)


@pytest.mark.parametrize(
    "pattern", [r"\w+@\w+", r"(\d+,)*\d+", r"^[a-z]+(?: [a-z]+)*$", r"(?:ab)+", r"a{1,5}b+", r"(", r""]
)
def test_repetition_with_one_way_to_match_does_not(pattern: str) -> None:
    assert not can_explode(pattern)


def test_letters_alone_are_harmless_everywhere_but_a_dot_or_a_slash_opens_paths() -> None:
    letters = harmless_kinds(r"[a-z]{1,20}", whole=True)
    assert {"sql", "command", "path", "html", "code"} <= letters
    assert "path" not in harmless_kinds(r"[a-z./]+", whole=True)
    assert "sql" not in harmless_kinds(r"[a-z']+", whole=True)
    assert harmless_kinds(r".*", whole=True) <= {"header", "log"}


def test_match_without_an_end_anchor_shows_nothing() -> None:
    assert harmless_kinds(r"[a-z]+", whole=False) == frozenset()
    assert "sql" in harmless_kinds(r"[a-z]+$", whole=False)


def test_a_fixed_host_makes_an_address_safe_to_go_to_and_a_bare_prefix_does_not() -> None:
    assert {"redirect", "ssrf"} <= harmless_kinds(r"https://shop\.example\.com/.*", whole=True)
    assert not {"redirect", "ssrf"} & harmless_kinds(r"https://shop\.example\.com.*", whole=True)
