"""Plans and refusals on boxes that are known to work, known to fail, or odd."""

from __future__ import annotations

from dataclasses import fields, replace
from importlib import resources
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casemate.doctor.machine import Card, Machine
from casemate.errors import UsageError
from casemate.plan.catalogue import chips, machine_of
from casemate.plan.decision import GIB, CardsPlan, Intent, Purpose, Refusal, Speculation
from casemate.plan.overhead import engine_total_bytes
from casemate.plan.planner import plan
from plan import shapes

CHIPS = chips(resources.files("casemate.plan").joinpath("cards.tsv").read_text("utf-8"))
LONG = Intent(context=131072, concurrency=2)
SHORT = Intent(context=4096, concurrency=2)


def decide(
    gpus: str | Machine, config: dict[str, Any], *, intent: Intent = SHORT, version: str = "0.33.0"
) -> CardsPlan | Refusal:
    machine = machine_of(gpus, CHIPS) if isinstance(gpus, str) else gpus
    return plan(machine, shapes.read(config), intent=intent, engine_version=version)


def planned(
    gpus: str | Machine, config: dict[str, Any], *, intent: Intent = SHORT, version: str = "0.33.0"
) -> CardsPlan:
    found = decide(gpus, config, intent=intent, version=version)
    assert isinstance(found, CardsPlan), found
    return found


def refused(gpus: str | Machine, config: dict[str, Any], *, intent: Intent = SHORT, version: str = "0.33.0") -> Refusal:
    found = decide(gpus, config, intent=intent, version=version)
    assert isinstance(found, Refusal), found
    assert found.reasons
    assert found.remedy
    return found


@pytest.mark.parametrize(
    "gpus", ["2xH20-96GB", "2xRTX PRO 6000", "2xGH200-96GB", "4xH100", "2xH200", "8xH20-96GB", "2xH100-NVL"]
)
@pytest.mark.parametrize("config", [shapes.V4, shapes.V4_DSPARK], ids=["preview", "0731"])
@pytest.mark.parametrize("version", ["0.26.0", "0.33.0"])
def test_deepseek_v4_flash_runs_on_boxes_that_are_known_to_run_it(
    gpus: str, config: dict[str, Any], version: str
) -> None:
    found = planned(gpus, config, intent=LONG, version=version)
    assert found.tensor_parallel >= 2
    assert found.pipeline_parallel == 1
    assert found.expert_parallel
    assert (found.kv_cache_dtype, found.block_size, found.enforce_eager) == ("fp8", 256, False)
    assert found.max_model_len == 131072
    assert found.full_length_requests >= 2
    assert found.kv_gib > found.start_gib + 0.9


def test_two_h20_take_fewer_batched_tokens_than_the_default_that_limits_them() -> None:
    found = planned("2xH20-96GB", shapes.V4_DSPARK, intent=LONG, version="0.26.0")
    assert 2048 <= found.max_num_batched_tokens < 8192
    assert "8192" in dict(found.reasons)["max_num_batched_tokens"]


def test_two_h20_reach_the_whole_context_for_one_request() -> None:
    assert planned("2xH20-96GB", shapes.V4, intent=Intent(context=1 << 20, concurrency=1)).max_model_len == 1 << 20
    assert planned("2xH20-96GB", shapes.V4, intent=Intent(context=0, concurrency=1)).max_model_len == 1 << 20


def test_a_draft_that_leaves_little_room_stays_off_and_the_limit_with_it_is_told() -> None:
    tight = planned("2xH20-96GB", shapes.V4_DSPARK, intent=LONG)
    assert tight.speculation is None
    assert "tokens are the longest" in dict(tight.reasons)["speculation"]
    wide = planned("2xH200", shapes.V4_DSPARK, intent=LONG)
    assert wide.speculation == Speculation("dspark", 7)
    assert planned("2xH200", shapes.V4, intent=LONG).speculation == Speculation("mtp", 1)


def test_dspark_needs_a_version_that_has_it_and_refuses_stages() -> None:
    assert planned("2xH200", shapes.V4_DSPARK, version="0.24.0").speculation is None
    staged = planned("3xH100", shapes.V4_DSPARK)
    assert (staged.pipeline_parallel, staged.speculation) == (3, None)
    assert "vllm#52761" in dict(staged.reasons)["speculation"]


@pytest.mark.parametrize(
    ("gpus", "config", "words"),
    [
        ("1xH200", shapes.V4, ["14", "2 such cards"]),
        ("2xH100", shapes.V4, ["GiB are missing per card", "4 such cards (3 cards do not divide 64 attention heads)"]),
        ("2xA100-80GB", shapes.V4, ["sm_80", "sm_90"]),
        ("8xL40S", shapes.V4, ["sm_89", "fork"]),
        ("2xRTX PRO 6000", shapes.QWEN3_235B_FP8, ["GiB of weights", "such cards"]),
        ("1xT4", shapes.LLAMA_8B, ["missing"]),
    ],
)
def test_what_is_known_to_fail_is_refused_with_numbers_and_a_way_out(
    gpus: str, config: dict[str, Any], words: list[str]
) -> None:
    found = refused(gpus, config)
    told = " ".join((*found.reasons, found.remedy))
    assert not [word for word in words if word not in told], told


@pytest.mark.parametrize(
    ("gpus", "config", "tensor"),
    [
        ("4xL40S", shapes.GPTQ_70B, 2),
        ("8xH100", shapes.LLAMA_8B, 1),
        ("1x4090", shapes.LLAMA_8B, 1),
        ("4xRTX PRO 6000", shapes.QWEN3_235B_FP8, 4),
        ("1xH100", shapes.GPT_OSS_120B, 1),
        ("8xH200", shapes.V3, 8),
        ("2xH200", shapes.QWEN3_NEXT, 2),
    ],
)
def test_the_fewest_cards_with_room_for_a_cache_are_taken(gpus: str, config: dict[str, Any], tensor: int) -> None:
    found = planned(gpus, config)
    assert (found.tensor_parallel, len(found.cards)) == (tensor, tensor)


