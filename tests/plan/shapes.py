"""Models as their configs tell them: shapes that were published, in configs of our own writing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from casemate.checkpoint.config import checkpoint_from_config
from casemate.checkpoint.facts import Checkpoint

FP8 = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
MXFP4 = {
    "quant_method": "mxfp4",
    "modules_to_not_convert": [
        "model.layers.*.self_attn",
        "model.layers.*.mlp.router",
        "model.embed_tokens",
        "lm_head",
    ],
}

V4: dict[str, Any] = {
    "architectures": ["DeepseekV4ForCausalLM"], "model_type": "deepseek_v4", "torch_dtype": "bfloat16",
    "hidden_size": 4096, "vocab_size": 129280, "num_hidden_layers": 43, "num_hash_layers": 3,
    "num_attention_heads": 64, "num_key_value_heads": 1, "head_dim": 512, "qk_rope_head_dim": 64,
    "q_lora_rank": 1024, "o_lora_rank": 1024, "o_groups": 8, "sliding_window": 128,
    "compress_ratios": [0, 0, *[4, 128] * 20, 4, 0], "index_n_heads": 64, "index_head_dim": 128, "index_topk": 512,
    "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 6, "moe_intermediate_size": 2048,
    "hc_mult": 4, "max_position_embeddings": 1048576, "rope_theta": 10000, "compress_rope_theta": 160000,
    "rope_scaling": {"type": "yarn", "factor": 16, "original_max_position_embeddings": 65536},
    "quantization_config": {**FP8, "scale_fmt": "ue8m0"}, "expert_dtype": "fp4", "num_nextn_predict_layers": 1,
    "tie_word_embeddings": False,
}  # fmt: skip
V4_DSPARK: dict[str, Any] = {
    **V4, "compress_ratios": [*V4["compress_ratios"], 0, 0], "dspark_block_size": 5, "dspark_markov_rank": 256,
    "dspark_target_layer_ids": [40, 41, 42], "dspark_noise_token_id": 128799,
}  # fmt: skip


def read(config: dict[str, Any], name: str = "model") -> Checkpoint:
    """The facts of a config."""
    return checkpoint_from_config(config, Path(f"/models/{name}"))


def dense(hidden: int, layers: int, *, heads: tuple[int, int], feed_forward: int, vocabulary: int) -> dict[str, Any]:
    """A Llama of that shape; `heads` are those of queries and of keys."""
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16", "hidden_size": hidden,
        "num_hidden_layers": layers, "num_attention_heads": heads[0], "num_key_value_heads": heads[1],
        "intermediate_size": feed_forward, "vocab_size": vocabulary, "max_position_embeddings": 131072,
        "tie_word_embeddings": False, "rope_theta": 500000.0,
    }  # fmt: skip


LLAMA_8B = dense(4096, 32, heads=(32, 8), feed_forward=14336, vocabulary=128256)
LLAMA_70B = dense(8192, 80, heads=(64, 8), feed_forward=28672, vocabulary=128256)
QWEN2_7B = {
    **dense(3584, 28, heads=(28, 4), feed_forward=18944, vocabulary=152064),
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "max_position_embeddings": 32768,
}  # fmt: skip
GPTQ_70B = {
    **LLAMA_70B, "torch_dtype": "float16",
    "quantization_config": {"bits": 4, "quant_method": "gptq", "group_size": 128},
}  # fmt: skip
QWEN3_235B_FP8: dict[str, Any] = {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "torch_dtype": "bfloat16",
    "hidden_size": 4096, "num_hidden_layers": 94, "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128,
    "intermediate_size": 12288, "moe_intermediate_size": 1536, "num_experts": 128, "num_experts_per_tok": 8,
    "decoder_sparse_step": 1, "mlp_only_layers": [], "vocab_size": 151936, "max_position_embeddings": 262144,
    "tie_word_embeddings": False, "quantization_config": FP8,
}  # fmt: skip
GPT_OSS_120B: dict[str, Any] = {
    "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "torch_dtype": "bfloat16", "hidden_size": 2880,
    "num_hidden_layers": 36, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
    "intermediate_size": 2880, "num_local_experts": 128, "num_experts_per_tok": 4, "vocab_size": 201088,
    "max_position_embeddings": 131072, "sliding_window": 128, "tie_word_embeddings": False,
    "layer_types": ["sliding_attention", "full_attention"] * 18, "quantization_config": MXFP4,
}  # fmt: skip
V3: dict[str, Any] = {
    "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "torch_dtype": "bfloat16",
    "hidden_size": 7168, "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128,
    "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
    "intermediate_size": 18432, "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1,
    "num_experts_per_tok": 8, "first_k_dense_replace": 3, "moe_layer_freq": 1, "num_nextn_predict_layers": 1,
    "vocab_size": 129280, "max_position_embeddings": 163840, "tie_word_embeddings": False, "quantization_config": FP8,
}  # fmt: skip
QWEN3_NEXT: dict[str, Any] = {
    "architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next", "torch_dtype": "bfloat16",
    "hidden_size": 2048, "num_hidden_layers": 48, "full_attention_interval": 4, "num_attention_heads": 16,
    "num_key_value_heads": 2, "head_dim": 256, "intermediate_size": 5120, "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512, "num_experts": 512, "num_experts_per_tok": 10, "decoder_sparse_step": 1,
    "mlp_only_layers": [], "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "vocab_size": 151936,
    "max_position_embeddings": 262144, "tie_word_embeddings": False,
}  # fmt: skip
