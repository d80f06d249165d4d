"""A small config of each family, quick to write out as tensors."""

from __future__ import annotations

from checkpoint.configs import FLASH_WITH_DRAFT, Config, dense

_MOE = {"moe_intermediate_size": 24, "num_experts_per_tok": 2}
_MAMBA_2 = {"mamba_n_heads": 4, "mamba_d_head": 32, "mamba_d_state": 16, "mamba_n_groups": 2, "mamba_d_conv": 4}
_NET = {
    "full_attention_interval": 2,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_value_head_dim": 8,
}
_LATENT = {
    "kv_lora_rank": 32,
    "q_lora_rank": 48,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "num_nextn_predict_layers": 1,
    **_MOE,
}
_GEMMA_4 = {
    "head_dim": 16,
    "global_head_dim": 32,
    "num_global_key_value_heads": 1,
    "attention_k_eq_v": True,
    "sliding_window": 64,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
}


def _small(model_type: str, **more: object) -> Config:
    """Four layers of width 64; None among `more` leaves a key out."""
    config = {**dense(model_type, hidden=64, inner=96, layers=4, heads=(4, 2), words=320), **more}
    return {key: value for key, value in config.items() if value is not None}


SMALL: dict[str, Config] = {
    "llama": _small("llama"),
    "llama with biases": _small("llama", attention_bias=True, mlp_bias=True),
    "mistral": _small("mistral", head_dim=32, sliding_window=128),
    "qwen2, tied": _small("qwen2", tie_word_embeddings=True),
    "qwen3": _small("qwen3", head_dim=32),
    "qwen2_moe": _small("qwen2_moe", num_experts=4, shared_expert_intermediate_size=40, **_MOE),
    "qwen3_moe": _small("qwen3_moe", num_experts=4, mlp_only_layers=[1], **_MOE),
    "qwen3_vl_moe": {"model_type": "qwen3_vl_moe", "text_config": _small("qwen3_vl_moe_text", num_experts=4, **_MOE)},
    "mixtral": _small("mixtral", num_local_experts=4, num_experts_per_tok=2),
    "gemma2": _small("gemma2", tie_word_embeddings=None, head_dim=32),
    "gemma3": _small("gemma3_text", tie_word_embeddings=None, head_dim=32, sliding_window=64),
    "gpt_oss": _small("gpt_oss", num_local_experts=4, num_experts_per_tok=2, sliding_window=64, head_dim=16),
    "glm4": _small("glm4", attention_bias=True),
    "glm4_moe": _small(
        "glm4_moe",
        attention_bias=True,
        use_qk_norm=True,
        n_routed_experts=4,
        n_shared_experts=1,
        first_k_dense_replace=1,
        num_nextn_predict_layers=1,
        **_MOE,
    ),
    "phi3": _small("phi3"),
    "granite": _small("granite"),
    "granitemoe": _small("granitemoe", num_local_experts=4, num_experts_per_tok=2),
    "granite 4": _small(
        "granitemoehybrid",
        num_local_experts=4,
        num_experts_per_tok=2,
        shared_intermediate_size=40,
        layer_types=["mamba", "mamba", "attention", "mamba"],
        **_MAMBA_2,
    ),
    "olmo2": _small("olmo2"),
    "cohere": _small("cohere", tie_word_embeddings=None),
    "starcoder2": _small("starcoder2", tie_word_embeddings=None),
    "minimax_m2": _small("minimax_m2", num_local_experts=4, num_experts_per_tok=2, head_dim=16),
    "llama4": _small("llama4_text", num_local_experts=4, num_experts_per_tok=1, interleave_moe_layer_step=2),
    "deepseek_v2, direct queries": _small("deepseek_v2", **{**_LATENT, "q_lora_rank": None}),
    "deepseek_v3": _small("deepseek_v3", topk_method="noaux_tc", **_LATENT),
    "deepseek_v32": _small("deepseek_v32", index_topk=64, index_n_heads=2, index_head_dim=16, **_LATENT),
    "glm_moe_dsa": _small(
        "glm_moe_dsa",
        topk_method="noaux_tc",
        index_topk=64,
        index_n_heads=2,
        index_head_dim=16,
        indexer_types=["full", "shared", "full", "shared"],
        mlp_layer_types=["dense", "sparse", "sparse", "sparse"],
        **_LATENT,
    ),
    "qwen3_next": _small("qwen3_next", num_experts=4, shared_expert_intermediate_size=24, **_MOE, **_NET),
    "qwen3_5": _small("qwen3_5_text", head_dim=32, **_NET),
    "qwen3_5_moe": _small("qwen3_5_moe_text", num_experts=4, shared_expert_intermediate_size=24, **_MOE, **_NET),
    "mamba": {
        "model_type": "mamba",
        "torch_dtype": "float32",
        "hidden_size": 64,
        "num_hidden_layers": 3,
        "vocab_size": 320,
        "state_size": 16,
        "time_step_rank": 4,
    },
    "mamba2": {
        "model_type": "mamba2",
        "torch_dtype": "bfloat16",
        "hidden_size": 64,
        "num_hidden_layers": 3,
        "vocab_size": 320,
        "num_heads": 4,
        "head_dim": 32,
        "n_groups": 2,
        "state_size": 16,
        "conv_kernel": 4,
    },
    "jamba": _small(
        "jamba",
        num_experts=4,
        num_experts_per_tok=2,
        attn_layer_offset=1,
        attn_layer_period=2,
        expert_layer_offset=1,
        expert_layer_period=2,
        mamba_d_state=16,
        mamba_dt_rank=8,
    ),
    "bamba": _small("bamba", attn_layer_indices=[2], **_MAMBA_2),
    "falcon_h1": _small("falcon_h1", **_MAMBA_2),
    "gemma4": _small("gemma4_text", tie_word_embeddings=None, **_GEMMA_4),
    "gemma4, with embeddings for each layer": _small(
        "gemma4_text",
        num_kv_shared_layers=2,
        hidden_size_per_layer_input=8,
        use_double_wide_mlp=True,
        **{**_GEMMA_4, "attention_k_eq_v": False},
    ),
    "kimi_linear": _small(
        "kimi_linear",
        num_experts=4,
        num_experts_per_token=2,
        num_shared_experts=1,
        linear_attn_config={"full_attn_layers": [4], "num_heads": 4, "head_dim": 8, "short_conv_kernel_size": 4},
        **{**_LATENT, "q_lora_rank": None, "n_routed_experts": None, "n_shared_experts": None}
        | {"num_nextn_predict_layers": 0, "num_experts_per_tok": None},
    ),
    "nemotron_h": _small(
        "nemotron_h",
        hybrid_override_pattern="M*-EM",
        mamba_num_heads=4,
        mamba_head_dim=32,
        ssm_state_size=16,
        n_groups=2,
        n_routed_experts=4,
        n_shared_experts=1,
        moe_shared_expert_intermediate_size=40,
        moe_latent_size=32,
        **_MOE,
    ),
    "deepseek_v4": {
        **FLASH_WITH_DRAFT,
        "num_hidden_layers": 4,
        "hidden_size": 256,
        "head_dim": 64,
        "num_attention_heads": 8,
        "o_groups": 2,
        "moe_intermediate_size": 192,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "num_hash_layers": 1,
        "q_lora_rank": 192,
        "o_lora_rank": 192,
        "vocab_size": 320,
        "compress_ratios": [0, 4, 128, 4],
        "dspark_target_layer_ids": [1, 2, 3],
        "dspark_markov_rank": 16,
    },
}
"""By a name for the reader."""
