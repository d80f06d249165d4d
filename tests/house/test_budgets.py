"""Sizes stay within the budgets of AGENTS.md; the list of offenders may only shrink."""

from __future__ import annotations

import tomllib
from collections import Counter
from fnmatch import fnmatchcase
from typing import Any

import pytest

from house.budgets import Offence, all_offences, function_lines_p90, hard_offences
from house.source import ROOT, Source, sources

_LIST = ROOT / "tests" / "house" / "offenders.toml"
_SIGNATURE = ("parameters", "positional parameters")


def _entries(kind: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = tomllib.loads(_LIST.read_text(encoding="utf-8")).get(kind, [])
    return entries


def _excuses(entry: dict[str, Any], offence: Offence) -> bool:
    return offence.budget in _SIGNATURE and fnmatchcase(offence.where, entry["where"])


def test_nothing_new_is_over_budget_and_what_no_longer_is_has_left_the_list() -> None:
    fixed = _entries("fixed_signature")
    today = {offence for offence in all_offences(sources()) if not any(_excuses(entry, offence) for entry in fixed)}
    listed = {Offence(entry["budget"], entry["where"], entry["figure"]) for entry in _entries("offender")}
    assert not today - listed, "over budget:\n  " + "\n  ".join(sorted(map(str, today - listed)))
    assert not listed - today, "no longer so, take it off offenders.toml:\n  " + "\n  ".join(map(str, listed - today))


def test_no_module_is_over_500_lines_and_no_function_over_60_whatever_the_list_says() -> None:
    assert not list(map(str, hard_offences(sources())))


def test_every_excused_signature_exists_and_says_who_fixed_it() -> None:
    used = Counter(
        entry["where"]
        for offence in all_offences(sources())
        for entry in _entries("fixed_signature")
        if _excuses(entry, offence)
    )
    for entry in _entries("fixed_signature") + _entries("offender"):
        assert len(entry["why"].split()) >= 4, f"{entry['where']}: say why, in a sentence"
    for entry in _entries("fixed_signature"):
        assert used[entry["where"]], f"{entry['where']} excuses nothing: take it off offenders.toml"


_LONG = "\n".join(["def long():", *["    x = 1"] * 60])
_PLANTED = {
    "module lines": "x = 1\n" * 301,
    "parameters": "def f(a, b, *, c, d, e, f): ...",
    "positional parameters": "class C:\n    def f(self, a, b, c): ...",
    "nesting": "def f(a):\n for b in a:\n  if b:\n   try:\n    while b: ...\n   finally: ...",
}


@pytest.mark.parametrize("budget", _PLANTED)
def test_each_measure_catches_what_is_over_its_budget(budget: str) -> None:
    assert [found.budget for found in all_offences([Source.of("bench/x.py", _PLANTED[budget])])] == [budget]


def test_a_folder_too_deep_is_caught_and_agents_may_go_one_deeper() -> None:
    at = "src/casemate/{}/x.py".format
    deep = list(all_offences([Source.of(at("plan/a/b"), ""), Source.of(at("agents/audit/rules"), "")]))
    assert [(found.budget, found.where) for found in deep] == [("folder depth", at("plan/a/b"))]


def test_a_function_over_60_lines_is_caught_and_one_long_function_in_five_moves_the_percentile() -> None:
    planted = Source.of("bench/x.py", _LONG + "\ndef a(): ...\ndef b(): ...\ndef c(): ...\ndef d(): ...")
    assert [found.figure for found in hard_offences([planted])] == [61]
    assert [(found.where, found.figure) for found in function_lines_p90([planted])] == [("bench", 61)]


def test_an_elif_chain_and_an_inner_function_do_not_count_as_nesting() -> None:
    chain = "def f(a):\n if a == 1: ...\n" + "".join(f" elif a == {n}: ...\n" for n in range(2, 9))
    inner = " if a:\n  for b in a:\n   if b:\n    def g():\n     for c in b: ...\n"
    assert not list(all_offences([Source.of("bench/x.py", chain + inner)]))
