"""Configs of models that are in use, as far as they decide sizes, and small ones of each family."""

from __future__ import annotations

from typing import Any

Config = dict[str, Any]

_FP8 = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}


def dense(model_type: str, *, hidden: int, inner: int, layers: int, heads: tuple[int, int], words: int) -> Config:
    """A plain decoder in bfloat16; `heads` are query and key-value heads."""
    return {
        "model_type": model_type,
        "torch_dtype": "bfloat16",
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads[0],
        "num_key_value_heads": heads[1],
        "vocab_size": words,
        "tie_word_embeddings": False,
    }


def latent(*, heads: int, experts: int, dense_layers: int, words: int, guesses: int) -> Config:
    """DeepSeek-V3 and what is built alike."""
    return {
        **dense("deepseek_v3", hidden=7168, inner=18432, layers=61, heads=(heads, heads), words=words),
        "moe_intermediate_size": 2048,
        "n_shared_experts": 1,
        "n_routed_experts": experts,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": dense_layers,
        "kv_lora_rank": 512,
        "q_lora_rank": 1536,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "num_nextn_predict_layers": guesses,
        "topk_method": "noaux_tc",
        "max_position_embeddings": 163840,
        "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096},
        "quantization_config": _FP8,
    }


LLAMA_8B = dense("llama", hidden=4096, inner=14336, layers=32, heads=(32, 8), words=128256)
LLAMA_70B = dense("llama", hidden=8192, inner=28672, layers=80, heads=(64, 8), words=128256)
MIXTRAL = {
    **dense("mixtral", hidden=4096, inner=14336, layers=32, heads=(32, 8), words=32000),
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
}
DEEPSEEK_V2 = {
    **dense("deepseek_v2", hidden=5120, inner=12288, layers=60, heads=(128, 128), words=102400),
    "moe_intermediate_size": 1536,
    "n_shared_experts": 2,
    "n_routed_experts": 160,
    "num_experts_per_tok": 6,
    "first_k_dense_replace": 1,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "topk_method": "group_limited_greedy",
}
DEEPSEEK_V3 = latent(heads=128, experts=256, dense_layers=3, words=129280, guesses=1)
KIMI_K2 = {**latent(heads=64, experts=384, dense_layers=1, words=163840, guesses=0), "model_type": "kimi_k2"}
QWEN3_30B = {
    **dense("qwen3_moe", hidden=2048, inner=6144, layers=48, heads=(32, 4), words=151936),
    "head_dim": 128,
    "moe_intermediate_size": 768,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "mlp_only_layers": [],
    "decoder_sparse_step": 1,
}
QWEN3_235B = {
    **dense("qwen3_moe", hidden=4096, inner=12288, layers=94, heads=(64, 4), words=151936),
    "head_dim": 128,
    "moe_intermediate_size": 1536,
    "num_experts": 128,
    "num_experts_per_tok": 8,
}
GPT_OSS_20B = {
    **dense("gpt_oss", hidden=2880, inner=2880, layers=24, heads=(64, 8), words=201088),
    "head_dim": 64,
    "num_local_experts": 32,
    "num_experts_per_tok": 4,
    "sliding_window": 128,
    "attention_bias": True,
    "quantization_config": {
        "quant_method": "mxfp4",
        "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "lm_head"],
    },
}
GEMMA3_27B = {
    "model_type": "gemma3",
    "torch_dtype": "bfloat16",
    "text_config": {
        "model_type": "gemma3_text",
        "hidden_size": 5376,
        "intermediate_size": 21504,
        "num_hidden_layers": 62,
        "num_attention_heads": 32,
        "num_key_value_heads": 16,
        "head_dim": 128,
        "sliding_window": 1024,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0},
        "max_position_embeddings": 131072,
    },
    "vision_config": {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "patch_size": 14},
}
LLAMA4_SCOUT = {
    "model_type": "llama4",
    "torch_dtype": "bfloat16",
    "text_config": {
        **dense("llama4_text", hidden=5120, inner=8192, layers=48, heads=(40, 8), words=202048),
        "intermediate_size_mlp": 16384,
        "head_dim": 128,
        "num_local_experts": 16,
        "num_experts_per_tok": 1,
        "interleave_moe_layer_step": 1,
    },
    "vision_config": {"hidden_size": 1408, "intermediate_size": 5632, "num_hidden_layers": 34, "patch_size": 14},
}
GRANITE_1B = {
    **dense("granitemoe", hidden=1024, inner=512, layers=24, heads=(16, 8), words=49155),
    "torch_dtype": "float32",
    "num_local_experts": 32,
    "num_experts_per_tok": 8,
    "tie_word_embeddings": True,
}
QWEN35_PRUNED = {
    **dense("qwen3_5_moe_text", hidden=2048, inner=1, layers=40, heads=(16, 2), words=248320),
    "torch_dtype": "float16",
    "head_dim": 256,
    "full_attention_interval": 4,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_value_head_dim": 128,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "mtp_num_hidden_layers": 0,
}
AWQ_70B = {
    **LLAMA_70B,
    "torch_dtype": "float16",
    "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True},
}
FLASH = {
    "model_type": "deepseek_v4",
    "architectures": ["DeepseekV4ForCausalLM"],
    "torch_dtype": "bfloat16",
    "expert_dtype": "fp4",
    "hc_mult": 4,
    "head_dim": 512,
    "hidden_size": 4096,
    "index_head_dim": 128,
    "index_n_heads": 64,
    "index_topk": 512,
    "max_position_embeddings": 1048576,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_attention_heads": 64,
    "num_experts_per_tok": 6,
    "num_hidden_layers": 43,
    "num_hash_layers": 3,
    "num_key_value_heads": 1,
    "num_nextn_predict_layers": 1,
    "o_groups": 8,
    "o_lora_rank": 1024,
    "q_lora_rank": 1024,
    "qk_rope_head_dim": 64,
    "quantization_config": {**_FP8, "scale_fmt": "ue8m0"},
    "rope_scaling": {"type": "yarn", "factor": 16, "original_max_position_embeddings": 65536},
    "sliding_window": 128,
    "tie_word_embeddings": False,
    "topk_method": "noaux_tc",
    "vocab_size": 129280,
    "compress_ratios": [0, 0, *[4, 128] * 20, 4, 0],
}
FLASH_WITH_DRAFT = {
    **FLASH,
    "compress_ratios": [0, 0, *[4, 128] * 20, 4, 0, 0, 0],
    "dspark_block_size": 5,
    "dspark_target_layer_ids": [40, 41, 42],
    "dspark_markov_rank": 256,
}
