from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from casemate.checkpoint.inspecting import SAFE_ROUTE, inspect
from casemate.errors import UsageError
from checkpoint.weights import SHARDS, Shapes, model_folder, weights

FIRST, SECOND = SHARDS
MIXTURE: dict[str, Shapes] = {
    "model.safetensors": {
        "model.embed_tokens.weight": ("BF16", (64, 8)),
        "model.norm.weight": ("BF16", (8,)),
        "lm_head.weight": ("BF16", (64, 8)),
        **{f"model.layers.{n}.self_attn.{p}_proj.weight": ("BF16", (8, 8)) for n in range(2) for p in "qkvo"},
        **{f"model.layers.{n}.block_sparse_moe.gate.weight": ("BF16", (4, 8)) for n in range(2)},
        **{f"model.layers.{n}.block_sparse_moe.experts.{e}.w{w}.weight": ("F8_E4M3", (8, 8))
           for n in range(2) for e in range(4) for w in (1, 2, 3)},
    }
}  # fmt: skip
CONFIG = {
    "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "num_hidden_layers": 2, "hidden_size": 8,
    "vocab_size": 64, "num_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": 8,
    "num_local_experts": 4, "num_experts_per_tok": 2, "max_position_embeddings": 64, "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "fp8"},
}  # fmt: skip


def with_config(folder: Path, config: Any) -> Path:
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_a_folder_tells_architecture_types_files_and_biggest_tensors(tmp_path: Path) -> None:
    seen = inspect(model_folder(tmp_path))
    assert (seen.architecture, seen.model_type, seen.tensors, seen.tensor_bytes) == ("ToyForCausalLM", "toy", 6, 340)
    assert [(a.dtype, a.tensors, a.numbers, a.size_bytes) for a in seen.dtypes] == [
        ("BF16", 2, 128, 256),
        ("F8_E4M3", 2, 64, 64),
        ("F32", 2, 5, 20),
    ]
    assert [(file.name, file.tensors) for file in seen.files] == [(FIRST, 3), (SECOND, 3)]
    assert [tensor.size_bytes for tensor in seen.biggest] == [128, 128, 32, 32, 12, 8]


def test_bytes_are_told_by_part_where_the_config_tells_the_parts(tmp_path: Path) -> None:
    seen = inspect(with_config(model_folder(tmp_path, MIXTURE, index=False), CONFIG))
    parts = {part.name: part.size_bytes for part in seen.parts}
    assert parts["experts"] == 2 * 4 * 3 * 64
    assert parts["embedding"] == 64 * 8 * 2
    assert parts["layers"] == 2 * (4 * 128 + 64)
    assert sum(parts.values()) == seen.tensor_bytes
    assert seen.quantization == "fp8"


@pytest.mark.parametrize(
    "config", [{}, {"architectures": "x"}, {"architectures": [[[]]], "model_type": 7}, [], None, "x"], ids=str
)
def test_a_config_that_tells_nothing_leaves_a_note_and_the_bytes(tmp_path: Path, config: Any) -> None:
    seen = inspect(with_config(model_folder(tmp_path), config))
    assert seen.tensors == 6
    assert seen.parts == ()
    assert seen.notes or config == {}


def test_a_folder_without_a_config_says_so(tmp_path: Path) -> None:
    (model_folder(tmp_path) / "config.json").unlink()
    assert inspect(tmp_path).notes == ("there is no config.json: the architecture is not known",)


def test_a_config_that_is_hostile_ends_in_a_note(tmp_path: Path) -> None:
    (model_folder(tmp_path) / "config.json").write_text('{"a":' * 50_000)
    assert inspect(tmp_path).notes


def test_pickles_are_named_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "optimizer.pt")  # opening it would wait for ever
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x02crm")
    (tmp_path / "model.CKPT").write_bytes(b"PK\x03\x04")
    (tmp_path / "original").mkdir()
    (tmp_path / "original" / "consolidated.00.pth").write_bytes(b"")
    seen = inspect(tmp_path)
    assert {pickle.name: pickle.size_bytes for pickle in seen.pickles} == {
        "model.CKPT": 4,
        "pytorch_model.bin": 5,
        "original/consolidated.00.pth": 0,
    }
    assert "optimizer.pt is neither a file nor a folder" in seen.notes
    for route in ("weights_only=True", "--network none", "CVE-2025-32434", "save_file"):
        assert route in SAFE_ROUTE


