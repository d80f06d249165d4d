from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from casemate.checkpoint.config import checkpoint_from_config
from casemate.checkpoint.facts import Block, Checkpoint
from casemate.checkpoint.naming import place_of
from casemate.checkpoint.parts import Share
from casemate.checkpoint.reading import read
from casemate.checkpoint.safetensors import Tensor
from casemate.checkpoint.weights import Reading, Weighed, weigh
from checkpoint.configs import Config
from checkpoint.families import SMALL
from checkpoint.written import tensors_of, write_folder


def folder_of(path: Path, config: Config) -> Checkpoint:
    found = read(write_folder(path, config))
    assert isinstance(found, Checkpoint)
    return found


def weighed(*tensors: tuple[str, str, tuple[int, ...], int], reading: Reading) -> Weighed:
    """Tensors by name, data type, shape and size in bytes."""
    return weigh([Tensor(name, dtype, shape, "x", 0, size) for name, dtype, shape, size in tensors], reading)


@pytest.mark.parametrize("family", SMALL)
def test_headers_and_config_of_a_whole_model_come_to_the_same_blocks(tmp_path: Path, family: str) -> None:
    config = SMALL[family]
    read_ones, computed = folder_of(tmp_path, config), checkpoint_from_config(config, tmp_path)
    assert read_ones.weights_from == "headers"
    assert read_ones.layers == computed.layers
    assert (read_ones.embedding, read_ones.head) == (computed.embedding, computed.head)
    assert (read_ones.draft, read_ones.tensors) == (computed.draft, computed.tensors)
    assert read_ones.caches == computed.caches
    assert not [note for note in read_ones.notes if "unknown names" in note]


def test_a_stored_copy_of_a_tied_head_is_not_counted(tmp_path: Path) -> None:
    config = SMALL["qwen2, tied"]
    tensors = {**tensors_of(config), "lm_head.weight": ("BF16", (320, 64))}
    found = read(write_folder(tmp_path, config, tensors))
    assert isinstance(found, Checkpoint)
    assert found.weights_bytes == checkpoint_from_config(config, tmp_path).weights_bytes


def test_a_draft_that_is_not_there_is_not_counted(tmp_path: Path) -> None:
    config = SMALL["qwen3_next"]
    tensors = {name: shape for name, shape in tensors_of(config).items() if not name.startswith("mtp.")}
    found = read(write_folder(tmp_path, config, tensors))
    assert isinstance(found, Checkpoint)
    assert found.draft is None
    assert not found.notes


def test_layers_beyond_those_that_the_config_tells_are_a_draft(tmp_path: Path) -> None:
    config = {**SMALL["deepseek_v3"], "num_nextn_predict_layers": 0}
    found = read(write_folder(tmp_path, config, tensors_of(SMALL["deepseek_v3"])))
    assert isinstance(found, Checkpoint)
    assert found.draft is not None
    assert found.draft.method == "mtp"
    assert len(found.layers) == 4


def test_unknown_names_count_as_copied_to_every_rank_and_are_told(tmp_path: Path) -> None:
    config = SMALL["llama"]
    tensors = {**tensors_of(config), "model.layers.0.flux\x1b[2J.weight": ("BF16", (8, 8))}
    found = read(write_folder(tmp_path, config, tensors))
    assert isinstance(found, Checkpoint)
    (note,) = found.notes
    assert note.startswith("1 tensors with unknown names")
    assert note.isprintable()
    assert found.layers[0].replicated_bytes == found.layers[1].replicated_bytes + 128


def test_layers_without_weights_are_told(tmp_path: Path) -> None:
    config = SMALL["llama"]
    tensors = {name: shape for name, shape in tensors_of(config).items() if ".layers.3." not in name}
    found = read(write_folder(tmp_path, config, tensors))
    assert isinstance(found, Checkpoint)
    assert "1 of 4 layers have no weights in these files" in found.notes


def test_a_folder_of_a_type_that_is_not_known_is_read_by_its_headers(tmp_path: Path) -> None:
    known = folder_of(tmp_path / "known", SMALL["llama"])
    other = folder_of(tmp_path / "other", {**SMALL["llama"], "model_type": "toy"})
    assert other.weights_bytes == known.weights_bytes
    assert other.layers == known.layers


