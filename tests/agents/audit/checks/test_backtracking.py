"""How long a backtracking matcher can take, told by the expression alone."""

from __future__ import annotations

import time

import pytest

from casemate.agents.audit.checks.backtracking import Cost, worst_case


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"(a+)+$", r"^(\w+\s?)*$", r"([a-z0-9]+)+@", r"(.*,)*x.*y", r"(a|aa)+$", r"((ab)*)*c", r"(a*)*b"),
        *(r"^(([a-z])+.)+[A-Z]([a-z])+$", r"^(a|b|ab)*c$", r"^(\s*\w+\s*)*$", r"^(?:.*a){12,}$", r"^([0-9]+[a-z]*)*!$"),
    ],
)
def test_two_ways_round_a_loop_on_one_text_take_exponential_time(pattern: str) -> None:
    assert worst_case(pattern) is Cost.EXPONENTIAL


@pytest.mark.parametrize("pattern", [r"^\w+\d+$", r".*.*=.*", r"^\s+\s*;", r"(\w*)(\d*)!$", r"^[\w.]+[a-z]+@"])
def test_two_loops_one_after_the_other_on_one_text_take_polynomial_time(pattern: str) -> None:
    assert worst_case(pattern) is Cost.POLYNOMIAL


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"\w+@\w+", r"(\d+,)*\d+", r"^[a-z]+(?: [a-z]+)*$", r"(?:ab)+", r"a{1,5}b+", r"(", r"", r"(a+)+", r"(.*)"),
        *(r"^[\w.+-]+@[\w-]+\.[\w.-]+$", r"^(?:[a-z]+-)*[a-z]+$", r"(?>a+)+$", r"(a++)+$", r"^(\w+)\s*=\s*(.*)$"),
        r"^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)$",
    ],
)
def test_one_way_to_match_or_no_way_to_fail_takes_linear_time(pattern: str) -> None:
    assert worst_case(pattern) is Cost.LINEAR


def test_a_match_of_the_whole_text_can_fail_where_a_match_of_its_beginning_cannot() -> None:
    assert worst_case("(a+)+") is Cost.LINEAR
    assert worst_case("(a+)+", whole=True) is Cost.EXPONENTIAL


def test_an_expression_beyond_reason_is_given_up_at_once() -> None:
    begin = time.process_time()
    worst_case("(?:" + "|".join(f"[a-z{n}]*x{n}" for n in range(400)) + ")*!")
    assert time.process_time() - begin < 5
