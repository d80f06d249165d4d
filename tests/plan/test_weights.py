"""Weights of a rank: nothing gets lost between ranks, and stages follow the engine's rule."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casemate.checkpoint.facts import Block
from casemate.plan.decision import GIB, Speculation
from casemate.plan.launch import Launch, Layout, stages
from casemate.plan.weights import expert_side, rank_bytes, stage_bytes
from plan import shapes

RANKS = st.sampled_from([1, 2, 4, 8])


def launched(layout: Layout, *, speculation: Speculation | None = None) -> Launch:
    return Launch(layout, 4096, 2048, 16, 0.9, speculation=speculation)


@given(st.integers(1, 200), st.integers(1, 16))
def test_stages_cover_every_layer_once_and_differ_by_one_layer_at_most(layers: int, pipeline: int) -> None:
    if pipeline > layers:
        return
    ranges = stages(layers, pipeline)
    assert [layer for stage in ranges for layer in stage] == list(range(layers))
    sizes = [len(stage) for stage in ranges]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("layers", "pipeline", "sizes"),
    [
        (43, 2, [22, 21]),
        (61, 4, [15, 15, 16, 15]),
        (80, 4, [20] * 4),
        (62, 4, [15, 16, 16, 15]),
        (63, 4, [16, 16, 16, 15]),
    ],
)
def test_left_over_layers_go_to_the_stages_before_the_last(layers: int, pipeline: int, sizes: list[int]) -> None:
    assert [len(stage) for stage in stages(layers, pipeline)] == sizes


@given(
    tensor=RANKS, data=RANKS, expert=st.booleans(), sharded=st.integers(0, 1 << 40), whole=st.integers(0, 1 << 30),
    experts=st.integers(0, 1 << 40),
)  # fmt: skip
@settings(max_examples=60)
def test_the_ranks_together_hold_at_least_everything(
    tensor: int, data: int, *, expert: bool, sharded: int, whole: int, experts: int
) -> None:
    block = Block(sharded_bytes=sharded, replicated_bytes=whole, expert_bytes=experts)
    layout = Layout(tensor=tensor, data=data, expert=expert)
    held = rank_bytes(block, layout, experts=256)
    assert held * tensor * data >= block.total_bytes - tensor * data
    assert held >= whole


def test_experts_that_do_not_come_out_even_make_one_rank_fuller() -> None:
    block = Block(expert_bytes=1000)
    assert rank_bytes(block, Layout(tensor=8, expert=True), experts=10) == 200
    assert rank_bytes(block, Layout(tensor=8), experts=10) == 125


def test_the_embedding_lies_on_the_first_stage_and_the_head_on_the_last() -> None:
    checkpoint = shapes.read(shapes.LLAMA_8B)
    first, middle, last = stage_bytes(checkpoint, launched(Layout(pipeline=3)))
    matrix = 128256 * 4096 * 2
    assert first > matrix
    assert last > matrix
    assert middle < first
    (whole,) = stage_bytes(checkpoint, launched(Layout()))
    assert first + middle + last == pytest.approx(whole, rel=0.01)


def test_a_tied_head_is_there_twice_only_where_stages_part_it_from_the_embedding() -> None:
    tied = shapes.read({**shapes.LLAMA_8B, "tie_word_embeddings": True})
    (whole,) = stage_bytes(tied, launched(Layout()))
    assert whole == pytest.approx(tied.weights_bytes, rel=0.01)
    assert sum(stage_bytes(tied, launched(Layout(pipeline=2)))) > whole + 128256 * 4096


def test_a_draft_is_loaded_only_where_speculation_is_on() -> None:
    checkpoint = shapes.read(shapes.V4_DSPARK)
    layout = Layout(tensor=2, expert=True)
    (without,) = stage_bytes(checkpoint, launched(layout))
    (with_it,) = stage_bytes(checkpoint, launched(layout, speculation=Speculation("dspark", 7)))
    assert (with_it - without) / GIB == pytest.approx(5.1, abs=0.2)


def test_fp4_experts_grow_to_the_sides_that_their_kernels_take() -> None:
    oss = shapes.read(shapes.GPT_OSS_120B)
    assert expert_side(oss) == pytest.approx(2880, abs=4)
    (alone,) = stage_bytes(oss, launched(Layout()))
    assert alone / GIB == pytest.approx(65.97, abs=0.2)
    assert alone > oss.weights_bytes * 1.05


def test_the_width_of_an_expert_is_not_that_of_the_dense_layers_before_it() -> None:
    assert expert_side(shapes.read(shapes.V3)) == 2048
    assert expert_side(shapes.read(shapes.LLAMA_8B)) == 0
