"""Numbers of ranks that an engine refuses: groups, heads and blocks of scales that do not divide."""

from __future__ import annotations

from typing import Any

import pytest

from casemate.checkpoint.facts import Recurrent
from casemate.plan.accounting import accounting
from casemate.plan.layout import divides
from plan import shapes

AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128}
PACKED = {
    "quant_method": "compressed-tensors",
    "format": "pack-quantized",
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": True},
        }
    },
    "ignore": ["lm_head"],
}
QWEN_14B = {
    **shapes.dense(5120, 48, heads=(40, 8), feed_forward=13824, vocabulary=152064),
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2",
}  # fmt: skip
QWEN3_NEXT: dict[str, Any] = {
    "architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next", "torch_dtype": "bfloat16",
    "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256,
    "intermediate_size": 5120, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
    "num_experts": 512, "num_experts_per_tok": 10, "vocab_size": 151936, "max_position_embeddings": 262144,
    "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
    "tie_word_embeddings": False,
}  # fmt: skip
MAMBA_2: dict[str, Any] = {
    "architectures": ["Mamba2ForCausalLM"], "model_type": "mamba2", "torch_dtype": "bfloat16", "hidden_size": 4096,
    "num_hidden_layers": 64, "num_heads": 128, "head_dim": 64, "n_groups": 2, "state_size": 128, "conv_kernel": 4,
    "vocab_size": 32768, "intermediate_size": 8192,
}  # fmt: skip


def why(config: dict[str, Any], tensor: int, version: str = "0.33.0") -> str:
    return divides(shapes.read(config), tensor, engine=accounting(version))


@pytest.mark.parametrize("quantization", [AWQ, GPTQ, PACKED], ids=["awq", "gptq", "compressed-tensors"])
def test_a_slice_that_ends_inside_a_group_of_int4_is_refused(quantization: dict[str, Any]) -> None:
    config = {**QWEN_14B, "quantization_config": quantization}
    assert "do not divide 13824 (mlp.down_proj" in why(config, 8)
    assert "whole blocks of 128" in why(config, 8)
    assert not why(config, 4)
    assert not why(QWEN_14B, 8)


def test_the_output_of_attention_is_cut_in_whole_groups_too() -> None:
    config = {**shapes.dense(3072, 8, heads=(24, 8), feed_forward=8192, vocabulary=32000), "head_dim": 64}
    assert "1536 (self_attn.o_proj" in why({**config, "quantization_config": AWQ}, 8)


def test_one_scale_a_row_leaves_every_cut_free() -> None:
    assert not why({**QWEN_14B, "quantization_config": {**GPTQ, "group_size": -1}}, 8)
    assert not why({**QWEN_14B, "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic"}}, 8)
    blocks = {"quant_method": "bitsandbytes", "load_in_4bit": True}
    assert not why({**QWEN_14B, "quantization_config": blocks}, 8)


def test_a_layer_that_is_not_quantised_is_cut_freely() -> None:
    left_out = {**AWQ, "modules_to_not_convert": ["down_proj"]}
    assert not why({**QWEN_14B, "quantization_config": left_out}, 8)


def test_a_shared_expert_is_cut_in_whole_blocks_though_routed_ones_are_dealt_out() -> None:
    config = {**QWEN3_NEXT, "quantization_config": shapes.FP8}
    assert "512 (mlp.shared_expert.down_proj" in why(config, 8)
    assert not why(config, 4)
    assert not why(QWEN3_NEXT, 8)


def test_routed_experts_that_ranks_cannot_share_out_are_cut_in_whole_blocks_until_the_engine_refines_them() -> None:
    config = {**shapes.QWEN3_235B_FP8, "num_experts": 126, "moe_intermediate_size": 1536}
    assert "1536 (mlp.experts.down_proj" in why(config, 4 * 2, "0.26.0")
    assert not why(config, 8, "0.33.0")
    assert not why(shapes.QWEN3_235B_FP8, 8, "0.26.0")


def test_a_projection_of_latents_to_heads_is_cut_in_whole_blocks() -> None:
    config = {
        **shapes.V3, "num_attention_heads": 20, "qk_nope_head_dim": 192, "v_head_dim": 256, "quantization_config":
        shapes.FP8,
    }  # fmt: skip
    assert "8960 (self_attn.kv_b_proj" in why(config, 4)
    assert not why(config, 2)


def test_ranks_must_divide_the_groups_of_mamba_2_but_copy_a_single_one() -> None:
    assert "2 groups" in why(MAMBA_2, 4)
    assert not why(MAMBA_2, 2)
    assert not why({**MAMBA_2, "n_groups": 1}, 8)
    assert not why({**MAMBA_2, "n_groups": 8}, 8)


def test_ranks_must_divide_the_heads_of_recurrent_layers() -> None:
    config = {**MAMBA_2, "n_groups": 1, "num_heads": 100, "num_attention_heads": 96}
    assert "100 heads of the recurrent layers" in why(config, 8)
    narrow = {**QWEN3_NEXT, "linear_num_key_heads": 4}
    assert "4 groups or key heads" in why(narrow, 8)


def test_lightning_attention_counts_its_full_layers_by_attn_type_list() -> None:
    config = {
        "architectures": ["MiniMaxText01ForCausalLM"], "model_type": "minimax_text_01", "torch_dtype": "bfloat16",
        "hidden_size": 6144, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
        "head_dim": 128, "intermediate_size": 9216, "num_local_experts": 32, "num_experts_per_tok": 2,
        "vocab_size": 200064, "max_position_embeddings": 10240000, "attn_type_list": [*[0] * 7, 1] * 10,
        "shared_intermediate_size": 0, "tie_word_embeddings": False,
    }  # fmt: skip
    found = shapes.read(config)
    grows, stays = found.caches
    assert (len(grows.layers), len(stays.layers)) == (10, 70)
    assert grows.layers[:2] == (7, 15)
    assert isinstance(stays, Recurrent)
    assert stays.state_numbers == 64 * 128 * 128
    # 456 billion parameters by the paper.
    numbers = sum(block.parameters + block.expert_parameters for block in (*found.layers, found.embedding, found.head))
    assert numbers == pytest.approx(456e9, rel=0.005)
    kinds = [*["linear_attention"] * 7, "full_attention"] * 10
    same = {key: value for key, value in config.items() if key != "attn_type_list"}
    assert shapes.read({**same, "model_type": "minimax", "layer_types": kinds}).caches == found.caches
