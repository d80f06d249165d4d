"""Cards by name, and measured cards without one."""

from __future__ import annotations

from dataclasses import replace
from importlib import resources

import pytest

from casemate.doctor.machine import Card
from casemate.errors import CasemateError, UsageError
from casemate.plan.catalogue import Chip, chip_of, chips, machine_of

MIB = 1 << 20
TABLE = resources.files("casemate.plan").joinpath("cards.tsv").read_text("utf-8")
CHIPS = chips(TABLE)


def measured(chip: Chip) -> Card:
    return Card(
        index=0,
        name="whatever the driver says",
        memory_total_bytes=chip.memory_bytes,
        compute_capability=chip.compute_capability,
        multiprocessors=chip.multiprocessors,
        device_id=chip.device_ids[-1],
    )


@pytest.mark.parametrize(
    ("typed", "count", "memory_mib", "capability"),
    [
        ("2xH20-96GB", 2, 97871, (9, 0)),
        ("1xA100-80GB", 1, 81920, (8, 0)),
        ("8xH100", 8, 81559, (9, 0)),
        ("2xRTX PRO 6000", 2, 97887, (12, 0)),
        ("4xL40S", 4, 46068, (8, 9)),
        ("1x4090", 1, 24564, (8, 9)),
        ("nvidia h200", 1, 143771, (9, 0)),
        (" 2 × h20-3e ", 2, 143771, (9, 0)),
        ("2*GH200 96GB", 2, 97871, (9, 0)),
    ],
)
def test_a_typed_card_has_the_memory_that_its_driver_reports(
    typed: str, count: int, memory_mib: int, capability: tuple[int, int]
) -> None:
    cards = machine_of(typed, CHIPS).cards
    assert [card.index for card in cards] == list(range(count))
    assert {(card.memory_total_bytes, card.compute_capability) for card in cards} == {(memory_mib * MIB, capability)}


def test_several_kinds_stand_with_a_comma_between_them() -> None:
    names = [card.name for card in machine_of("2xH100,1xL4", CHIPS).cards]
    assert names == ["H100-80GB", "H100-80GB", "L4"]


def test_cards_of_one_nvlink_board_reach_each_other_and_others_meet_on_pcie() -> None:
    assert {pair.link for pair in machine_of("3xH100", CHIPS).pairs} == {"NV"}
    assert {pair.link for pair in machine_of("2xL40S", CHIPS).pairs} == {"PHB"}
    assert {pair.link for pair in machine_of("1xH100,1xH200", CHIPS).pairs} == {"PHB"}


@pytest.mark.parametrize(
    "typed", ["2xH21", "0xH100", "65xL4", "999999xL4", "", "x", "2x", ",", "2xH100,", "-1xL4", "H100\x1b[31m"]
)
def test_what_names_no_cards_is_wrong_usage_and_never_shows_control_characters(typed: str) -> None:
    with pytest.raises(UsageError) as caught:
        machine_of(typed, CHIPS)
    assert caught.value.remedy
    assert "\x1b" not in str(caught.value)


def test_a_mistyped_card_gets_near_names() -> None:
    with pytest.raises(UsageError, match="H100"):
        machine_of("2xH10", CHIPS)


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_every_chip_is_recognised_by_what_is_measured_of_it(chip: Chip) -> None:
    assert chip_of(measured(chip), CHIPS) is chip


def test_a_name_decides_nothing() -> None:
    card = replace(measured(next(chip for chip in CHIPS if chip.name == "H20-96GB")), name="NVIDIA H100")
    found = chip_of(card, CHIPS)
    assert found is not None
    assert found.name == "H20-96GB"


def test_an_unknown_chip_is_none() -> None:
    assert (
        chip_of(Card(0, "x", compute_capability=(9, 0), multiprocessors=101, memory_total_bytes=90 << 30), CHIPS)
        is None
    )
    assert chip_of(Card(0, "NVIDIA H100"), CHIPS) is None


def test_rates_are_plausible_and_every_chip_names_its_source() -> None:
    for chip in CHIPS:
        assert 0.1e12 < chip.bandwidth_bytes_per_s < 10e12
        assert 10e12 < chip.bf16_flops < 3e15
        assert chip.fp8_flops == 0 or 1.5 < chip.fp8_flops / chip.bf16_flops < 2.5
        assert (chip.fp8_flops > 0) == (chip.compute_capability >= (8, 9))
        assert chip.source


def test_no_two_chips_share_a_name() -> None:
    owners: dict[str, set[str]] = {}
    for chip in CHIPS:
        for alias in (chip.name.lower(), *chip.aliases):
            owners.setdefault(alias.replace("-", ""), set()).add(chip.name)
    assert not [alias for alias, chips_ in owners.items() if len(chips_) > 1]


@pytest.mark.parametrize("damage", ["a\tb", "H100\th100\tmuch\t9.0\t1\t1\t1\t1\t1\t1\tyes\t5\tx"])
def test_a_damaged_table_is_an_error_of_ours(damage: str) -> None:
    with pytest.raises(CasemateError, match="damaged"):
        chips(f"head\n{damage}\n")
