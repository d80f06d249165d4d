"""Which cards are taken, and the layouts tried on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from casemate.checkpoint.facts import Checkpoint
from casemate.doctor.machine import Card, Machine, Pair, Surroundings
from casemate.plan.accounting import accounting
from casemate.plan.decision import GIB
from casemate.plan.launch import Layout
from casemate.plan.layout import Seats, divides, layouts, seated
from casemate.plan.overhead import engine_total_bytes
from plan import shapes

ENGINE = accounting("0.33.0")
LLAMA = shapes.read(shapes.LLAMA_8B)
V4 = shapes.read(shapes.V4)
CARD = Card(
    0, "a card", memory_total_bytes=97871 << 20, memory_used_bytes=0, compute_capability=(9, 0), multiprocessors=78
)


def box(*cards: Card, link: str = "NV18", switched: bool | None = None) -> Machine:
    numbered = tuple(replace(card, index=index) for index, card in enumerate(cards))
    pairs = tuple(Pair(a, b, link) for a in range(len(cards)) for b in range(a + 1, len(cards)))
    return Machine(
        32, 256 * GIB, 200 * GIB, 1000 * GIB, "Linux", "x86_64", numbered, pairs,
        surroundings=Surroundings(nvswitch=switched),
    )  # fmt: skip


def seats(machine: Machine, checkpoint: Checkpoint = LLAMA) -> Seats:
    return seated(machine, checkpoint, engine=ENGINE)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"mig_parent": True}, "MIG"),
        ({"compute_capability": None}, "capability"),
        ({"memory_total_bytes": None}, "memory"),
        ({"compute_mode": "prohibited"}, "compute mode"),
        ({"compute_capability": (6, 1)}, "older"),
    ],
)
def test_a_card_that_cannot_work_is_left_out_with_its_reason(change: dict[str, Any], why: str) -> None:
    found = seats(box(replace(CARD, **change), CARD))
    assert [seat.card.index for seat in found.seats] == [1]
    (line,) = found.left_out
    assert line.startswith("card 0: ")
    assert why in line


def test_the_smallest_of_mixed_cards_binds_and_the_larger_come_first() -> None:
    small = replace(CARD, memory_total_bytes=80 * GIB)
    found = seats(box(small, CARD))
    assert [seat.card.index for seat in found.seats] == [1, 0]
    assert found.smallest_bytes(2) == engine_total_bytes(small)
    assert found.smallest_bytes(1) == engine_total_bytes(CARD)


def test_cards_of_two_architectures_do_not_serve_together() -> None:
    other = replace(CARD, compute_capability=(8, 9), memory_total_bytes=24 * GIB)
    found = seats(box(other, CARD, CARD))
    assert [seat.card.index for seat in found.seats] == [1, 2]
    assert "kind" in found.left_out[0]


def test_what_others_hold_of_a_card_lowers_what_may_be_used() -> None:
    free, busy = seats(box(CARD)), seats(box(replace(CARD, memory_used_bytes=20 * GIB)))
    assert free.most_utilization(1) > 0.98
    assert busy.most_utilization(1) == pytest.approx(free.most_utilization(1) - 20 / 95.02, abs=0.01)


def test_cudas_own_total_is_taken_where_it_was_measured() -> None:
    recorded = replace(CARD, memory_total_bytes=143771 << 20)
    assert (engine_total_bytes(recorded) or 0) / GIB == pytest.approx(139.80, abs=0.1)
    assert engine_total_bytes(replace(recorded, memory_cuda_bytes=150109880320)) == 150109880320


@pytest.mark.parametrize(
    ("mib", "printed_gib"),
    [(81559, 79.19), (46068, 44.42), (97887, 95.01), (143771, 139.8), (183359, 178.35), (275040, 267.69)],
)
def test_the_engine_sees_a_little_less_than_the_driver_reports(mib: int, printed_gib: float) -> None:
    total = engine_total_bytes(replace(CARD, memory_total_bytes=mib << 20))
    assert (total or 0) / GIB == pytest.approx(printed_gib, abs=0.35)


def test_unified_memory_is_the_hosts() -> None:
    spark = replace(CARD, memory_total_bytes=None, unified=True, compute_capability=(12, 1))
    (seat,) = seats(box(spark)).seats
    assert (seat.total_bytes, seat.used_bytes) == (256 * GIB, 56 * GIB)


def test_nvswitch_multicast_counts_unless_a_variable_turns_it_off() -> None:
    machine = box(CARD, CARD, switched=True)
    assert seats(machine).multicast
    assert not seats(box(CARD, CARD, switched=True, link="PHB")).multicast
    off = replace(machine.surroundings, variables=(("NCCL_NVLS_ENABLE", "0"),))
    assert not seats(replace(machine, surroundings=off)).multicast


def test_ranks_alone_come_before_stages_and_few_cards_before_many() -> None:
    found = layouts(LLAMA, seats(box(*[CARD] * 4)), nodes=1, engine=ENGINE)
    assert [(layout.tensor, layout.pipeline) for layout in found] == [
        (1, 1),
        (2, 1),
        (4, 1),
        (1, 2),
        (1, 3),
        (2, 2),
        (1, 4),
    ]


def test_experts_are_dealt_out_where_several_ranks_hold_them() -> None:
    found = layouts(V4, seats(box(CARD, CARD), V4), nodes=1, engine=ENGINE)
    assert [(layout.tensor, layout.expert) for layout in found if layout.pipeline == 1] == [(1, False), (2, True)]


def test_slices_of_a_card_serve_alone() -> None:
    slices = [replace(CARD, mig="3g.40gb", memory_total_bytes=40 * GIB)] * 2
    assert layouts(LLAMA, seats(box(*slices)), nodes=1, engine=ENGINE) == (Layout(),)


def test_several_hosts_are_stages_of_the_widest_ranks() -> None:
    found = layouts(LLAMA, seats(box(*[CARD] * 4)), nodes=2, engine=ENGINE)
    assert [(layout.tensor, layout.pipeline) for layout in found] == [(4, 2), (2, 2), (1, 2)]


@pytest.mark.parametrize(
    ("config", "tensor", "why"),
    [
        (shapes.V4, 3, "64 attention heads"),
        (shapes.QWEN2_7B, 8, "28 attention heads"),
        ({**shapes.LLAMA_8B, "num_attention_heads": 24, "num_key_value_heads": 8, "head_dim": 128}, 6, "8 key heads"),
        ({**shapes.LLAMA_8B, "intermediate_size": 11008, "quantization_config": shapes.FP8}, 4, "whole blocks of 128"),
    ],
)
def test_numbers_of_ranks_that_do_not_divide_are_named(config: dict[str, object], tensor: int, why: str) -> None:
    assert why in divides(shapes.read(config), tensor)


@pytest.mark.parametrize(("config", "tensor"), [(shapes.V4, 8), (shapes.LLAMA_8B, 16), (shapes.QWEN2_7B, 4)])
def test_numbers_of_ranks_that_divide_are_fine(config: dict[str, object], tensor: int) -> None:
    assert not divides(shapes.read(config), tensor)
