"""What layers keep of the tokens that they saw, by family."""

from __future__ import annotations

from pathlib import Path

import pytest

from casemate.checkpoint.config import checkpoint_from_config
from casemate.checkpoint.facts import Cache, Compressed, Grouped, Latent, Recurrent
from checkpoint import configs
from checkpoint.configs import Config, dense
from checkpoint.families import SMALL


def caches_of(config: Config) -> tuple[Cache, ...]:
    return checkpoint_from_config(config, Path("model")).caches


def grouped(config: Config) -> list[Grouped]:
    return [cache for cache in caches_of(config) if isinstance(cache, Grouped)]


def test_a_plain_decoder_keeps_all_tokens_in_all_layers() -> None:
    assert caches_of(configs.LLAMA_8B) == (Grouped(tuple(range(32)), kv_heads=8, key_size=128, value_size=128),)


def test_an_explicit_head_size_counts_and_not_the_quotient() -> None:
    (cache,) = grouped(configs.QWEN3_30B)
    assert (cache.kv_heads, cache.key_size) == (4, 128)


def test_latent_attention_keeps_one_latent_and_not_heads() -> None:
    checkpoint = checkpoint_from_config(configs.DEEPSEEK_V3, Path("model"))
    (cache,) = checkpoint.caches
    assert isinstance(cache, Latent)
    assert len(cache.layers) * (cache.latent_size + cache.rope_size) * 2 == 70_272
    assert cache.index_size == 0
    assert checkpoint.draft is not None
    assert checkpoint.draft.caches == (Latent((0,), 512, rope_size=64),)


def test_a_sparse_indexer_keeps_its_own_key() -> None:
    (cache,) = caches_of(SMALL["deepseek_v32"])
    assert cache == Latent((0, 1, 2, 3), 32, rope_size=8, index_size=16)


def test_layers_that_share_an_indexer_keep_no_key_for_it() -> None:
    own, shared = caches_of(SMALL["glm_moe_dsa"])
    assert own == Latent((0, 2), 32, rope_size=8, index_size=16)
    assert shared == Latent((1, 3), 32, rope_size=8)


def test_v4_keeps_windows_in_two_layers_and_compressed_entries_in_the_others() -> None:
    windows, sparse, heavy = caches_of(configs.FLASH)
    same = {"window": 128, "head_size": 512, "rope_size": 64}
    assert windows == Compressed((0, 1), 0, **same)
    assert sparse == Compressed(tuple(range(2, 43, 2)), 4, **same, index_size=128)
    assert heavy == Compressed(tuple(range(3, 42, 2)), 128, **same)


@pytest.mark.parametrize(("config", "layers"), [(configs.FLASH, 1), (configs.FLASH_WITH_DRAFT, 3)])
def test_each_layer_of_a_draft_of_v4_keeps_a_window(config: Config, layers: int) -> None:
    draft = checkpoint_from_config(config, Path("model")).draft
    assert draft is not None
    (cache,) = draft.caches
    assert cache == Compressed(tuple(range(layers)), 0, window=128, head_size=512, rope_size=64)
    assert (draft.method, draft.tokens) == (("mtp", 1) if layers == 1 else ("dspark", 5))


def test_v4_is_also_read_from_kinds_of_layers_and_their_rates() -> None:
    kinds = ["window", "window", *["csa", "hca"] * 20, "csa"]
    rates = {"csa": 4, "hca": 128}
    without = {key: value for key, value in configs.FLASH.items() if key != "compress_ratios"}
    assert caches_of({**without, "layer_types": kinds, "compress_rates": rates}) == caches_of(configs.FLASH)


def test_five_layers_of_six_slide_in_gemma_3() -> None:
    sliding, full = grouped(configs.GEMMA3_27B)
    assert (sliding.window, full.window) == (1024, None)
    assert full.layers == tuple(range(5, 62, 6))
    assert len(sliding.layers) == 52


def test_every_second_layer_slides_in_gpt_oss_from_the_first() -> None:
    sliding, full = grouped(configs.GPT_OSS_20B)
    assert (sliding.layers, sliding.window) == (tuple(range(0, 24, 2)), 128)
    assert full.layers == tuple(range(1, 24, 2))


def test_kinds_of_layers_that_the_config_lists_go_before_a_pattern() -> None:
    config = {**SMALL["gemma3"], "layer_types": ["full_attention", *["sliding_attention"] * 3]}
    assert {cache.window: cache.layers for cache in grouped(config)} == {None: (0,), 64: (1, 2, 3)}


def test_a_window_that_is_switched_off_is_none() -> None:
    config = {**SMALL["qwen2, tied"], "sliding_window": 64, "use_sliding_window": False}
    assert [cache.window for cache in grouped(config)] == [None]


def test_a_pattern_of_letters_tells_the_windows() -> None:
    config = {**SMALL["llama"], "model_type": "exaone4", "sliding_window": 64, "sliding_window_pattern": "LLLG"}
    assert {cache.window: cache.layers for cache in grouped(config)} == {64: (0, 1, 2), None: (3,)}


