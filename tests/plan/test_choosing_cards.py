"""How many cards are taken, and how long a context that nobody asked for becomes."""

from __future__ import annotations

from dataclasses import replace
from importlib import resources
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casemate.checkpoint.facts import Checkpoint
from casemate.plan.catalogue import chips, machine_of
from casemate.plan.decision import GIB, CardsPlan, Intent, Purpose, Refusal
from casemate.plan.planner import plan
from plan import shapes

CHIPS = chips(resources.files("casemate.plan").joinpath("cards.tsv").read_text("utf-8"))
LLAMA_70B_FP8 = {**shapes.LLAMA_70B, "quantization_config": shapes.FP8}
LLAMA_405B_FP8 = {
    **shapes.dense(16384, 126, heads=(128, 8), feed_forward=53248, vocabulary=128256),
    "quantization_config": shapes.FP8,
}
MIXTRAL: dict[str, Any] = {
    **shapes.dense(4096, 32, heads=(32, 8), feed_forward=14336, vocabulary=32000),
    "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2,
    "max_position_embeddings": 32768,
}  # fmt: skip
LLAMA_14B = shapes.dense(5120, 40, heads=(40, 8), feed_forward=13824, vocabulary=128256)
OPEN = Intent(context=0, concurrency=2)
TARGET = 131072


def decided(gpus: str, config: dict[str, Any] | Checkpoint, intent: Intent = OPEN) -> CardsPlan | Refusal:
    checkpoint = config if isinstance(config, Checkpoint) else shapes.read(config)
    return plan(machine_of(gpus, CHIPS), checkpoint, intent=intent, engine_version="0.33.0")


def planned(gpus: str, config: dict[str, Any], intent: Intent = OPEN) -> CardsPlan:
    found = decided(gpus, config, intent)
    assert isinstance(found, CardsPlan), found
    return found


@pytest.mark.parametrize(
    ("gpus", "config"),
    [("2xH100", shapes.QWEN3_NEXT), ("6xH100", shapes.QWEN3_235B_FP8), ("4x3090", MIXTRAL), ("8xH20-96GB", shapes.V3)],
)
def test_without_an_asked_context_the_longest_that_fits_is_planned_instead_of_a_refusal(
    gpus: str, config: dict[str, Any]
) -> None:
    found = planned(gpus, config)
    assert found.max_model_len >= 2048
    assert found.full_length_requests >= 2
    assert found.start_gib <= found.kv_gib


@pytest.mark.parametrize("length", [1, 512, 2047, 3000])
def test_a_model_of_a_short_window_is_planned_with_all_of_it(length: int) -> None:
    found = planned("1xL4", {**shapes.QWEN2_7B, "max_position_embeddings": length})
    assert found.max_model_len == length


@pytest.mark.parametrize("gpus", ["8xH20-96GB", "8xH20-141GB", "8xB200", "8xH100"])
def test_cards_are_added_until_the_whole_window_is_reached(gpus: str) -> None:
    assert planned(gpus, LLAMA_70B_FP8).max_model_len == TARGET


def test_no_more_cards_are_taken_than_the_target_needs() -> None:
    assert len(planned("8xH100", shapes.LLAMA_8B).cards) == 1
    assert len(planned("8xH200", shapes.V4).cards) == 2


def test_what_more_cards_would_bring_and_what_stays_idle_is_told() -> None:
    found = planned("8xB200", shapes.LLAMA_8B)
    told = dict(found.reasons)["cards"]
    assert told.startswith("1: the fewest that hold 2 × 131,072 tokens; on 2 each would read ")
    assert any(note.startswith("7 more cards are free") for note in found.notes)
    assert "the fewest" not in dict(planned("1xL4", shapes.LLAMA_8B).reasons)["cards"]


def test_of_layouts_with_stages_the_one_with_fewest_is_taken_where_it_gives_a_good_context() -> None:
    found = planned("7xA100-80GB", LLAMA_405B_FP8, Intent(4096, 2))
    assert (found.tensor_parallel, found.pipeline_parallel) == (2, 3)


@given(
    config=st.sampled_from([shapes.LLAMA_8B, shapes.QWEN2_7B, LLAMA_14B, LLAMA_70B_FP8, shapes.GPT_OSS_120B]),
    gib=st.integers(16, 180),
    more=st.integers(0, 60),
    count=st.sampled_from([(1, 1), (1, 2), (1, 4), (2, 2), (2, 8), (4, 8)]),
    intent=st.builds(
        Intent, context=st.just(0), concurrency=st.sampled_from([1, 2, 16]), purpose=st.sampled_from(list(Purpose))
    ),
)
@settings(max_examples=30, deadline=None)
def test_more_memory_or_cards_never_shorten_what_is_planned(
    config: dict[str, Any], gib: int, more: int, count: tuple[int, int], intent: Intent
) -> None:
    def reach(cards: int, size: int) -> tuple[int, bool]:
        machine = machine_of(f"{cards}xH100", CHIPS)
        grown = tuple(replace(card, memory_total_bytes=size * GIB) for card in machine.cards)
        found = plan(replace(machine, cards=grown), shapes.read(config), intent=intent, engine_version="0.33.0")
        if isinstance(found, Refusal):
            return 0, False
        assert found.full_length_requests >= intent.concurrency
        # Stages give way to ranks that reach a good context; beyond the target cards are left for something else.
        return min(found.max_model_len, 32768 if found.pipeline_parallel > 1 else TARGET), found.pipeline_parallel > 1

    (smaller, staged), (larger, _) = reach(count[0], gib), reach(count[1], gib + more)
    assert larger >= min(smaller, 32768) if staged else larger >= min(smaller, TARGET)


def test_an_fp8_cache_is_never_chosen_for_a_draft() -> None:
    for gib in (106, 112, 118):
        machine = machine_of("8xH100", CHIPS)
        cards = tuple(replace(card, memory_total_bytes=gib * GIB) for card in machine.cards)
        found = plan(replace(machine, cards=cards), shapes.read(shapes.V3), intent=OPEN, engine_version="0.33.0")
        assert isinstance(found, Refusal) or found.kv_cache_dtype == "auto"


@pytest.mark.parametrize("intent", [OPEN, Intent(131072, 2), Intent(1048576, 1)])
def test_a_draft_that_is_off_has_its_longest_context_told_and_asking_is_said_only_where_it_was(intent: Intent) -> None:
    found = planned("2xH20-96GB", shapes.V4_DSPARK, intent)
    told = dict(found.reasons)["speculation"]
    assert found.speculation is None
    assert "with its draft" in told
    assert "tokens are the longest" in told
    assert intent.context or "asked" not in told


def test_two_kinds_of_cards_serve_together_where_neither_alone_does_and_a_note_warns() -> None:
    found = planned("1x4090,1x3090", LLAMA_14B)
    assert (found.tensor_parallel, found.cards) == (2, (0, 1))
    assert any("different architectures" in note for note in found.notes)
    alone = planned("1x4090,1x3090", shapes.LLAMA_8B)
    assert len(alone.cards) == 1
    assert isinstance(decided("1xH200,1xA100-80GB", shapes.V4), Refusal)


def test_alike_cards_are_named_where_there_are_others() -> None:
    found = decided("1x4090,1x3090", shapes.LLAMA_70B)
    assert isinstance(found, Refusal)
    assert "8 alike cards" in found.remedy
