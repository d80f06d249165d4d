"""What quantisation methods store of a matrix, by the keys that each writes into the config."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from casemate.checkpoint.config import checkpoint_from_config
from casemate.checkpoint.facts import Checkpoint
from casemate.checkpoint.matching import Names
from casemate.errors import UsageError
from checkpoint import configs
from checkpoint.configs import Config, dense

SQUARE = dense("llama", hidden=1024, inner=1024, layers=1, heads=(8, 8), words=1024)
"""One layer of seven matrices of 1024 by 1024, and two norms of 1024."""
NUMBERS = 1024 * 1024


def quantized(quantization: Config, **more: Any) -> Checkpoint:
    return checkpoint_from_config({**SQUARE, **more, "quantization_config": quantization}, Path("model"))


def of_one_matrix(quantization: Config) -> float:
    layer = quantized(quantization).layers[0]
    return (layer.total_bytes - 2 * 1024 * 2) / 7


def group(weights: Config, **more: Any) -> Config:
    target = {"targets": ["Linear"], "weights": weights, **more}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": target}}


@pytest.mark.parametrize(
    ("quantization", "matrix_bytes"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, NUMBERS + 64 * 4),
        ({"quant_method": "fp8", "activation_scheme": "dynamic"}, NUMBERS + 4),
        ({"quant_method": "fp8", "activation_scheme": "static"}, NUMBERS + 8),
        ({"quant_method": "fbgemm_fp8"}, NUMBERS + 1024 * 4),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, NUMBERS // 2 + 8 * 1024 * 2.5),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, NUMBERS // 2 + 8 * 1024 * 2.5 + 1024 * 4),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, NUMBERS + 1024 * 3 + 1024 * 4),
        ({"quant_method": "gptq", "bits": 3, "group_size": 128}, NUMBERS * 3 // 8 + 8 * 1024 * (2 + 3 / 8) + 1024 * 4),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, NUMBERS + 1024 * 4 + 1),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, NUMBERS // 2 + NUMBERS // 64 * 4 + 150),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, NUMBERS // 2 + NUMBERS // 16 + 8),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, NUMBERS + 8),
        ({"quantization": {"quant_algo": "NVFP4"}}, NUMBERS // 2 + NUMBERS // 16 + 8),
        (group({"num_bits": 8, "type": "float", "strategy": "channel"}, format="float-quantized"), NUMBERS + 1024 * 2),
        (
            group({"num_bits": 8, "type": "float", "strategy": "tensor"}, input_activations={"dynamic": False}),
            NUMBERS + 2 + 2,
        ),
        (
            group({"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]}),
            NUMBERS + 64 * 2,
        ),
        (
            group({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}, format="pack-quantized"),
            NUMBERS // 2 + NUMBERS // 32 * 2 + 16,
        ),
        (
            group(
                {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": False},
                format="pack-quantized",
            ),
            NUMBERS // 2 + 8 * 1024 * 2.5 + 16,
        ),
        (
            group({"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}),
            NUMBERS // 2 + NUMBERS // 16 + 8,
        ),
        (group({"num_bits": 4, "type": "float", "group_size": 32}), NUMBERS // 2 + NUMBERS // 32),
    ],
)
def test_a_method_stores_a_matrix_with_its_scales(quantization: Config, matrix_bytes: float) -> None:
    assert of_one_matrix(quantization) == matrix_bytes


def test_embedding_norms_and_head_stay_as_they_are() -> None:
    checkpoint = quantized({"quant_method": "fp8", "weight_block_size": [128, 128]})
    assert checkpoint.embedding.total_bytes == NUMBERS * 2
    assert checkpoint.head.total_bytes == NUMBERS * 2 + 1024 * 2


@pytest.mark.parametrize(("ignore", "packed"), [([], True), (["lm_head"], False), (["re:.*lm_head"], False)])
def test_some_methods_pack_the_head_unless_they_are_told_not_to(ignore: list[str], *, packed: bool) -> None:
    weights = {"num_bits": 8, "type": "float", "strategy": "channel"}
    head = quantized({**group(weights), "ignore": ignore}).head.total_bytes
    assert head == 1024 * 2 + (NUMBERS + 1024 * 2 if packed else NUMBERS * 2)


@pytest.mark.parametrize(
    ("key", "entry"),
    [
        ("modules_to_not_convert", "self_attn"),
        ("ignored_layers", "model.layers.0.self_attn"),
        ("modules_to_not_convert", "model.layers.*.self_attn*"),
        ("modules_to_not_convert", "model.language_model.layers.0.self_attn"),
        ("ignore", r"re:model\.layers\.\d+\.self_attn\.(q|k|v|o)_proj$"),
        ("ignore", r"re:.*self_attn.*"),
    ],
)
def test_modules_that_are_listed_stay_as_they_are(key: str, entry: str) -> None:
    layer = quantized({"quant_method": "fp8", "weight_block_size": [128, 128], key: [entry]}).layers[0]
    assert layer.total_bytes == 4 * NUMBERS * 2 + 3 * (NUMBERS + 256) + 2 * 1024 * 2


def test_a_target_by_name_goes_before_one_by_class() -> None:
    eight = {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}
    four = {"targets": [r"re:.*down_proj$"], "weights": {"num_bits": 4, "type": "float", "group_size": 32}}
    quantization = {"quant_method": "compressed-tensors", "config_groups": {"a": eight, "b": four}}
    layer = quantized(quantization).layers[0]
    assert layer.total_bytes == 6 * (NUMBERS + 2048) + NUMBERS // 2 + NUMBERS // 32 + 2 * 1024 * 2


def test_experts_alone_are_packed_by_mxfp4() -> None:
    checkpoint = checkpoint_from_config(configs.GPT_OSS_20B, Path("model"))
    numbers = 32 * (2 * 2880 * 2880 + 2880 * 2880)
    biases = 32 * (2 * 2880 + 2880) * 2
    assert checkpoint.layers[0].expert_bytes == numbers * 17 // 32 + biases
    assert checkpoint.quantization == "mxfp4"


def test_experts_of_v4_are_fp4_beside_fp8_and_fp8_with_float32_scales_where_the_config_says_so() -> None:
    fp4 = checkpoint_from_config(configs.FLASH, Path("model"))
    fp8 = checkpoint_from_config({**configs.FLASH, "expert_dtype": "fp8"}, Path("model"))
    numbers = fp4.layers[0].expert_parameters
    assert fp4.layers[0].expert_bytes == numbers // 2 + numbers // 32
    assert fp8.layers[0].expert_bytes == numbers + numbers // 128 // 128 * 4
    assert fp8.expert_dtype == "fp8"
    unsaid = checkpoint_from_config({k: v for k, v in configs.FLASH.items() if k != "expert_dtype"}, Path("model"))
    assert unsaid.weights_bytes == fp4.weights_bytes


@pytest.mark.parametrize(
    "quantization",
    [
        {"quant_method": "aqlm"},
        {"bits": 4},
        {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"},
        {"quant_method": "compressed-tensors"},
        {"quant_method": "fp8", "weight_block_size": [128]},
        {"quant_method": "gptq", "bits": 0},
        {"quant_method": "awq", "bits": 4, "group_size": -2},
        {"quant_method": "awq", "bits": 4, "modules_to_not_convert": [1]},
    ],
)
def test_what_cannot_be_computed_is_refused(quantization: Config) -> None:
    with pytest.raises(UsageError) as caught:
        quantized(quantization)
    assert str(caught.value).isprintable()


def test_an_empty_quantisation_is_none_and_experts_of_another_method_are_its_own() -> None:
    assert quantized({}).weights_bytes == checkpoint_from_config(SQUARE, Path("model")).weights_bytes
    weights = {"num_bits": 8, "type": "float", "strategy": "channel"}
    found = checkpoint_from_config({**configs.FLASH, "quantization_config": group(weights)}, Path("model"))
    assert found.layers[0].expert_bytes > found.layers[0].expert_parameters


def test_an_own_file_of_modelopt_counts_where_the_config_has_nothing() -> None:
    told = {"quantization": {"quant_algo": "NVFP4", "exclude_modules": ["lm_head", "model.layers.0.self_attn*"]}}
    checkpoint = checkpoint_from_config(SQUARE, Path("model"), modelopt=told)
    assert checkpoint.quantization == "modelopt"
    assert checkpoint.layers[0].total_bytes == 4 * NUMBERS * 2 + 3 * (NUMBERS * 9 // 16 + 8) + 2 * 1024 * 2


def test_a_wrapper_tells_the_method_once_for_its_text_model() -> None:
    inner = {key: value for key, value in SQUARE.items() if key != "torch_dtype"}
    wrapper = {
        "model_type": "toy_vl",
        "dtype": "float16",
        "text_config": inner,
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    }
    checkpoint = checkpoint_from_config(wrapper, Path("model"))
    assert (checkpoint.dtype, checkpoint.quantization, checkpoint.model_type) == ("float16", "fp8", "toy_vl")
    assert checkpoint.layers[0].total_bytes == 7 * (NUMBERS + 256) + 2 * 1024 * 2


@pytest.mark.parametrize(
    ("entry", "module", "within"),
    [
        ("lm_head", "lm_head", True),
        ("head", "lm_head", False),
        ("mlp.gate", "model.layers.3.mlp.gate", True),
        ("mlp.gate", "model.layers.3.mlp.gate_proj", False),
        ("model.layers.1", "model.layers.11.mlp.gate", False),
        ("re:.*mlp.gate$", "model.layers.3.mlp.gate", True),
        ("re:.*mlp.gate$", "model.layers.3.mlp.gate_proj", False),
        (r"re:model\.layers\.[0-9]+\.mlp", "model.layers.12.mlp.up_proj", True),
        ("re:mlp", "model.layers.3.mlp", False),
        ("re:^lm_head", "lm_head", True),
        ("re:.*", "anything", True),
        ("*.mlp.gate*", "model.layers.3.mlp.gate_proj", True),
        ("re:(a+)+", "aaaa", False),
    ],
)
def test_entries_match_as_the_methods_mean_them(entry: str, module: str, *, within: bool) -> None:
    assert Names.of([entry]).has(module) is within


def test_an_exact_set_does_not_reach_inside_a_module() -> None:
    names = Names.of(["model.language_model.layers.0.linear_attn"], inside=False)
    assert names.has("model.layers.0.linear_attn")
    assert not names.has("model.layers.0.linear_attn.out_proj")
