from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from casemate.doctor import nvml_card
from casemate.doctor.nvml import Nvml
from casemate.doctor.watch.cards import Cards
from casemate.doctor.watch.nvml_live import Watched, intervals
from casemate.doctor.watch.sample import CardSample, Use
from conftest import Optional
from fakes.nvidia import LOST, NOT_SUPPORTED, FakeLibrary, Refuses, build, compiler, h200

GIB = 1 << 30
COUNTERS = {138: 7, 139: 9, 202: 11_000, 204: 12_000}
"""Bytes of NVLink by the number of their field; the older two in KiB."""


class Counting(FakeLibrary):
    """A library whose fields have values of their own; `newest` is the last field that it knows."""

    newest = 300

    def nvmlDeviceGetFieldValues(self, _handle: object, _count: object, place: Any) -> int:  # noqa: N802 - C's name
        known = COUNTERS.get(place._obj.field)
        place._obj.value = 26562 if known is None else known
        place._obj.status = NOT_SUPPORTED if place._obj.field > self.newest else 0
        return 0


class Older(Counting):
    newest = 200


def live(**changes: Any) -> dict[str, Any]:
    """A card at work."""
    busy = {
        "nvmlDeviceGetUtilizationRates": {"gpu": 97, "memory": 41},
        "nvmlDeviceGetPowerUsage": 512_000,
        "nvmlDeviceGetClockInfo": lambda _, kind: {1: 1755, 2: 3201}[kind],
        "nvmlDeviceGetPcieThroughput": lambda _, direction: {0: 1_000, 1: 31_000_000}[direction],
        "nvmlDeviceGetCurrentClocksEventReasons": 0x4 | 0x20,
        "nvmlDeviceGetComputeRunningProcesses_v3": [{"pid": os.getpid(), "used": 5 * GIB}],
    }
    return h200() | busy | changes


def watched(*answers: dict[str, Any], kind: type[Counting] = Counting) -> list[Watched]:
    nvml = Nvml(kind({"nvmlDeviceGetCount_v2": len(answers)}, answers))
    return [Watched(nvml, card, handle=handle) for card, handle in nvml_card.cards(nvml)]


def seen(**changes: Any) -> CardSample:
    (card,) = watched(live(**changes))
    card.look()
    card.look()
    return card.sample()


def test_a_card_at_work_is_told_with_all_that_the_driver_measures() -> None:
    found = seen()
    assert (found.busy, found.memory_busy, found.power_w, found.sm_clock_hz) == (0.97, 0.41, 512, 1.755e9)
    assert (found.power_limit_w, found.power_limit_default_w, found.temperature_c) == (700, 700, 34)
    assert (found.pcie_sent_bytes_per_s, found.pcie_received_bytes_per_s) == (1e6, 31e9)
    assert found.pcie_bound_bytes_per_s == pytest.approx(63e9, rel=0.001)
    assert (found.nvlink_sent_bytes, found.nvlink_received_bytes, found.nvlinks_active) == (11_000, 12_000, 18)
    assert found.nvlink_bound_bytes_per_s == 18 * 26_562_000_000
    assert found.throttle == (("sw_power_cap", 1.0), ("sw_thermal_slowdown", 1.0))
    assert found.memory_total_bytes == 150754820096
    (use,) = found.processes
    assert (use.pid, use.memory_bytes) == (os.getpid(), 5 * GIB)
    assert use.name, "it is visible from here"


@pytest.mark.parametrize(
    ("function", "lost"),
    [
        ("nvmlDeviceGetUtilizationRates", {"busy", "memory_busy"}),
        ("nvmlDeviceGetPowerUsage", {"power_w"}),
        ("nvmlDeviceGetPcieThroughput", {"pcie_sent_bytes_per_s", "pcie_received_bytes_per_s"}),
        ("nvmlDeviceGetCurrPcieLinkWidth", {"pcie_bound_bytes_per_s"}),
        ("nvmlDeviceGetMemoryInfo_v2", {"memory_used_bytes", "memory_total_bytes"}),
        ("nvmlDeviceGetEnforcedPowerLimit", {"power_limit_w"}),
    ],
)
def test_what_one_call_refuses_is_unknown_and_nothing_else_is(function: str, lost: set[str]) -> None:
    found, whole = seen(**{function: Refuses(NOT_SUPPORTED)}), seen()
    assert {name for name in CardSample.__slots__ if getattr(found, name) != getattr(whole, name)} == lost
    assert {getattr(found, name) for name in lost} == {None}


