"""Habits of the house: each holds for the tree, and each is shown to catch a planted breach."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from house import habits
from house.source import Source, sources

Habit = Callable[[Source], Iterator[str]]

_EVERYWHERE = (habits.drawers, habits.broad_excepts, habits.mocks, habits.patches, habits.silent_skips)
_PRODUCT = (habits.late_imports,)

_BREACHES: list[tuple[Habit, str, str]] = [
    (habits.drawers, "src/casemate/utils.py", ""),
    (habits.drawers, "src/casemate/plan/base.py", ""),
    (habits.drawers, "src/casemate/common/x.py", ""),
    (habits.drawers, "src/casemate/chat/http_helpers.py", ""),
    (habits.broad_excepts, "src/casemate/x.py", "try: ...\nexcept Exception: ..."),
    (habits.broad_excepts, "src/casemate/x.py", "try: ...\nexcept: ..."),
    (habits.broad_excepts, "src/casemate/x.py", "try: ...\nexcept (OSError, BaseException): ..."),
    (habits.broad_excepts, "src/casemate/x.py", "with contextlib.suppress(Exception): ..."),
    (habits.broad_excepts, "src/casemate/cli/main.py", "try: ...\nexcept Exception: ...\n" * 2),
    (habits.late_imports, "src/casemate/x.py", "def f():\n if 1:\n  import json"),
    (habits.late_imports, "src/casemate/x.py", "class C:\n def f(self):\n  from json import loads"),
    (habits.late_imports, "src/casemate/x.py", "json = importlib.import_module('json')"),
    (habits.mocks, "tests/x.py", "from unittest import mock"),
    (habits.mocks, "tests/x.py", "from unittest.mock import Mock"),
    (habits.mocks, "tests/x.py", "import respx"),
    (habits.mocks, "tests/x.py", "def test_x(mocker): ..."),
    (habits.patches, "tests/x.py", "monkeypatch.setattr(ask, 'answer', print)"),
    (habits.silent_skips, "tests/x.py", "pytest.skip('no GPU')"),
    (habits.silent_skips, "tests/x.py", "@pytest.mark.skipif(True)\ndef test_x(): ..."),
    (habits.marks_without_reason, "src/casemate/x.py", "import os  # " + "noqa"),
    (habits.marks_without_reason, "src/casemate/x.py", "import os  # " + "noqa: F401"),
    (habits.marks_without_reason, "src/casemate/x.py", "x = 1  # type" + ": ignore"),
    (habits.marks_without_reason, "src/casemate/x.py", "x = 1  # type" + ": ignore[arg-type]"),
]
_ALLOWED: list[tuple[Habit, str, str]] = [
    (habits.broad_excepts, "src/casemate/x.py", "try: ...\nexcept BaseException:\n tidy_up()\n raise"),
    (habits.broad_excepts, "src/casemate/cli/main.py", "try: ...\nexcept Exception: ..."),
    (habits.broad_excepts, "src/casemate/x.py", "try: ...\nexcept (OSError, ValueError): ..."),
    (habits.late_imports, "src/casemate/cli/loader.py", "def f(name):\n return importlib.import_module(name)"),
    (habits.patches, "tests/x.py", "monkeypatch.setenv('A', 'b')\nmonkeypatch.setattr(time, 'monotonic', clock)"),
    (habits.marks_without_reason, "src/casemate/x.py", "import os  # " + "noqa: F401 - the face lists names"),
    (habits.marks_without_reason, "src/casemate/x.py", "x = 1  # type" + ": ignore[misc]  # ships no types yet"),
]


@pytest.mark.parametrize("habit", [*_EVERYWHERE, habits.marks_without_reason])
def test_the_habit_holds_in_product_tests_and_benches(habit: Habit) -> None:
    assert not [place for source in sources() for place in habit(source)]


@pytest.mark.parametrize("habit", _PRODUCT)
def test_the_habit_holds_in_the_product(habit: Habit) -> None:
    assert not [place for source in sources("src") for place in habit(source)]


@pytest.mark.parametrize(("habit", "path", "text"), _BREACHES)
def test_a_breach_of_the_habit_is_caught(habit: Habit, path: str, text: str) -> None:
    assert list(habit(Source.of(path, text)))


@pytest.mark.parametrize(("habit", "path", "text"), _ALLOWED)
def test_what_the_habit_allows_passes(habit: Habit, path: str, text: str) -> None:
    assert not list(habit(Source.of(path, text)))
