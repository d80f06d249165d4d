"""Families with more than one kind of attention in a model: Gemma 4, Kimi Linear, Falcon-H1; packed formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from casemate.checkpoint.config import checkpoint_from_config
from casemate.checkpoint.facts import Checkpoint, Grouped, Latent, Recurrent
from casemate.errors import UsageError
from checkpoint.configs import Config, dense
from checkpoint.families import SMALL

GEMMA4_31B: Config = {
    **dense("gemma4_text", hidden=5376, inner=21504, layers=60, heads=(32, 16), words=262144),
    "tie_word_embeddings": True,
    "head_dim": 256,
    "global_head_dim": 512,
    "num_global_key_value_heads": 4,
    "attention_k_eq_v": True,
    "sliding_window": 1024,
    "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 10,
}
KIMI_LINEAR: Config = {
    **dense("kimi_linear", hidden=2304, inner=9216, layers=27, heads=(32, 32), words=163840),
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "moe_intermediate_size": 1024,
    "num_experts": 256,
    "num_experts_per_token": 8,
    "num_shared_experts": 1,
    "first_k_dense_replace": 1,
    "linear_attn_config": {
        "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
        "head_dim": 128,
        "num_heads": 32,
        "short_conv_kernel_size": 4,
    },
}


def falcon(*, layers: int, hidden: int, inner: int, heads: tuple[int, int], **more: int) -> Config:
    """A Falcon-H1 with heads of 128 and states of 256."""
    plain = dense("falcon_h1", hidden=hidden, inner=inner, layers=layers, heads=heads, words=more.pop("words"))
    return {**plain, "head_dim": 128, "mamba_d_head": 128, "mamba_d_state": 256, "mamba_d_conv": 4, **more}


FALCON_7B = falcon(layers=44, hidden=3072, inner=12288, heads=(12, 2), mamba_n_heads=24, words=130048)
FALCON_34B = falcon(
    layers=72, hidden=5120, inner=21504, heads=(20, 4), mamba_n_heads=32, mamba_n_groups=2, words=261120
)


def read(config: Config) -> Checkpoint:
    return checkpoint_from_config(config, Path("model"))


def parameters(checkpoint: Checkpoint) -> int:
    parts = (*checkpoint.layers, checkpoint.embedding, checkpoint.head)
    return sum(block.parameters + block.expert_parameters for block in parts)


@pytest.mark.parametrize(
    ("config", "billions"), [(KIMI_LINEAR, 49.1), (FALCON_7B, 7.59), (FALCON_34B, 33.6), (GEMMA4_31B, 30.7)]
)
def test_a_config_comes_to_the_size_that_its_makers_publish(config: Config, billions: float) -> None:
    assert parameters(read(config)) / 1e9 == pytest.approx(billions, rel=0.003)


def test_gemma_4_keeps_wide_heads_of_all_tokens_beside_narrow_ones_of_a_window() -> None:
    near, far = read(GEMMA4_31B).caches
    assert isinstance(near, Grouped)
    assert isinstance(far, Grouped)
    assert (near.kv_heads, near.key_size, near.window, len(near.layers)) == (16, 256, 1024, 50)
    assert (far.kv_heads, far.key_size, far.window, far.layers[0]) == (4, 512, None, 5)


def test_gemma_4_stores_no_values_where_its_keys_serve_as_such() -> None:
    same, apart = (read({**GEMMA4_31B, "attention_k_eq_v": flag}) for flag in (True, False))
    assert same.layers[0] == apart.layers[0]
    assert apart.layers[5].parameters - same.layers[5].parameters == (16 * 2 - 4) * 512 * 5376


def test_layers_that_share_a_cache_have_neither_one_of_their_own_nor_keys() -> None:
    shared = read(SMALL["gemma4, with embeddings for each layer"])
    alone = read({**SMALL["gemma4, with embeddings for each layer"], "num_kv_shared_layers": 0})
    assert [cache.layers for cache in shared.caches] == [(0,), (1,)]
    assert [cache.layers for cache in alone.caches] == [(0, 2), (1, 3)]
    keys, widened = 2 * 2 * 16 * 64 + 16, 3 * 96 * 64
    assert shared.layers[2].parameters == alone.layers[2].parameters - keys + widened


def test_embeddings_for_each_layer_are_as_wide_as_all_layers_together() -> None:
    config = SMALL["gemma4, with embeddings for each layer"]
    without = read({**config, "hidden_size_per_layer_input": 0})
    assert read(config).embedding.parameters - without.embedding.parameters == 320 * 4 * 8
    assert read(config).head.parameters - without.head.parameters == 4 * 8 * 64 + 8


def test_gemma_4_has_experts_beside_a_dense_feed_forward() -> None:
    mixed = read({**SMALL["gemma4"], "num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 24})
    assert (mixed.experts, mixed.experts_per_token) == (4, 2)
    assert mixed.layers[0].expert_parameters == 4 * 3 * 24 * 64


def test_kimi_linear_counts_its_latent_layers_from_one_and_keeps_float32_states_in_the_rest() -> None:
    latents, states = read(KIMI_LINEAR).caches
    assert latents == Latent((3, 7, 11, 15, 19, 23, 26), 512, rope_size=64)
    assert isinstance(states, Recurrent)
    assert (states.heads, states.state_numbers, states.state_dtype) == (32, 32 * 128 * 128, "float32")
    assert states.convolution_numbers == 3 * 4096 * 3


@pytest.mark.parametrize(
    "more", [{"linear_attn_config": None}, {"routed_expert_hidden_size": 512}, {"mla_use_output_gate": True}]
)
def test_another_form_of_kimi_linear_is_refused(more: Config) -> None:
    with pytest.raises(UsageError, match="linear_attn_config"):
        read({**KIMI_LINEAR, **more})


def test_falcon_h1_keeps_keys_and_a_state_in_every_layer() -> None:
    attention, states = read(FALCON_7B).caches
    assert attention == Grouped(tuple(range(44)), kv_heads=2, key_size=128, value_size=128)
    assert isinstance(states, Recurrent)
    assert states.layers == attention.layers
    assert states.state_numbers == 24 * 128 * 256


def test_a_norm_of_its_mixer_is_counted_where_falcon_h1_has_one() -> None:
    normed = read({**FALCON_7B, "mamba_rms_norm": True})
    assert normed.layers[0].parameters - read(FALCON_7B).layers[0].parameters == 24 * 128


def test_a_format_that_leaves_nothing_open_needs_no_groups_but_is_remarked() -> None:
    packed = read({**GEMMA4_31B, "quantization_config": {**PACKED, "format": "nvfp4-pack-quantized"}})
    assert packed.weights_bytes < 0.4 * read(GEMMA4_31B).weights_bytes
    assert any("config_groups" in note for note in packed.notes)


def test_a_format_that_leaves_widths_open_is_refused_without_groups() -> None:
    with pytest.raises(UsageError, match="config_groups"):
        read({**GEMMA4_31B, "quantization_config": {**PACKED, "format": "pack-quantized"}})


PACKED = {"quant_method": "compressed-tensors"}
