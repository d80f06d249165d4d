"""What a model's class assumes for keys that its config leaves out, and that the facts tell it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from casemate.checkpoint.config import checkpoint_from_config
from casemate.checkpoint.facts import Checkpoint, Latent

GEMMA_3: dict[str, Any] = {
    "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "torch_dtype": "bfloat16",
    "text_config": {
        "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024,
    },
}  # fmt: skip
V3_SPARSE: dict[str, Any] = {
    "model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 128,
    "num_key_value_heads": 128, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "fp8", "fmt": "e4m3"},
}  # fmt: skip


def read(config: dict[str, Any]) -> Checkpoint:
    return checkpoint_from_config(config, Path("/models/m"))


def test_gemma_3_has_its_types_window_where_its_config_tells_none_and_says_so() -> None:
    found = read(GEMMA_3)
    assert found.context_length == 131_072
    assert any("max_position_embeddings 131072" in note for note in found.notes)


def test_a_window_that_is_told_is_taken_and_needs_no_note() -> None:
    text = {**GEMMA_3["text_config"], "max_position_embeddings": 32768}
    found = read({**GEMMA_3, "text_config": text})
    assert found.context_length == 32768
    assert not any("left out" in note for note in found.notes)


def test_sizes_of_latent_attention_that_a_v3_config_leaves_out_are_its_types_and_told() -> None:
    found = read(V3_SPARSE)
    (cache,) = found.caches
    assert isinstance(cache, Latent)
    # 61 × (512 + 64) numbers of two bytes a token, on every rank.
    assert 2 * len(cache.layers) * (cache.latent_size + cache.rope_size) == 70_272
    assert any("qk_nope_head_dim 128" in note and "v_head_dim 128" in note for note in found.notes)
    # The released model: 671 billion parameters.
    blocks = (*found.layers, found.embedding, found.head)
    assert sum(block.parameters + block.expert_parameters for block in blocks) == pytest.approx(671e9, rel=0.001)


def test_a_size_that_is_set_to_null_is_told_and_not_left_out() -> None:
    direct = read({**V3_SPARSE, "q_lora_rank": None})
    assert direct.layers[0].parameters != read(V3_SPARSE).layers[0].parameters
    assert not any("q_lora_rank" in note for note in direct.notes)