def test_in_a_hybrid_only_every_fourth_layer_grows() -> None:
    config = {
        **configs.QWEN35_PRUNED,
        "num_hidden_layers": 64,
        "num_key_value_heads": 4,
        "model_type": "qwen3_next",
    }
    full, states = caches_of(config)
    assert isinstance(full, Grouped)
    assert isinstance(states, Recurrent)
    assert full.layers == tuple(range(3, 64, 4))
    assert full.kv_heads * full.key_size == 1024
    assert len(states.layers) == 48


def test_a_gated_delta_net_keeps_a_matrix_for_each_value_head_and_the_last_columns() -> None:
    (_, states) = caches_of(configs.QWEN35_PRUNED)
    assert isinstance(states, Recurrent)
    assert (states.heads, states.state_numbers, states.state_dtype) == (32, 32 * 128 * 128, "float32")
    assert states.convolution_numbers == (2 * 16 * 128 + 32 * 128) * 3


def test_mamba_2_keeps_states_by_head_and_convolves_states_of_groups_too() -> None:
    (states,) = caches_of(SMALL["mamba2"])
    assert states == Recurrent(
        (0, 1, 2), 4, state_numbers=4 * 32 * 16, convolution_numbers=(4 * 32 + 2 * 2 * 16) * 3, groups=2
    )


def test_mamba_keeps_a_state_for_each_channel() -> None:
    (states,) = caches_of(SMALL["mamba"])
    assert states == Recurrent((0, 1, 2), 128, state_numbers=128 * 16, convolution_numbers=128 * 3)


def test_nemotron_h_has_one_mixer_a_layer_by_its_pattern() -> None:
    attention, states = caches_of(SMALL["nemotron_h"])
    assert isinstance(attention, Grouped)
    assert isinstance(states, Recurrent)
    assert (attention.layers, states.layers, states.state_dtype) == ((1,), (0, 4), "float32")


def test_jamba_attends_in_the_layers_of_its_period() -> None:
    turns = {"num_hidden_layers": 16, "attn_layer_period": 8, "attn_layer_offset": 4}
    attention, states = caches_of({**SMALL["jamba"], **turns})
    assert isinstance(attention, Grouped)
    assert attention.layers == (4, 12)
    assert isinstance(states, Recurrent)
    assert len(states.layers) == 14


@pytest.mark.parametrize(
    ("more", "length", "scaled_from"),
    [
        ({"max_position_embeddings": 8192}, 8192, 0),
        ({}, 0, 0),
        (
            {
                "max_position_embeddings": 131072,
                "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192},
            },
            131072,
            8192,
        ),
        ({"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 4.0}}, 16384, 4096),
        ({"max_position_embeddings": 131072, "rope_parameters": {"rope_type": "default"}}, 131072, 0),
        ({"max_position_embeddings": 8192, "model_max_length": 131072}, 131072, 0),
        ({"n_positions": 1024, "max_sequence_length": 2048}, 1024, 0),
    ],
)
def test_the_context_is_what_the_engine_derives(more: Config, length: int, scaled_from: int) -> None:
    checkpoint = checkpoint_from_config({**configs.LLAMA_8B, **more}, Path("model"))
    assert (checkpoint.context_length, checkpoint.rope_scaled_from) == (length, scaled_from)


def test_gemma_3_tells_its_context_scaled_already() -> None:
    assert checkpoint_from_config(configs.GEMMA3_27B, Path("model")).context_length == 131_072


def test_facts_of_a_mixture_are_those_of_its_experts() -> None:
    checkpoint = checkpoint_from_config(configs.QWEN3_30B, Path("some/folder/config.json"))
    assert (checkpoint.experts, checkpoint.experts_per_token, checkpoint.intermediate_size) == (128, 8, 768)
    assert (checkpoint.hidden_size, checkpoint.vocabulary, checkpoint.kv_heads) == (2048, 151936, 4)
    assert checkpoint.name == "folder"


def test_the_widest_feed_forward_counts_where_some_layers_are_dense() -> None:
    assert checkpoint_from_config(configs.DEEPSEEK_V3, Path("model")).intermediate_size == 18432


def test_a_type_that_is_not_known_is_computed_as_a_plain_decoder_with_a_note() -> None:
    config = dense("toy", hidden=64, inner=96, layers=2, heads=(4, 2), words=100)
    checkpoint = checkpoint_from_config(config, Path("model"))
    assert (
        checkpoint.weights_bytes == checkpoint_from_config({**config, "model_type": "llama"}, Path("m")).weights_bytes
    )
    assert any("computed as a plain decoder" in note for note in checkpoint.notes)


def test_a_type_that_is_not_known_but_has_a_latent_keeps_a_latent() -> None:
    (cache,) = caches_of({**configs.DEEPSEEK_V3, "model_type": "toy_v9"})
    assert isinstance(cache, Latent)
