"""What cards and the links between them can do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from casemate.doctor.machine import Card, Machine, Pair
from casemate.plan.catalogue import machine_of
from casemate.plan.rates import Rates, rates
from plan.speeds import CHIPS

NVLINK, DIRECT, BY_HOST = ("NV18", True), ("PIX", True), ("SYS", False)
KNOWN = machine_of("2xRTX PRO 6000", CHIPS)


def of(machine: Machine, *, count: int | None = None, nodes: int = 1) -> Rates:
    found = rates(machine, tuple(range(count or len(machine.cards))), known=CHIPS, nodes=nodes)
    assert found is not None
    return found


def linked(machine: Machine, link: tuple[str, bool | None]) -> Machine:
    """The machine with every pair of cards joined so."""
    indices = [card.index for card in machine.cards]
    pairs = [Pair(first, second, link[0], link[1]) for first in indices for second in indices if first < second]
    return replace(machine, pairs=tuple(pairs))


def unknown(**changed: Any) -> Machine:
    """A card of no known kind, that tells clocks and bus."""
    card = Card(
        index=0, name="a card", memory_total_bytes=40 << 30, compute_capability=(8, 0), multiprocessors=100,
        sm_clock_max_hz=1_400_000_000, memory_clock_hz=1_500_000_000, memory_bus_bits=5120,
    )  # fmt: skip
    return replace(KNOWN, cards=(replace(card, **changed),), pairs=())


def test_a_known_card_has_the_rates_of_its_row() -> None:
    found = of(machine_of("1xH200", CHIPS))
    assert (found.bandwidth_bytes_per_s, found.bf16_flops, found.fp8_flops) == (4.8e12, 989e12, 1979e12)
    assert not found.bounded


def test_few_multiprocessors_cannot_ask_for_all_of_a_wide_memory() -> None:
    h20, h200 = of(machine_of("1xH20-96GB", CHIPS)), of(machine_of("1xH200", CHIPS))
    assert h20.reading_bytes_per_s == pytest.approx(78 * 20e9)
    assert h20.reading_bytes_per_s / h20.bandwidth_bytes_per_s < 0.4
    assert h200.reading_bytes_per_s < h200.reading_experts_bytes_per_s < h200.bandwidth_bytes_per_s


def test_blackwell_asks_for_more_than_hopper() -> None:
    assert of(machine_of("1xB200", CHIPS)).reading_bytes_per_s == pytest.approx(148 * 34e9)


def test_a_narrow_memory_is_read_at_a_share_of_its_bandwidth() -> None:
    found = of(machine_of("1x4090", CHIPS))
    assert found.reading_bytes_per_s == found.reading_experts_bytes_per_s == pytest.approx(0.82 * 1.008e12)


def test_an_unknown_card_is_bounded_by_clocks_and_bus() -> None:
    found = of(unknown())
    assert found.bounded
    assert found.bandwidth_bytes_per_s == 2 * 1.5e9 * 5120 / 8
    assert found.bf16_flops == pytest.approx(100 * 1.4e9 * 2048)
    assert found.fp8_flops == 0


def test_an_unknown_card_newer_than_the_table_counts_as_the_newest_known_before_it() -> None:
    found = of(unknown(compute_capability=(13, 0)))
    assert found.bf16_flops == pytest.approx(100 * 1.4e9 * 1024)
    assert found.fp8_flops == 2 * found.bf16_flops


@pytest.mark.parametrize(
    "missing", ["memory_clock_hz", "memory_bus_bits", "multiprocessors", "sm_clock_max_hz", "compute_capability"]
)
def test_nothing_is_said_of_a_card_that_tells_too_little(missing: str) -> None:
    assert rates(unknown(**{missing: None}), (0,), known=CHIPS) is None


def test_nothing_is_said_without_cards() -> None:
    assert rates(replace(KNOWN, cards=(), pairs=()), (0,), known=CHIPS) is None


def test_links_rank_by_kind() -> None:
    nvlink, direct, by_host = (of(linked(KNOWN, link)) for link in (NVLINK, DIRECT, BY_HOST))
    assert nvlink.link_s < direct.link_s < by_host.link_s
    assert direct.link_bytes_per_s > by_host.link_bytes_per_s


def test_nvlink_without_peer_access_goes_through_the_host() -> None:
    machine = machine_of("2xH200", CHIPS)
    blocked = of(linked(machine, ("NV18", False)))
    assert blocked.link_s == of(linked(machine, BY_HOST)).link_s


def test_one_slow_pair_slows_all() -> None:
    machine = linked(machine_of("4xA100-80GB", CHIPS), NVLINK)
    mixed = replace(machine, pairs=(*machine.pairs[:-1], Pair(2, 3, *BY_HOST)))
    assert of(mixed).link_s == of(linked(machine, BY_HOST)).link_s
    assert of(mixed, count=2).link_s == of(machine, count=2).link_s


def test_between_hosts_the_network_counts_not_nvlink() -> None:
    machine = machine_of("8xH100", CHIPS)
    one, two = of(machine), of(machine, nodes=2)
    assert two.link_bytes_per_s < one.link_bytes_per_s
    assert two.link_s > one.link_s


def test_mixed_cards_work_at_the_pace_of_the_slowest() -> None:
    fast, slow = machine_of("1xH100", CHIPS), machine_of("1xA100-80GB", CHIPS)
    both = replace(fast, cards=(fast.cards[0], replace(slow.cards[0], index=1)), pairs=(Pair(0, 1, *DIRECT),))
    assert of(both).bandwidth_bytes_per_s == of(slow).bandwidth_bytes_per_s
    assert of(both).fp8_flops == 0
