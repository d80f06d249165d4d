from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import pytest

from casemate.checkpoint.facts import Checkpoint, Gguf, Grouped
from casemate.checkpoint.reading import read
from casemate.errors import UsageError
from checkpoint import configs
from checkpoint.configs import Config
from checkpoint.families import SMALL
from checkpoint.written import tensors_of, write_folder

SMALLEST = SMALL["llama"]


def checkpoint(path: Path, *, hub: Path | None = None) -> Checkpoint:
    found = read(path, hub=hub)
    assert isinstance(found, Checkpoint)
    return found


def write_config(folder: Path, config: Config) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return path


def write_index(folder: Path, *, total: object, files: dict[str, str] | None = None) -> None:
    index = {"metadata": {"total_size": total}, "weight_map": files or {"lm_head.weight": "model-1.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def write_gguf(path: Path) -> Path:
    def text(value: bytes) -> bytes:
        return struct.pack("<Q", len(value)) + value

    entries = {
        b"toy.block_count": 2,
        b"toy.attention.head_count": 4,
        b"toy.embedding_length": 64,
        b"toy.context_length": 512,
    }
    content = b"GGUF" + struct.pack("<IQQ", 3, 0, 1 + len(entries))
    content += text(b"general.architecture") + struct.pack("<I", 8) + text(b"toy")
    for key, value in entries.items():
        content += text(key) + struct.pack("<II", 4, value)
    path.write_bytes(content + bytes(64))
    return path


def hub_of(root: Path, *, revision: str = "abc", main: str | None = "abc\n") -> Path:
    repository = root / "models--org--name"
    write_folder(repository / "snapshots" / revision, SMALLEST)
    if main is not None:
        (repository / "refs").mkdir()
        (repository / "refs" / "main").write_text(main)
    return root


def test_a_folder_is_read_by_its_headers(tmp_path: Path) -> None:
    found = checkpoint(write_folder(tmp_path / "some-model", SMALLEST))
    assert (found.weights_from, found.name) == ("headers", "some-model")
    assert found.path == str(tmp_path / "some-model")


def test_headers_go_before_the_config_and_the_name(tmp_path: Path) -> None:
    halved = {name: ("I8", shape) for name, (_, shape) in tensors_of(SMALLEST).items()}
    found = checkpoint(write_folder(tmp_path / "Llama-3.1-405B", SMALLEST, halved))
    whole = checkpoint(write_folder(tmp_path / "x", SMALLEST))
    assert found.weights_bytes * 2 == whole.weights_bytes


def test_a_config_alone_is_computed(tmp_path: Path) -> None:
    found = checkpoint(write_config(tmp_path / "model", configs.LLAMA_8B))
    assert (found.weights_from, found.weights_bytes, found.name) == ("config", 16_060_522_496, "model")
    assert checkpoint(tmp_path / "model").weights_bytes == 16_060_522_496


def test_a_config_by_another_name_is_computed_too(tmp_path: Path) -> None:
    path = write_config(tmp_path, configs.LLAMA_8B).rename(tmp_path / "dsv4-flash-config.json")
    assert checkpoint(path).weights_bytes == 16_060_522_496


def test_an_index_without_weight_files_tells_the_total(tmp_path: Path) -> None:
    write_config(tmp_path, {**configs.LLAMA_70B, "quantization_config": {"bits": 4, "quant_method": "gptq"}})
    write_index(tmp_path, total=41_600_000_000)
    found = checkpoint(tmp_path)
    assert (found.weights_from, found.weights_bytes) == ("index", 41_600_000_000)
    assert round(found.weights_bytes / 2**30, 2) == 38.74
    (cache,) = found.caches
    assert isinstance(cache, Grouped)
    assert 2 * len(cache.layers) * cache.kv_heads * cache.key_size * 2 == 327_680
    assert found.layers[0].sharded_bytes > found.layers[0].replicated_bytes


def test_an_index_does_with_a_config_of_few_keys(tmp_path: Path) -> None:
    few = {
        "torch_dtype": "float16",
        "num_hidden_layers": 80,
        "hidden_size": 8192,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "quantization_config": {"bits": 4, "quant_method": "gptq"},
    }
    write_config(tmp_path, few)
    write_index(tmp_path, total=41_600_000_000)
    found = checkpoint(tmp_path)
    assert (found.weights_bytes, len(found.layers), found.kv_heads) == (41_600_000_000, 80, 8)
    assert any("vocab_size; usual proportions are assumed" in note for note in found.notes)


def test_an_index_tells_the_total_of_a_method_that_is_not_known(tmp_path: Path) -> None:
    write_config(tmp_path, {**configs.LLAMA_8B, "quantization_config": {"quant_method": "aqlm"}})
    write_index(tmp_path, total=4_000_000_000)
    found = checkpoint(tmp_path)
    assert (found.weights_bytes, found.quantization) == (4_000_000_000, "aqlm")


@pytest.mark.parametrize("total", [1, 7, 2**62])
def test_no_byte_of_an_odd_total_is_lost(tmp_path: Path, total: int) -> None:
    write_config(tmp_path, SMALL["deepseek_v4"])
    write_index(tmp_path, total=total)
    assert checkpoint(tmp_path).weights_bytes == total


def test_an_index_without_a_total_leaves_the_config(tmp_path: Path) -> None:
    write_config(tmp_path, configs.LLAMA_8B)
    write_index(tmp_path, total="much")
    found = checkpoint(tmp_path)
    assert (found.weights_from, found.weights_bytes) == ("config", 16_060_522_496)


def test_half_a_download_is_told_and_not_weighed(tmp_path: Path) -> None:
    write_folder(tmp_path, SMALLEST)
    write_index(tmp_path, total=900, files={"a": "model.safetensors", "b": "model-2.safetensors"})
    found = checkpoint(tmp_path)
    assert found.weights_bytes == 900
    assert "1 of 2 weight files are not there, so no header was read" in found.notes


def test_a_method_whose_layout_is_not_known_is_read_by_its_headers(tmp_path: Path) -> None:
    config = {**SMALLEST, "quantization_config": {"quant_method": "aqlm"}}
    found = checkpoint(write_folder(tmp_path, config, tensors_of(SMALLEST)))
    assert (found.quantization, found.weights_from) == ("aqlm", "headers")


def test_a_gguf_file_and_a_folder_with_one_are_read_as_such(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "toy.gguf")
    assert isinstance(read(path), Gguf)
    assert read(tmp_path) == read(path)


def test_of_two_gguf_files_none_is_chosen(tmp_path: Path) -> None:
    write_gguf(tmp_path / "a.gguf")
    write_gguf(tmp_path / "b.gguf")
    with pytest.raises(UsageError, match="2 GGUF files"):
        read(tmp_path)


def test_a_hub_id_is_looked_up_in_the_cache_that_is_given(tmp_path: Path) -> None:
    found = checkpoint(Path("org/name"), hub=hub_of(tmp_path))
    assert found.weights_from == "headers"
    assert found.path.endswith("/snapshots/abc")


def test_the_folder_of_a_repository_in_the_cache_stands_for_its_snapshot(tmp_path: Path) -> None:
    repository = hub_of(tmp_path) / "models--org--name"
    write_folder(repository / "snapshots" / "older", SMALL["qwen3"])
    assert checkpoint(repository).model_type == "llama"


def test_an_only_snapshot_does_without_a_reference(tmp_path: Path) -> None:
    assert checkpoint(Path("org/name"), hub=hub_of(tmp_path, main=None)).model_type == "llama"


@pytest.mark.parametrize("main", ["../../..", "/etc", "..", "", "none\x00", "no-such"])
def test_a_reference_that_leads_elsewhere_is_not_followed(tmp_path: Path, main: str) -> None:
    hub = hub_of(tmp_path, main=main)
    write_folder(hub / "models--org--name" / "snapshots" / "second", SMALLEST)
    with pytest.raises(UsageError, match="2 snapshots"):
        read(Path("org/name"), hub=hub)


@pytest.mark.parametrize("hub", [None, Path("nowhere")])
def test_a_hub_id_that_is_not_here_says_what_to_give_instead(hub: Path | None) -> None:
    with pytest.raises(UsageError, match="org/name is not on this machine") as caught:
        read(Path("org/name"), hub=hub)
    assert "config.json" in caught.value.remedy


@pytest.mark.parametrize("path", ["nowhere", "a/b/c", "x\x00y", "../..\x1b[2J", "\udcff"])
def test_what_is_not_there_is_refused_in_one_line(path: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(Path(path))
    assert str(caught.value).isprintable()


def test_an_empty_folder_and_a_file_of_another_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no config\.json and no GGUF file"):
        read(tmp_path)
    (tmp_path / "model.bin").write_bytes(b"PK")
    with pytest.raises(UsageError, match="neither a model folder"):
        read(tmp_path / "model.bin")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    for path in (tmp_path, tmp_path / "config.json"):
        with pytest.raises(UsageError):
            read(path)


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    outside = write_config(tmp_path / "outside", configs.LLAMA_8B)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").symlink_to(outside)
    with pytest.raises(UsageError, match=r"no config\.json"):
        read(tmp_path / "model")


def test_a_header_that_lies_is_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, SMALLEST)
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[:-1])
    with pytest.raises(UsageError, match="cut off"):
        read(folder)
