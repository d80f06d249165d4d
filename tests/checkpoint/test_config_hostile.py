"""Configs that make no sense, or mean harm: one line that names the key, never a traceback, never a wait."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from casemate.checkpoint.config import checkpoint_from_config
from casemate.checkpoint.facts import Checkpoint
from casemate.checkpoint.keys import MOST_BYTES, load
from casemate.checkpoint.reading import read
from casemate.errors import UsageError
from checkpoint import configs
from checkpoint.configs import Config
from checkpoint.families import SMALL

STRANGE: list[Any] = [None, -1, 0, 10**9, 10**30, 1.5, 1e308, True, "4", [], {}, [1], {"a": 1}, "\x1b[2J" * 50]


def refusal(config: Config) -> str:
    with pytest.raises(UsageError) as caught:
        checkpoint_from_config(config, Path("model/config.json"))
    return str(caught.value)


@pytest.mark.parametrize(
    "key", ["hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"]
)
def test_a_missing_key_is_named(key: str) -> None:
    assert f"the config does not tell {key}" in refusal({k: v for k, v in configs.LLAMA_8B.items() if k != key})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_hidden_layers", 10**9),
        ("num_hidden_layers", -4),
        ("hidden_size", 0),
        ("hidden_size", "4096"),
        ("hidden_size", True),
        ("hidden_size", 4096.5),
        ("vocab_size", 10**400),
        ("num_key_value_heads", 7),
        ("torch_dtype", "complex64"),
        ("torch_dtype", 16),
        ("tie_word_embeddings", "yes"),
        ("rope_scaling", "yarn"),
        ("layer_types", "full"),
        ("layer_types", ["full_attention"]),
        ("architectures", "LlamaForCausalLM"),
        ("quantization_config", []),
        ("max_position_embeddings", -1),
        ("head_dim", {}),
    ],
)
def test_a_value_that_makes_no_sense_is_named(key: str, value: Any) -> None:
    told = refusal({**configs.LLAMA_8B, key: value})
    assert key in told or "key-value heads" in told
    assert told.isprintable()
    assert len(told) < 400


@pytest.mark.parametrize("family", SMALL)
def test_no_value_of_any_key_of_any_family_gives_anything_but_a_refusal(family: str) -> None:
    whole = SMALL[family]
    config = whole.get("text_config", whole)
    for key in config:
        for value in STRANGE:
            bad = {**config, key: value}
            try:
                found = checkpoint_from_config({**whole, "text_config": bad} if config is not whole else bad, Path("m"))
            except UsageError as refused:
                assert str(refused).isprintable()  # noqa: PT017 - either outcome is right
            else:
                assert found.weights_bytes > 0


@pytest.mark.parametrize("family", SMALL)
def test_no_key_that_is_missing_gives_anything_but_a_refusal(family: str) -> None:
    whole = SMALL[family]
    for key in whole:
        try:
            found = checkpoint_from_config({k: v for k, v in whole.items() if k != key}, Path("m"))
        except UsageError as refused:
            assert refused.what  # noqa: PT017 - either outcome is right
        else:
            assert found.weights_bytes > 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{",
        '{"hidden_size": NaN}',
        '{"hidden_size": Infinity}',
        '{"hidden_size": -Infinity}',
        '{"a": ' * 100_000 + "1" + "}" * 100_000,
        "[" * 200_000,
        '{"hidden_size": ' + "9" * 10_000 + "}",
        '{"\ud800": 1}'.encode("utf-8", "surrogatepass").decode("latin-1"),
        "\x00\x01\x02",
    ],
)
def test_a_file_that_is_no_json_object_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(UsageError) as caught:
        read(path)
    assert str(caught.value).isprintable()


def test_a_file_of_more_than_four_mebibytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"a": "x" * MOST_BYTES}))
    with pytest.raises(UsageError, match="more than 4 MiB"):
        load(path)


def test_escapes_in_words_of_the_config_are_made_visible() -> None:
    config = {**configs.LLAMA_8B, "architectures": ["Llama\x1b[2J\u202eForCausalLM"]}
    found = checkpoint_from_config(config, Path("model"))
    assert found.architecture.isprintable()
    assert "Llama" in found.architecture


def test_layers_that_cannot_be_computed_are_refused_and_named() -> None:
    told = refusal({**configs.LLAMA_8B, "model_type": "toy", "linear_num_key_heads": 4})
    assert "linear_num_key_heads" in told
    told = refusal({**configs.LLAMA_8B, "model_type": "toy", "layer_types": ["full_attention"] * 31 + ["kda"]})
    assert "kda" in told


def test_the_largest_config_that_is_taken_comes_to_an_end() -> None:
    config = {
        **configs.QWEN3_30B,
        "num_hidden_layers": 1024,
        "quantization_config": {
            "quant_method": "compressed-tensors",
            "format": "pack-quantized",
            "config_groups": {
                "a": {"targets": ["Linear"], "weights": {"num_bits": 4, "strategy": "group", "group_size": 32}}
            },
            "ignore": ["re:.*a.*b.*c.*d.*e.*f" + "x" * number for number in range(200)]
            + [f"model.layers.{number}.mlp.gate" for number in range(60_000)],
        },
    }
    # A matcher that goes back and tries again would outlive the time limit of any test.
    assert checkpoint_from_config(config, Path("model")).weights_bytes > 0


def test_a_catastrophic_expression_is_passed_over_and_told() -> None:
    quantization = {
        **configs.AWQ_70B["quantization_config"],
        "modules_to_not_convert": ["re:(a+)+$", "re:(?=x)", r"re:(\w+)\1"],
    }
    found = checkpoint_from_config({**configs.AWQ_70B, "quantization_config": quantization}, Path("model"))
    assert isinstance(found, Checkpoint)
    assert any("(a+)+$" in note for note in found.notes)


def test_more_patterns_than_a_model_has_modules_are_refused() -> None:
    quantization = {**configs.AWQ_70B["quantization_config"], "modules_to_not_convert": [f"*{n}*" for n in range(2000)]}
    assert "2000 patterns" in refusal({**configs.AWQ_70B, "quantization_config": quantization})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"compress_ratios": [0, 4]}, "compress_ratios"),
        ({"compress_ratios": [0, 0, *[4, 100] * 22]}, "compress_ratios has 100"),
        ({"hc_mult": 0}, "hc_mult"),
        ({"n_routed_experts": 0}, "n_routed_experts"),
        ({"dspark_block_size": 5}, "dspark"),
    ],
)
def test_what_v4_cannot_be_is_named(change: Config, told: str) -> None:
    assert told in refusal({**configs.FLASH, **change})