@pytest.mark.parametrize("name", ["model.bin", "model.PT", "model.pth", "model.ckpt", "model.pkl"])
def test_a_single_pickle_is_refused_with_the_safe_route(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\x80\x02")
    with pytest.raises(UsageError) as refused:
        inspect(tmp_path / name)
    assert refused.value.remedy == SAFE_ROUTE


def test_a_single_file_is_told_without_its_folder(tmp_path: Path) -> None:
    seen = inspect(model_folder(tmp_path) / FIRST)
    assert (seen.tensors, seen.architecture, seen.licence) == (3, "", ())


def test_a_gguf_file_is_known_by_its_first_bytes_alone_or_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(gguf())
    (tmp_path / "renamed").write_bytes(gguf())
    (tmp_path / "broken.gguf").write_bytes(gguf()[:-1])
    for path in (tmp_path, tmp_path / "renamed"):
        (facts,) = inspect(path).ggufs
        assert (facts.architecture, facts.layers, facts.context_length) == ("llama", 1, 64)
    assert [unread.path for unread in inspect(tmp_path).unread] == ["broken.gguf"]


def test_damaged_absent_and_linked_shards_are_told_and_the_others_counted(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    (folder / FIRST).write_bytes(b"")
    seen = inspect(folder)
    assert [(unread.path, unread.reason) for unread in seen.unread] == [
        (FIRST, "not a safetensors file: it has 0 bytes")
    ]
    assert seen.tensors == 3
    (folder / FIRST).unlink()
    assert [unread.reason for unread in inspect(folder).unread] == ["not there"]
    (tmp_path / "elsewhere").write_bytes(weights(SHARDS[FIRST]))
    (folder / FIRST).symlink_to(tmp_path / "elsewhere")
    assert [unread.reason for unread in inspect(folder).unread] == ["a link that leads out of the folder"]


def test_a_damaged_index_is_told_and_every_file_read(tmp_path: Path) -> None:
    folder = model_folder(tmp_path)
    (folder / "model.safetensors.index.json").write_text("{}")
    seen = inspect(folder)
    assert seen.tensors == 6
    assert [unread.path for unread in seen.unread] == ["the index"]


def test_code_and_unnamed_weights_that_came_along_are_told(tmp_path: Path) -> None:
    folder = model_folder(tmp_path)
    (folder / "modeling_toy.py").write_text("raise SystemExit")
    (folder / "extra.safetensors").write_bytes(b"")
    seen = inspect(folder)
    assert (seen.code, seen.unnamed, seen.unread) == (("modeling_toy.py",), ("extra.safetensors",), ())


CARD = "---\n{}\nlanguage: en\n---\n# A model\nlicense: not here\n"
MIT = (
    "MIT License\n\nCopyright\n\nPermission is hereby granted, free of charge, to any person obtaining a copy\nof this"
)
APACHE = "\n                                 Apache License\n                           Version 2.0, January 2004\n"


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, []),
        ({"README.md": CARD.format("license: mit")}, ["mit"]),
        ({"README.md": CARD.format("license: 'apache-2.0'  # really")}, ["apache-2.0"]),
        ({"README.md": CARD.format("license:\n- mit\n- bsd-3-clause")}, ["mit, bsd-3-clause"]),
        ({"README.md": CARD.format("license: other\nlicense_name: toy-model\nlicense_link: LICENSE")}, ["toy-model"]),
        ({"README.md": CARD.format("tags:\n- license: x")}, []),
        ({"README.md": "license: mit\n"}, []),
        ({"README.md": "---"}, []),
        ({"README.md": CARD.format("license: \x1b[2Jmit")}, ["␛[2Jmit"]),
        ({"LICENSE": MIT}, ["MIT"]),
        ({"LICENSE.txt": APACHE}, ["Apache-2.0"]),
        ({"LICENSE-MODEL": "# TOY LICENSE AGREEMENT\nVersion 1"}, ["TOY LICENSE AGREEMENT"]),
        ({"LICENCE": MIT.replace("MIT", "Modified MIT")}, ["Modified MIT License"]),
        ({"LICENSE": " \n \n"}, []),
        ({"LICENSE": "#\n"}, []),
        ({"README.md": CARD.format("license: mit"), "LICENSE": APACHE}, ["mit", "Apache-2.0"]),
        ({"config.json": '{"license": "gemma"}'}, ["gemma"]),
    ],
    ids=range(17),
)  # fmt: skip
def test_the_licence_is_what_card_licence_file_and_config_say(
    tmp_path: Path, files: dict[str, str], says: list[str]
) -> None:
    (tmp_path / "model.safetensors").write_bytes(weights({}))
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert [statement.says for statement in inspect(tmp_path).licence] == says


def gguf() -> bytes:
    """A small model file in GGUF 3, one tensor of four bytes."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    numbers = {"block_count": 1, "context_length": 64, "embedding_length": 8, "attention.head_count": 2}
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 1 + len(numbers))
    head += text("general.architecture") + struct.pack("<I", 8) + text("llama")
    head += b"".join(text(f"llama.{key}") + struct.pack("<II", 4, value) for key, value in numbers.items())
    head += text("t") + struct.pack("<IQIQ", 1, 1, 0, 0)
    return head + bytes(-len(head) % 32 + 4)
