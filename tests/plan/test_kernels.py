"""What a card's architecture and a release forbid: drafts on stages, float16, FP4; what unified memory gives."""

from __future__ import annotations

from dataclasses import replace
from importlib import resources
from typing import Any

import pytest

from casemate.plan.accounting import accounting
from casemate.plan.catalogue import chips, machine_of
from casemate.plan.kernels import draft_obstacle, half_dtype, obstacle, remarks
from casemate.plan.layout import seated
from casemate.plan.overhead import engine_total_bytes
from plan import shapes

ENGINE = accounting("0.33.0")
OLD = accounting("0.26.0")
CHIPS = chips(resources.files("casemate.plan").joinpath("cards.tsv").read_text("utf-8"))
NVFP4 = {"quant_method": "modelopt", "quant_algo": "NVFP4"}
GLM4 = {**shapes.LLAMA_8B, "architectures": ["Glm4ForCausalLM"], "model_type": "glm4"}
GLM_AIR: dict[str, Any] = {
    "architectures": ["Glm4MoeForCausalLM"], "model_type": "glm4_moe", "torch_dtype": "bfloat16", "hidden_size": 4096,
    "num_hidden_layers": 46, "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128,
    "intermediate_size": 10944, "moe_intermediate_size": 1408, "n_routed_experts": 128, "n_shared_experts": 1,
    "num_experts_per_tok": 8, "first_k_dense_replace": 1, "vocab_size": 151552, "max_position_embeddings": 131072,
    "num_nextn_predict_layers": 1, "attention_bias": True, "tie_word_embeddings": False,
}  # fmt: skip


def told(config: dict[str, Any], capability: tuple[int, int]) -> str:
    return "\n".join(remarks(shapes.read(config), capability, engine=ENGINE))


@pytest.mark.parametrize("config", [shapes.V4, GLM_AIR], ids=["deepseek_v4", "glm4_moe"])
def test_a_draft_whose_class_has_no_stages_is_barred_on_them(config: dict[str, Any]) -> None:
    checkpoint = shapes.read(config)
    assert checkpoint.draft is not None
    assert "pipeline stages" in draft_obstacle(checkpoint, engine=ENGINE, pipeline=2)
    assert not draft_obstacle(checkpoint, engine=ENGINE, pipeline=1)


def test_a_draft_whose_class_got_stages_may_have_them_since_that_release() -> None:
    checkpoint = shapes.read({**shapes.V3, "num_nextn_predict_layers": 1})
    assert checkpoint.draft is not None
    assert "pipeline stages" in draft_obstacle(checkpoint, engine=OLD, pipeline=2)
    assert not draft_obstacle(checkpoint, engine=ENGINE, pipeline=2)


@pytest.mark.parametrize("model_type", ["glm4", "gemma2", "gemma3_text", "gemma3"])
def test_models_without_float16_are_refused_where_there_is_no_bfloat16(model_type: str) -> None:
    checkpoint = replace(shapes.read(GLM4), model_type=model_type)
    assert "float16" in obstacle(checkpoint, (7, 5), engine=ENGINE)
    assert not obstacle(checkpoint, (8, 0), engine=ENGINE)


def test_other_bfloat16_models_are_started_in_half_there() -> None:
    llama = shapes.read(shapes.LLAMA_8B)
    assert not obstacle(llama, (7, 5), engine=ENGINE)
    assert half_dtype(llama, (7, 5)) == "half"
    assert not half_dtype(llama, (8, 0))
    assert not half_dtype(shapes.read(shapes.GPTQ_70B), (7, 5))


def test_nvfp4_counts_as_fp4_whatever_its_method_is_called() -> None:
    config = {**shapes.LLAMA_8B, "quantization_config": NVFP4}
    assert shapes.read(config).fp4
    assert "FP4 arithmetic" in told(config, (9, 0))
    assert "FP4 arithmetic" not in told(config, (10, 0))
    assert "FP4 weights need sm_80" in obstacle(shapes.read(config), (7, 5), engine=ENGINE)
    assert not shapes.read({**shapes.LLAMA_8B, "quantization_config": {**NVFP4, "quant_algo": "FP8"}}).fp4


def test_a_window_that_nothing_tells_is_said_to_be_a_guess() -> None:
    without = {key: value for key, value in shapes.LLAMA_8B.items() if key != "max_position_embeddings"}
    assert "guess" in told(without, (9, 0))
    assert "guess" not in told(shapes.LLAMA_8B, (9, 0))


def test_unified_memory_gives_no_more_than_its_share_of_what_is_free() -> None:
    machine = machine_of("GB10", CHIPS)
    (card,) = machine.cards
    assert card.unified
    assert engine_total_bytes(card) == card.memory_total_bytes
    llama = shapes.read(shapes.LLAMA_8B)
    assert seated(machine, llama, engine=ENGINE).most_utilization(1) == pytest.approx(0.85)
    busy = replace(machine, memory_available_bytes=machine.memory_total_bytes // 2)
    assert seated(busy, llama, engine=ENGINE).most_utilization(1) < 0.45
    measured = replace(busy, cards=(replace(card, memory_total_bytes=None),))
    assert seated(measured, llama, engine=ENGINE).most_utilization(1) == pytest.approx(0.425)


def test_several_gb10_are_told_to_be_several_hosts() -> None:
    assert "host of its own" in told(shapes.LLAMA_8B, (12, 1))
    assert "0.85" in told(shapes.LLAMA_8B, (12, 1))
    assert "host of its own" not in told(shapes.LLAMA_8B, (12, 0))


@pytest.mark.parametrize(
    ("typed", "has"), [("8xH100", True), ("8xH200", True), ("8xB200", True), ("8xA100-80GB", False), ("8xA800", False)]
)
def test_multicast_through_the_switch_is_counted_from_hopper_on(typed: str, *, has: bool) -> None:
    found = seated(machine_of(typed, CHIPS), shapes.read(shapes.LLAMA_8B), engine=ENGINE)
    assert found.multicast is has
    assert found.linked
