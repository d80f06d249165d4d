"""Makes small safetensors files and model folders in the real format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

BYTES = {"BOOL": 1, "U8": 1, "F8_E4M3": 1, "BF16": 2, "F16": 2, "F32": 4, "I64": 8}

Shapes = Mapping[str, tuple[str, tuple[int, ...]]]
"""Tensor name to data type and shape."""

SHARDS: dict[str, Shapes] = {
    "model-00001-of-00002.safetensors": {
        "model.embed_tokens.weight": ("BF16", (16, 4)),
        "model.layers.0.mlp.up.weight": ("F8_E4M3", (8, 4)),
        "model.layers.0.mlp.up.scale": ("F32", (2,)),
    },
    "model-00002-of-00002.safetensors": {
        "model.layers.1.mlp.up.weight": ("F8_E4M3", (8, 4)),
        "model.layers.1.rotary.inv_freq": ("F32", (3,)),
        "lm_head.weight": ("BF16", (16, 4)),
    },
}


def framed(header: bytes | dict[str, Any], data: bytes = b"") -> bytes:
    """A file of this header and data; the header is padded as writers do."""
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


def weights(shapes: Shapes, *, metadata: dict[str, str] | None = None, seed: int = 0) -> bytes:
    """A whole file: tensors one behind the other, filled with bytes that no other tensor has."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    data = b""
    for name, (dtype, shape) in shapes.items():
        size = BYTES[dtype]
        for number in shape:
            size *= number
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + size]}
        data += Random(f"{seed} {name}").randbytes(size)
    return framed(header, data)


def read_back(path: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Every tensor of a file with its data, read without the product's reader."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    found = json.loads(content[8:start])
    found.pop("__metadata__", None)
    return {
        name: (item["dtype"], tuple(item["shape"]), content[start + item["data_offsets"][0] :][: _length(item)])
        for name, item in found.items()
    }


def model_folder(folder: Path, shards: Mapping[str, Shapes] | None = None, *, index: bool = True) -> Path:
    """A folder with config, tokenizer, licence and weight files, and an index that is true."""
    shards = SHARDS if shards is None else shards
    folder.mkdir(parents=True, exist_ok=True)
    for name, shapes in shards.items():
        (folder / name).write_bytes(weights(shapes, metadata={"format": "pt"}))
    if index:
        write_index(folder, {tensor: name for name, shapes in shards.items() for tensor in shapes})
    config = {"architectures": ["ToyForCausalLM"], "model_type": "toy", "num_hidden_layers": 2}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text('{"version": "1.0"}')
    (folder / "README.md").write_text("---\nlicense: apache-2.0\nlanguage:\n- en\n---\n# Toy\n")
    return folder


def write_index(folder: Path, weight_map: Mapping[str, str], *, total: object = None) -> None:
    """The index of these places; `total` instead of the true number of bytes."""
    size = sum(len(data) for name in set(weight_map.values()) for _, _, data in _held(folder / name))
    index = {"metadata": {"total_size": size if total is None else total}, "weight_map": dict(weight_map)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))


def _held(path: Path) -> list[tuple[str, tuple[int, ...], bytes]]:
    return list(read_back(path).values()) if path.exists() else []


def _length(item: dict[str, Any]) -> int:
    start, end = item["data_offsets"]
    return int(end - start)
