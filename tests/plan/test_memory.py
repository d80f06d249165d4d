"""The budget of a rank: its parts add up, and move the way they must."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casemate.plan.accounting import accounting
from casemate.plan.decision import GIB, Speculation
from casemate.plan.launch import Launch, Layout
from casemate.plan.memory import Budget, budget
from plan import shapes

V4 = shapes.read(shapes.V4)
LAUNCH = Launch(Layout(tensor=2, expert=True), 131072, 2048, 16, 0.95, "fp8", 256, capture=32)


def found(
    launch: Launch = LAUNCH, *, card_gib: float = 95.02, version: str = "0.33.0", multicast: bool = True
) -> Budget:
    return budget(V4, launch, card_bytes=int(card_gib * GIB), engine=accounting(version), multicast=multicast)


def test_the_parts_add_up_to_the_share_of_the_card() -> None:
    got = found()
    parts = got.weights_bytes + got.activation_bytes + got.graphs_bytes + got.other_bytes + got.kv_bytes
    assert parts == pytest.approx(95.02 * GIB * 0.95, abs=16)


def test_a_model_larger_than_its_cards_has_less_than_no_cache() -> None:
    got = found(replace(LAUNCH, layout=Layout()))
    assert got.kv_bytes < 0
    assert got.full_length_requests == 0
    assert got.spare_bytes < 0


def test_the_default_batched_tokens_limit_two_h20_and_fewer_do_not() -> None:
    drafted = replace(LAUNCH, speculation=Speculation("mtp", 1), capture=64, context=1 << 20)
    many, few = (found(replace(drafted, batched_tokens=batched), version="0.26.0") for batched in (8192, 2048))
    assert many.spare_bytes < 0 < few.spare_bytes
    assert few.longest(1 << 20) == 1 << 20


@given(more=st.integers(0, 64 * GIB))
@settings(max_examples=20, deadline=None)
def test_a_larger_card_gives_the_cache_more_and_nothing_else(more: int) -> None:
    small, large = (
        found(),
        budget(V4, LAUNCH, card_bytes=int(95.02 * GIB) + more, engine=accounting("0.33.0"), multicast=True),
    )
    assert large.kv_bytes - small.kv_bytes == pytest.approx(more * 0.95, abs=4)
    assert large.weights_bytes == small.weights_bytes
    assert large.start_bytes == small.start_bytes


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"batched_tokens": 4096}, "activation_bytes"),
        ({"batched_tokens": 4096}, "start_bytes"),
        ({"context": 262144}, "activation_bytes"),
        ({"capture": 256, "sequences": 128}, "graphs_bytes"),
        ({"speculation": Speculation("mtp", 1)}, "weights_bytes"),
    ],
)
def test_more_of_anything_takes_more(change: dict[str, Any], part: str) -> None:
    assert getattr(found(replace(LAUNCH, **change)), part) > getattr(found(), part)


def test_graphs_are_set_aside_by_the_engine_since_0_20_and_taken_by_nobody_when_off() -> None:
    assert found(version="0.19.0").graphs_bytes == 0 < found(version="0.19.0").graphs_real_bytes
    assert found().graphs_bytes > found().graphs_real_bytes
    assert found(replace(LAUNCH, capture=0)).graphs_real_bytes == 0


def test_many_sequences_of_a_large_vocabulary_are_what_costs_at_sampling() -> None:
    llama = shapes.read(shapes.LLAMA_8B)
    launch = Launch(Layout(), 8192, 2048, 16, 0.9)
    few, many = (
        budget(llama, replace(launch, sequences=rows), card_bytes=80 * GIB, engine=accounting("0.20.0"))
        for rows in (16, 1024)
    )
    assert few.activation_bytes < GIB // 2
    assert many.activation_bytes == 1024 * 128256 * 16


def test_the_fullest_stage_decides() -> None:
    staged = Launch(Layout(pipeline=2), 32768, 4096, 16, 0.65, "fp8", 256)
    got = budget(V4, staged, card_bytes=int(139.8 * GIB), engine=accounting("0.26.0"))
    assert got.weights_bytes / GIB == pytest.approx(74.87, abs=0.05)


def test_a_model_that_takes_pictures_keeps_memory_for_the_largest() -> None:
    plain = shapes.read(shapes.LLAMA_8B)
    seeing = replace(plain, vision=replace(plain.embedding))
    launch = Launch(Layout(), 8192, 2048, 16, 0.9)
    with_it, without = (
        budget(model, launch, card_bytes=80 * GIB, engine=accounting("0.33.0")).activation_bytes
        for model in (seeing, plain)
    )
    assert with_it > without + GIB