@pytest.mark.parametrize(
    ("leaf", "dtype", "shape", "numbers"),
    [
        ("qweight", "I32", (8, 16), 8 * 16 * 8),
        ("qzeros", "I32", (1, 2), 0),
        ("scales", "F16", (1, 16), 0),
        ("g_idx", "I32", (64,), 0),
        ("weight_packed", "I32", (16, 8), 8 * 16 * 8),
        ("weight_packed", "U8", (16, 8), 16 * 8 * 2),
        ("weight_scale", "F8_E4M3", (16, 1), 0),
        ("weight", "U8", (64, 1), 128),
        ("weight.absmax", "F32", (2,), 0),
        ("weight.quant_state.bitsandbytes__nf4", "U8", (80,), 0),
        ("weight", "I8", (16, 16), 256),
        ("SCB", "F32", (16,), 0),
    ],
)
def test_packed_matrices_count_the_numbers_that_they_hold(
    leaf: str, dtype: str, shape: tuple[int, ...], numbers: int
) -> None:
    found = weighed((f"model.layers.0.mlp.up_proj.{leaf}", dtype, shape, 7), reading=Reading(layers=1))
    assert found.layers == (Block(sharded_bytes=7, parameters=numbers),)
    assert not found.unknown


def test_experts_of_pairs_hold_two_numbers_a_byte() -> None:
    tensor = ("layers.0.ffn.experts.3.w1.weight", "I8", (4, 8), 32)
    assert weighed(tensor, reading=Reading(layers=1, pairs=True)).layers[0].expert_parameters == 64
    assert weighed(tensor, reading=Reading(layers=1)).layers[0].expert_parameters == 32


def test_what_has_one_number_is_on_every_rank() -> None:
    found = weighed(("model.layers.0.mlp.up_proj.weight_scale", "F32", (), 4), reading=Reading(layers=1))
    assert found.layers == (Block(replicated_bytes=4),)


@pytest.mark.parametrize(
    ("name", "part", "share"),
    [
        ("model.layers.3.self_attn.o_proj.bias", "layer", Share.REPLICATED),
        ("model.layers.3.self_attn.q_proj.bias", "layer", Share.SHARDED),
        ("model.language_model.layers.3.mlp.experts.gate_up_proj", "layer", Share.EXPERT),
        ("model.layers.3.mlp.experts.down_proj_scales", "layer", Share.EXPERT),
        ("model.layers.3.mlp.shared_experts.down_proj.weight", "layer", Share.SHARDED),
        ("model.layers.3.self_attn.indexer.wk.weight", "layer", Share.REPLICATED),
        ("model.layers.3.block_sparse_moe.input_linear.weight", "layer", Share.EXPERT),
        ("transformer.h.3.mlp.c_fc.weight", "layer", Share.SHARDED),
        ("model.visual.blocks.3.attn.qkv.weight", "vision", Share.REPLICATED),
        ("vision_tower.vision_model.encoder.layers.3.mlp.fc1.weight", "vision", Share.REPLICATED),
        ("multi_modal_projector.linear_1.weight", "vision", Share.REPLICATED),
        ("mtp.layers.0.mlp.experts.1.up_proj.weight", "draft", Share.EXPERT),
        ("model.layers.61.shared_head.head.weight", "draft", Share.SHARDED),
        ("language_model.lm_head.weight", "head", Share.SHARDED),
        ("model.norm.weight", "head", Share.REPLICATED),
        ("transformer.wte.weight", "embedding", Share.SHARDED),
    ],
)
def test_a_name_tells_its_part_and_how_ranks_share_it(name: str, part: str, share: Share) -> None:
    place = place_of(name, layers=61)
    assert (place.part, place.share, place.known) == (part, share, True)


def test_the_number_of_a_draft_layer_counts_from_the_last_layer_of_the_model() -> None:
    assert place_of("model.layers.62.enorm.weight", layers=61).number == 1
    assert place_of("mtp.2.main_norm.weight", layers=43).number == 2


def test_bytes_are_those_of_the_headers_and_none_is_lost(tmp_path: Path) -> None:
    config = SMALL["deepseek_v4"]
    found = folder_of(tmp_path, config)
    header = (tmp_path / "model.safetensors").stat().st_size - found.weights_bytes
    assert 0 < header - 8 < 200 * found.tensors
    assert replace(found, notes=()).weights_bytes == checkpoint_from_config(config, tmp_path).weights_bytes