def test_an_older_driver_counts_nvlink_in_other_units() -> None:
    (card,) = watched(live(), kind=Older)
    found = card.sample()
    assert (found.nvlink_sent_bytes, found.nvlink_received_bytes) == (7 * 1024, 9 * 1024)


def test_a_process_whose_memory_is_not_told_is_unknown_and_not_zero() -> None:
    found = seen(nvmlDeviceGetComputeRunningProcesses_v3=[{"pid": 1 << 30, "used": (1 << 64) - 1}])
    assert found.processes == (Use(1 << 30, "", None),)


def test_power_comes_from_the_energy_counter_where_there_is_one() -> None:
    joules = iter([1_000, 1_000_000_000])
    (card,) = watched(live(nvmlDeviceGetTotalEnergyConsumption=lambda _: next(joules)))
    card.look()
    power = card.sample().power_w
    assert power is not None
    assert power != 512


def test_a_card_that_cannot_be_opened_is_told_with_its_number_alone() -> None:
    first, second = watched(live(), live(lost=True))
    second.look()
    assert second.sample() == CardSample(index=1)
    assert LOST, "the driver's status for it"
    first.look()
    assert first.sample().busy == 0.97


def test_an_interval_is_a_mean_over_several_looks() -> None:
    percent = iter([0, 100] * 50)
    cards = watched(live(nvmlDeviceGetUtilizationRates=lambda _: {"gpu": next(percent), "memory": 10}))
    begin = time.monotonic()
    (sample,) = next(intervals(cards, 0.4))
    assert sample.busy == 0.5
    assert time.monotonic() - begin >= 0.3


@contextmanager
def streaming(folder: Path, optional: Optional, *, wish: str = "") -> Iterator[Cards]:
    optional("a C compiler to build stand-ins for the driver's libraries", compiler())
    with Cards(interval_s=0.2, variables=build(folder) | {"FAKE_NVIDIA": wish}) as cards:
        yield cards


def settled(cards: Cards, limit_s: float = 20.0) -> bool:
    until = time.monotonic() + limit_s
    while not cards.settled and time.monotonic() < until:
        time.sleep(0.02)
    return cards.settled


def test_a_child_streams_what_a_real_library_says(tmp_path: Path, optional: Optional) -> None:
    with streaming(tmp_path, optional) as cards:
        assert settled(cards)
        found, why = cards.newest()
        assert why == ""
        assert [(card.index, card.memory_total_bytes) for card in found] == [(0, 96 * GIB), (1, 96 * GIB)]
        assert [card.busy for card in found] == [None, None], "this library does not tell"
        assert found[0].processes == (Use(4242, found[0].processes[0].name, 5 * GIB),)


def test_a_driver_that_never_answers_holds_nobody_and_its_child_ends(tmp_path: Path, optional: Optional) -> None:
    with streaming(tmp_path, optional, wish="hang-nvmlInit_v2") as cards:
        assert not settled(cards, limit_s=1.0)
        assert cards.newest() == ((), "")
        begin = time.monotonic()
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize(("wish", "why"), [("fail-nvmlInit_v2-18", "mismatch"), ("die-nvmlInit_v2", "ended")])
def test_a_driver_that_fails_or_falls_is_told_as_such(wish: str, why: str, tmp_path: Path, optional: Optional) -> None:
    with streaming(tmp_path, optional, wish=wish) as cards:
        assert settled(cards)
        found, told = cards.newest()
        assert found == ()
        assert why in told


def test_without_a_driver_the_loaders_own_words_say_so(tmp_path: Path) -> None:
    with Cards(interval_s=0.2, variables={"LD_LIBRARY_PATH": str(tmp_path)}) as cards:
        assert settled(cards)
        found, why = cards.newest()
    assert found == () or why == ""  # a machine with a driver has cards to tell of
    assert found or "libnvidia-ml" in why