def test_every_value_has_a_reason_of_one_line_under_its_own_name() -> None:
    found = planned("2xH20-96GB", shapes.V4, intent=LONG)
    names = {field.name for field in fields(CardsPlan)}
    told = dict(found.reasons)
    assert set(told) == names - {"engine", "engine_version", "model", "path", "speed", "reasons", "notes"}
    assert not [line for line in (*told.values(), *found.notes) if not line or "\n" in line]


@given(cap_gib=st.integers(78, 139))
@settings(max_examples=15, deadline=None)
def test_a_memory_cap_keeps_the_engine_under_it_on_the_real_card(cap_gib: int) -> None:
    found = decide("2xH200", shapes.V4, intent=replace(LONG, memory_cap_bytes=cap_gib * GIB))
    if isinstance(found, CardsPlan):
        total = engine_total_bytes(machine_of("1xH200", CHIPS).cards[0]) or 0
        assert found.gpu_memory_utilization * total <= 0.95 * cap_gib * GIB + 1
        assert found.kv_gib <= cap_gib - found.weights_gib


@given(first=st.integers(8, 200), more=st.integers(0, 100), context=st.sampled_from([0, 4096, 131072]))
@settings(max_examples=25, deadline=None)
def test_more_memory_never_turns_a_plan_into_a_refusal(first: int, more: int, context: int) -> None:
    def on(gib: int) -> CardsPlan | Refusal:
        card = replace(machine_of("1xH100", CHIPS).cards[0], memory_total_bytes=gib * GIB)
        return decide(replace(machine_of("1xH100", CHIPS), cards=(card,)), shapes.LLAMA_8B, intent=Intent(context, 2))

    smaller, larger = on(first), on(first + more)
    assert isinstance(larger, CardsPlan) or isinstance(smaller, Refusal)
    for found in (smaller, larger):
        assert isinstance(found, Refusal) or found.start_gib <= found.kv_gib


def test_a_card_that_others_use_is_planned_for_what_is_free() -> None:
    machine = machine_of("1xL40S", CHIPS)
    busy = replace(machine, cards=(replace(machine.cards[0], memory_used_bytes=16 * GIB),))
    assert planned(busy, shapes.LLAMA_8B).gpu_memory_utilization < 0.65
    assert "free the memory" in refused(busy, shapes.LLAMA_8B, intent=Intent(131072, 4)).remedy


def test_an_fp8_cache_is_taken_only_where_an_asked_context_needs_it_and_cards_have_fp8() -> None:
    assert planned("1xL4", shapes.LLAMA_8B).kv_cache_dtype == "auto"
    needing = planned("1xL4", shapes.LLAMA_8B, intent=Intent(48000, 1))
    assert needing.kv_cache_dtype == "fp8"
    assert any("accuracy" in note for note in needing.notes)
    refused("1xA10", shapes.LLAMA_8B, intent=Intent(48000, 1))


def test_a_context_beyond_the_models_is_cut_to_it_and_told() -> None:
    found = planned("1xH200", shapes.QWEN2_7B, intent=Intent(1 << 20, 1))
    assert found.max_model_len == 32768
    assert "32,768" in dict(found.reasons)["max_model_len"]


def test_purposes_ask_for_more_requests_at_once() -> None:
    seqs = [
        planned("1xH100", shapes.LLAMA_8B, intent=Intent(8192, 4, purpose=purpose)).max_num_seqs
        for purpose in (Purpose.CHAT, Purpose.AUDIT, Purpose.BATCH)
    ]
    assert seqs == sorted(set(seqs))


def test_several_hosts_are_stages_and_each_uses_its_own_cards() -> None:
    found = planned("4xH100", shapes.V4, intent=replace(LONG, nodes=2))
    assert (found.tensor_parallel, found.pipeline_parallel, found.nodes) == (4, 2, 2)
    assert found.cards == (0, 1, 2, 3)


@pytest.mark.parametrize(
    "change", [{"concurrency": 0}, {"context": -1}, {"nodes": 0}, {"memory_cap_bytes": 0}, {"memory_cap_bytes": GIB}]
)
def test_a_wish_that_cannot_mean_anything_is_refused(change: dict[str, Any]) -> None:
    refused("2xH200", shapes.LLAMA_8B, intent=replace(LONG, **change))


def test_a_machine_without_a_usable_card_is_refused_with_each_reason() -> None:
    bare = replace(machine_of("1xH100", CHIPS), cards=(), pairs=())
    assert "no card" in refused(bare, shapes.LLAMA_8B).reasons[0]
    unknown = replace(bare, cards=(Card(0, "NVIDIA H200", compute_capability=(9, 0)),))
    assert "memory" in refused(unknown, shapes.LLAMA_8B).reasons[0]


def test_deepseek_v4_on_sm_120_says_that_public_runs_used_a_fork() -> None:
    assert any("fork" in note for note in planned("2xRTX PRO 6000", shapes.V4, intent=LONG).notes)


def test_humming_is_left_to_the_engine_that_has_it() -> None:
    for version, word in (("0.33.0", "Humming on sm_90 by itself"), ("0.26.0", "0.32 or newer")):
        found = planned("2xH20-96GB", shapes.V4, intent=LONG, version=version)
        assert found.moe_backend == "auto"
        assert word in dict(found.reasons)["moe_backend"]


def test_a_version_that_is_none_is_wrong_usage() -> None:
    with pytest.raises(UsageError):
        decide("2xH200", shapes.V4, version="newest")
