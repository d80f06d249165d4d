"""Sizes that configs come to, against what the published files have.

`total_size` is what the model's own model.safetensors.index.json tells (bytes of tensors); `files` what all its
safetensors files have, headers included (about 0.1 KiB a tensor). Names are labels: nothing but the config is read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Protocol

import pytest

from casemate.checkpoint.config import checkpoint_from_config
from casemate.checkpoint.facts import Checkpoint
from checkpoint import configs
from checkpoint.configs import Config, dense

SHARED = Path(__file__).parents[3] / "shared" / "reference"


class Optional(Protocol):
    def __call__(self, reason: str, present: object) -> None: ...


EXACT: dict[str, tuple[Config, int]] = {
    "Llama 3.1 8B": (configs.LLAMA_8B, 16_060_522_496),
    "Qwen2.5 7B": (
        dense("qwen2", hidden=3584, inner=18944, layers=28, heads=(28, 4), words=152064),
        15_231_233_024,
    ),
    "Qwen2.5 3B, tied": (
        {
            **dense("qwen2", hidden=2048, inner=11008, layers=36, heads=(16, 2), words=151936),
            "tie_word_embeddings": True,
        },
        6_171_877_376,
    ),
    "Mixtral 8x7B": (configs.MIXTRAL, 93_405_585_408),
    "Qwen3 30B-A3B": (configs.QWEN3_30B, 61_064_245_248),
    "gpt-oss 20B": (configs.GPT_OSS_20B, 13_761_264_768),
    "gpt-oss 120B": (
        {**configs.GPT_OSS_20B, "num_hidden_layers": 36, "num_local_experts": 128},
        65_248_815_744,
    ),
    "MiMo 7B, with its draft": (
        {
            **dense("mimo", hidden=4096, inner=11008, layers=36, heads=(32, 8), words=151680),
            "attention_bias": True,
            "num_nextn_predict_layers": 1,
        },
        15_666_819_072,
    ),
    "Granite 3.1 1B-A400M, float32": (configs.GRANITE_1B, 5_338_513_408),
    "Qwen3.5 MoE, 128 experts left, no draft": (configs.QWEN35_PRUNED, 37_087_995_136),
    "Llama 3 70B, AWQ": (configs.AWQ_70B, 39_767_785_472),
}
"""By `total_size`."""

FILES: dict[str, tuple[Config, int]] = {
    "Mistral 7B v0.1": (
        dense("mistral", hidden=4096, inner=14336, layers=32, heads=(32, 8), words=32000),
        14_483_498_040,
    ),
    "Llama 2 70B": (
        {**dense("llama", hidden=8192, inner=28672, layers=80, heads=(64, 8), words=32000), "torch_dtype": "float16"},
        137_953_408_928,
    ),
    "DeepSeek LLM 67B": (
        dense("llama", hidden=8192, inner=22016, layers=95, heads=(64, 8), words=102400),
        134_850_303_988,
    ),
    "Qwen2.5 72B": (
        dense("qwen2", hidden=8192, inner=29568, layers=80, heads=(64, 8), words=152064),
        145_412_518_888,
    ),
    "Mistral Large 2": (
        {**dense("mistral", hidden=12288, inner=28672, layers=88, heads=(96, 8), words=32768), "head_dim": 128},
        245_220_233_776,
    ),
    "DeepSeek V2": (configs.DEEPSEEK_V2, 471_486_512_925),
    "DeepSeek V3": (configs.DEEPSEEK_V3, 688_586_727_753),
    "Kimi K2": (configs.KIMI_K2, 1_029_190_981_272),
    "Qwen3 235B-A22B": (configs.QWEN3_235B, 470_191_875_096),
    "DeepSeek V4 Flash, preview": (configs.FLASH, 159_617_149_040),
    "DeepSeek V4 Flash 0731": (configs.FLASH_WITH_DRAFT, 166_886_535_336),
}
"""By the bytes of all files."""

WITH_TOWER: dict[str, tuple[Config, int]] = {
    "Gemma 3 27B": (configs.GEMMA3_27B, 54_864_980_440),
    "Llama 4 Scout": (configs.LLAMA4_SCOUT, 217_283_738_720),
}
"""By the bytes of all files; an image tower is estimated."""

TENSORS = {
    "Llama 3.1 8B": (configs.LLAMA_8B, 291),
    "Mixtral 8x7B": (configs.MIXTRAL, 995),
    "Qwen3 30B-A3B": (configs.QWEN3_30B, 18_867),
    "DeepSeek V4 Flash 0731": (configs.FLASH_WITH_DRAFT, 72_317),
}


def computed(config: Config) -> Checkpoint:
    return checkpoint_from_config(config, Path("model/config.json"))


@pytest.mark.parametrize("name", EXACT)
def test_a_config_comes_to_the_bytes_that_the_index_tells(name: str) -> None:
    config, total_size = EXACT[name]
    assert computed(config).weights_bytes == total_size


@pytest.mark.parametrize("name", FILES)
def test_a_config_comes_to_the_bytes_of_the_files_less_their_headers(name: str) -> None:
    config, files = FILES[name]
    checkpoint = computed(config)
    header_bytes = files - checkpoint.weights_bytes
    assert 0 < header_bytes < 400 * checkpoint.tensors
    assert header_bytes / files < 1e-4


@pytest.mark.parametrize("name", WITH_TOWER)
def test_an_estimated_tower_leaves_less_than_a_thousandth_open(name: str) -> None:
    config, files = WITH_TOWER[name]
    checkpoint = computed(config)
    assert abs(checkpoint.weights_bytes - files) / files < 1e-3
    assert checkpoint.vision.total_bytes > 0
    assert any("estimated" in note for note in checkpoint.notes)


@pytest.mark.parametrize("name", TENSORS)
def test_a_config_tells_how_many_tensors_there_are(name: str) -> None:
    config, tensors = TENSORS[name]
    assert computed(config).tensors == tensors


def test_the_two_drafts_of_v4_have_the_tensors_that_their_files_have() -> None:
    without = computed({**configs.FLASH, "num_nextn_predict_layers": 0}).tensors
    assert computed(configs.FLASH).tensors - without == 1_575
    assert computed(configs.FLASH_WITH_DRAFT).tensors - without == 4_705


@pytest.mark.parametrize(
    ("file", "config"),
    [("dsv4-flash-config.json", configs.FLASH), ("dsv4-flash-0731-config.json", configs.FLASH_WITH_DRAFT)],
)
def test_the_published_config_of_v4_comes_to_the_same(file: str, config: Config, optional: Optional) -> None:
    optional("the published configs are not beside this checkout", (SHARED / file).is_file())
    published = computed(json.loads((SHARED / file).read_text()))
    assert published.weights_bytes == computed(config).weights_bytes
    assert published.caches == computed(config).caches


def test_parameters_are_the_numbers_without_what_packing_adds() -> None:
    checkpoint = computed(configs.DEEPSEEK_V3)
    main = sum(block.parameters + block.expert_parameters for block in checkpoint.layers)
    outside = checkpoint.embedding.parameters + checkpoint.head.parameters
    assert round((main + outside) / 1e9) == 671


def test_packing_does_not_change_the_count_of_parameters() -> None:
    def parameters(config: Config) -> int:
        return sum(block.parameters + block.expert_parameters for block in computed(config).layers)

    plain = {key: value for key, value in configs.GPT_OSS_20B.items() if key != "quantization_config"}
    assert parameters(configs.GPT_OSS_20B) == parameters(plain)
    assert parameters(configs.AWQ_70B) == parameters(configs.LLAMA_70B)
