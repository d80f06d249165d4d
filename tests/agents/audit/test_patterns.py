"""What a regular expression lets through."""

from __future__ import annotations

from casemate.agents.audit.checks.patterns import harmless_kinds


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
