"""Parameters that configs come to, against the counts that the hub reports of the published files.

Models of one data type alone, where the count is that of all tensors. Names are labels: only the config is read.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from casemate.checkpoint.config import checkpoint_from_config
from casemate.checkpoint.facts import Checkpoint
from checkpoint.configs import Config, dense

_TOWER = {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "patch_size": 14}


def _sized(config: Config, **more: object) -> Config:
    """None leaves a key out."""
    return {key: value for key, value in {**config, **more}.items() if value is not None}


def _glm(config: Config, **more: object) -> Config:
    shared = {"attention_bias": True, "head_dim": 128, "n_shared_experts": 1, "num_experts_per_tok": 8}
    return _sized(config, num_nextn_predict_layers=1, **shared, **more)


WHOLE: dict[str, tuple[Config, int]] = {
    "Llama 3.2 3B": (
        _sized(
            dense("llama", hidden=3072, inner=8192, layers=28, heads=(24, 8), words=128256),
            head_dim=128,
            tie_word_embeddings=True,
        ),
        3_212_749_824,
    ),
    "Mistral Nemo 12B": (
        _sized(dense("mistral", hidden=5120, inner=14336, layers=40, heads=(32, 8), words=131072), head_dim=128),
        12_247_782_400,
    ),
    "Qwen3 8B": (
        _sized(dense("qwen3", hidden=4096, inner=12288, layers=36, heads=(32, 8), words=151936), head_dim=128),
        8_190_735_360,
    ),
    "Qwen3 32B": (
        _sized(dense("qwen3", hidden=5120, inner=25600, layers=64, heads=(64, 8), words=151936), head_dim=128),
        32_762_123_264,
    ),
    "Gemma 2 9B": (
        _sized(
            dense("gemma2", hidden=3584, inner=14336, layers=42, heads=(16, 8), words=256000), tie_word_embeddings=None
        ),
        9_241_705_984,
    ),
    "Gemma 2 27B": (
        _sized(
            dense("gemma2", hidden=4608, inner=36864, layers=46, heads=(32, 16), words=256000),
            head_dim=128,
            tie_word_embeddings=None,
        ),
        27_227_128_320,
    ),
    "Phi 3 mini": (
        dense("phi3", hidden=3072, inner=8192, layers=32, heads=(32, 32), words=32064),
        3_821_079_552,
    ),
    "Phi 4": (dense("phi3", hidden=5120, inner=17920, layers=40, heads=(40, 10), words=100352), 14_659_507_200),
    "Phi 4 mini": (
        _sized(
            dense("phi3", hidden=3072, inner=8192, layers=32, heads=(24, 8), words=200064), tie_word_embeddings=True
        ),
        3_836_021_760,
    ),
    "GLM 4.5": (
        _glm(
            dense("glm4_moe", hidden=5120, inner=12288, layers=92, heads=(96, 8), words=151552),
            first_k_dense_replace=3,
            moe_intermediate_size=1536,
            n_routed_experts=160,
            use_qk_norm=True,
        ),
        358_337_791_296,
    ),
    "GLM 4.5 Air": (
        _glm(
            dense("glm4_moe", hidden=4096, inner=10944, layers=46, heads=(96, 8), words=151552),
            first_k_dense_replace=1,
            moe_intermediate_size=1408,
            n_routed_experts=128,
            use_qk_norm=False,
        ),
        110_468_824_832,
    ),
    "GLM 5.3, most of whose layers share an indexer": (
        _sized(
            dense("glm_moe_dsa", hidden=6144, inner=12288, layers=78, heads=(64, 64), words=154880),
            moe_intermediate_size=2048,
            n_routed_experts=256,
            n_shared_experts=1,
            num_experts_per_tok=8,
            first_k_dense_replace=3,
            kv_lora_rank=512,
            q_lora_rank=2048,
            qk_nope_head_dim=192,
            qk_rope_head_dim=64,
            v_head_dim=256,
            num_nextn_predict_layers=1,
            topk_method="noaux_tc",
            index_topk=2048,
            index_n_heads=32,
            index_head_dim=128,
            indexer_types=["full"] * 3 + ["shared" if n % 4 != 2 else "full" for n in range(3, 78)],
        ),
        753_329_940_480,
    ),
    "Qwen3-Next 80B-A3B": (
        _sized(
            dense("qwen3_next", hidden=2048, inner=5120, layers=48, heads=(16, 2), words=151936),
            head_dim=256,
            full_attention_interval=4,
            linear_key_head_dim=128,
            linear_num_key_heads=16,
            linear_num_value_heads=32,
            linear_value_head_dim=128,
            moe_intermediate_size=512,
            num_experts=512,
            num_experts_per_tok=10,
            shared_expert_intermediate_size=512,
        ),
        81_324_862_720,
    ),
    "Nemotron Nano 9B v2": (
        _sized(
            dense("nemotron_h", hidden=4480, inner=15680, layers=56, heads=(40, 8), words=131072),
            head_dim=128,
            hybrid_override_pattern="M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-",
            mamba_num_heads=128,
            mamba_head_dim=80,
            ssm_state_size=128,
            n_groups=8,
            conv_kernel=4,
        ),
        8_888_227_328,
    ),
    "Granite 4.0 H Small": (
        _sized(
            dense("granitemoehybrid", hidden=4096, inner=768, layers=40, heads=(32, 8), words=100352),
            tie_word_embeddings=True,
            num_local_experts=72,
            num_experts_per_tok=10,
            shared_intermediate_size=1536,
            layer_types=(["mamba"] * 5 + ["attention"] + ["mamba"] * 4) * 4,
            mamba_d_conv=4,
            mamba_d_head=64,
            mamba_d_state=128,
            mamba_n_groups=1,
            mamba_n_heads=128,
        ),
        32_207_337_984,
    ),
}

WITH_TOWER: dict[str, tuple[Config, int]] = {
    "Gemma 3 4B, whose config leaves out heads and vocabulary": (
        {
            "model_type": "gemma3",
            "torch_dtype": "bfloat16",
            "text_config": {
                "model_type": "gemma3_text",
                "hidden_size": 2560,
                "intermediate_size": 10240,
                "num_hidden_layers": 34,
                "sliding_window": 1024,
            },
            "vision_config": _TOWER,
        },
        4_300_079_472,
    ),
    "Mistral Small 3.2 24B": (
        {
            "model_type": "mistral3",
            "torch_dtype": "bfloat16",
            "text_config": _sized(
                dense("mistral", hidden=5120, inner=32768, layers=40, heads=(32, 8), words=131072), head_dim=128
            ),
            "vision_config": {
                "hidden_size": 1024,
                "intermediate_size": 4096,
                "num_hidden_layers": 24,
                "patch_size": 14,
                "hidden_act": "silu",
            },
        },
        24_011_361_280,
    ),
}


def parameters(config: Config) -> int:
    found: Checkpoint = checkpoint_from_config(config, Path("model"))
    draft = found.draft.blocks if found.draft else ()
    parts = (*found.layers, found.embedding, found.head, found.vision, *draft)
    return sum(block.parameters + block.expert_parameters for block in parts)


@pytest.mark.parametrize("name", WHOLE)
def test_a_config_comes_to_the_parameters_that_the_files_have(name: str) -> None:
    config, published = WHOLE[name]
    assert parameters(config) == published


@pytest.mark.parametrize("name", WITH_TOWER)
def test_an_estimated_tower_is_off_by_less_than_two_thousandths_of_the_model(name: str) -> None:
    config, published = WITH_TOWER[name]
    assert abs(parameters(config) - published) / published < 2e-3
