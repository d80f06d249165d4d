from __future__ import annotations

import pytest

from doctor.boxes import check, each, second


@pytest.mark.parametrize(
    ("enabled", "errors", "verdict"),
    [(True, 0, "ok"), (True, 2, "fail"), (False, 0, "warn"), (None, None, "unknown"), (True, None, "unknown")],
)
def test_memory_errors_fail_and_memory_that_is_not_watched_is_no_good_news(
    *, enabled: bool | None, errors: int | None, verdict: str
) -> None:
    assert check("health.ecc", second(ecc_enabled=enabled, ecc_uncorrected=errors)).verdict == verdict


def test_the_card_with_the_errors_is_named() -> None:
    assert check("health.ecc", second(ecc_uncorrected=2)).found == "card 1: 2 uncorrected"


@pytest.mark.parametrize(
    ("pending", "failed", "verdict", "remedy"),
    [
        (True, False, "warn", "nvidia-smi -r"),
        (False, True, "fail", "replaced"),
        (True, True, "fail", "replaced"),
        (None, None, "unknown", "before Ampere"),
        (False, None, "unknown", "before Ampere"),
    ],
)
def test_a_row_that_waits_wants_a_reset_and_one_that_failed_another_card(
    *, pending: bool | None, failed: bool | None, verdict: str, remedy: str
) -> None:
    found = check("health.remapped-rows", each(remapped_rows_pending=pending, remapped_rows_failed=failed))
    assert found.verdict == verdict
    assert remedy in found.remedy


@pytest.mark.parametrize(
    ("reasons", "verdict"),
    [
        ((), "ok"),
        (("sw_power_cap",), "ok"),
        (("hw_slowdown", "hw_thermal_slowdown"), "warn"),
        (("sw_thermal_slowdown",), "warn"),
        (("hw_power_brake_slowdown",), "warn"),
        (("applications_clocks_setting",), "warn"),
    ],
)
def test_a_card_that_is_held_back_by_heat_or_hand_is_warned_of_and_one_at_its_power_limit_is_not(
    reasons: tuple[str, ...], verdict: str
) -> None:
    found = check("health.throttle", each(throttle=reasons))
    assert found.verdict == verdict
    assert ("-rgc" in found.remedy) == (reasons == ("applications_clocks_setting",))


def test_throttle_reasons_that_the_driver_did_not_tell_are_not_none_active() -> None:
    assert check("health.throttle", each(unknown=(("throttle", "Not Supported"),))).verdict == "unknown"


@pytest.mark.parametrize(
    ("now", "slows", "verdict"),
    [(40, 87, "ok"), (81, 87, "ok"), (82, 87, "warn"), (90, 87, "warn"), (None, 87, "unknown"), (40, None, "unknown")],
)
def test_a_card_near_the_temperature_where_it_slows_is_hot(now: int | None, slows: int | None, verdict: str) -> None:
    assert check("health.temperature", each(temperature_c=now, temperature_slowdown_c=slows)).verdict == verdict


@pytest.mark.parametrize(
    ("limit", "default", "verdict"),
    [
        (500.0, 500.0, "ok"),
        (600.0, 500.0, "ok"),
        (400.0, 500.0, "warn"),
        (None, 500.0, "unknown"),
        (1.0, None, "unknown"),
    ],
)
def test_a_power_limit_below_the_default_costs_speed(limit: float | None, default: float | None, verdict: str) -> None:
    assert check("health.power-limit", each(power_limit_w=limit, power_limit_default_w=default)).verdict == verdict
