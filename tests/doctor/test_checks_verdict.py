from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casemate.doctor import sheet
from casemate.doctor.advice import advise
from casemate.doctor.checks.verdict import ESSENTIAL, judge, overall
from casemate.doctor.machine import Card, Driver, Machine, Package, Pair, Surroundings
from casemate.report import text
from doctor.boxes import BARE, BOX, around, driven, each, ids, wheels


def troubled() -> Iterator[tuple[str, Machine]]:
    """Machines that together reach most answers, each with its name."""
    yield "bare", BARE
    yield "whole", BOX
    yield "nothing known of cards", replace(BOX, cards=(Card(0, "A"), Card(1, "B")), pairs=())
    yield "nothing known around", replace(BOX, surroundings=Surroundings(), packages=())
    yield "nothing known of a driver", replace(BOX, driver=Driver())
    yield "no driver", replace(BOX, driver=None)
    yield "unnamed packages", replace(BOX, packages=(Package("vllm", "0.33.0"), Package("torch", "2.14.0")))
    yield (
        "ill",
        each(
            ecc_uncorrected=3,
            remapped_rows_failed=True,
            throttle=("hw_thermal_slowdown",),
            temperature_c=86,
            power_limit_w=300.0,
            pcie_width=4,
            persistence=False,
            compute_mode="prohibited",
            memory_used_bytes=50 << 30,
        ),
    )
    yield (
        "old",
        each(driven(cuda=(11, 4), cuinit=803, kernel_module="1.2", compat_libcuda="/x"), compute_capability=(6, 1)),
    )
    yield (
        "small",
        around(shm_total_bytes=64 << 20, memlock_bytes=65536, open_files=1024, container="docker", iommu=True),
    )
    yield "far apart", replace(BOX, pairs=(Pair(0, 1, "SYS", peer_access=False),))
    yield "cut", each(mig="1g.12gb")
    yield "parent", each(mig_parent=True)


@pytest.mark.parametrize("machine", [machine for _, machine in troubled()], ids=[name for name, _ in troubled()])
def test_every_check_says_what_was_found_and_how_to_verify_it_and_a_troubled_one_why_and_what_to_do(
    machine: Machine,
) -> None:
    checks = judge(machine, wheels())
    assert len({check.id for check in checks}) == len(checks)
    for check in checks:
        assert all((check.found, check.title, check.verify)), check
        assert "None" not in f"{check.found}{check.why}{check.remedy}", check
        assert (check.verdict == "ok") == (check.remedy == ""), check
        assert check.verdict == "ok" or check.why, check


def test_a_box_with_nothing_wrong_is_well() -> None:
    checks = judge(BOX, wheels())
    assert [check for check in checks if check.verdict != "ok"] == []
    assert overall(checks) == "ok"


def test_a_host_without_cards_gets_no_check_of_cards_and_is_well() -> None:
    assert ids(BARE) == {"cards.present", "limits.memory", "limits.open-files", "model.disk"}
    assert overall(judge(BARE, wheels())) == "ok"


@pytest.mark.parametrize("name", [field.name for field in fields(Card) if field.default is None])
def test_no_fact_that_a_card_does_not_tell_leaves_a_check_better_than_it_was(name: str) -> None:
    told = {check.id: check.verdict for check in judge(BOX, wheels())}
    blind = {check.id: check.verdict for check in judge(each(BOX, **{name: None}), wheels())}
    judged = {
        "memory_cuda_bytes", "multiprocessors", "device_id", "memory_clock_hz", "memory_bus_bits", "sm_clock_hz",
        "sm_clock_max_hz", "power_w", "nvlink_bytes_per_s", "numa_node",
    }  # fmt: skip
    assert (blind != told) == (name not in judged)
    assert all(verdict in ("ok", "unknown") for verdict in blind.values())


@pytest.mark.parametrize(
    "machine",
    [
        each(memory_total_bytes=None),
        each(compute_capability=None),
        driven(cuda=None),
        driven(cuinit=None),
        driven(version=""),
        replace(BARE, unknown=(("cards", "cuInit never came back"),)),
    ],
    ids=["memory", "capability", "cuda", "cuinit", "driver", "cards"],
)
def test_something_essential_that_is_unknown_is_never_called_well(machine: Machine) -> None:
    assert overall(judge(machine, wheels())) == "unknown"


def test_something_else_that_is_unknown_does_not_hide_that_the_rest_is_well() -> None:
    checks = judge(each(temperature_c=None), wheels())
    assert any(check.verdict == "unknown" for check in checks)
    assert overall(checks) == "ok"


def test_a_failure_counts_more_than_what_is_unknown_and_that_more_than_a_warning() -> None:
    blind = each(memory_total_bytes=None, persistence=False)
    assert overall(judge(blind, wheels())) == "unknown"
    assert overall(judge(around(blind, shm_total_bytes=1, shm_free_bytes=1), wheels())) == "fail"
    assert overall(judge(each(persistence=False), wheels())) == "warn"


@given(machine=st.from_type(Machine), wanted=st.booleans())
@settings(max_examples=60, deadline=None)
def test_whatever_a_recording_holds_is_judged_and_put_into_words(*, machine: Machine, wanted: bool) -> None:
    checks = judge(machine, wheels())
    advice = advise(machine, wheels()) if wanted else None
    assert text.render(sheet.document(machine, checks, advice=advice))
    assert len({check.id for check in checks}) == len(checks)


def test_what_is_essential_is_asked_of_every_box_with_cards() -> None:
    assert ids(BOX) >= ESSENTIAL
