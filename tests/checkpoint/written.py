"""Writes a model folder as its config says that it would be: every tensor under its own name, in headers that are true.

The data is one hole in the file, so that a folder takes no room.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import ceil, prod
from pathlib import Path

from casemate.checkpoint.config import Told, tell
from casemate.checkpoint.parts import Part, Weight
from checkpoint.configs import Config

Shape = tuple[str, tuple[int, ...]]

_DTYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64"}
_SIZES = {"F32": 4, "F16": 2, "BF16": 2, "I64": 8, "F8_E4M3": 1, "F8_E8M0": 1, "I8": 1}


def tensors_of(config: Config) -> dict[str, Shape]:
    """Every tensor of a model of this config, unpacked or in DeepSeek's FP8 and FP4."""
    told = tell(config, Path("model"))
    found: dict[str, Shape] = {}
    for prefix, part in _parts(told):
        for weight in part:
            head = part is told.anatomy.outside.head
            packed = told.storage.stored(weight, prefix + weight.name, head=head)[1] > weight.copies
            found.update(_stored(told, prefix, weight, packed=packed))
    return found


def write_folder(folder: Path, config: Config, tensors: dict[str, Shape] | None = None) -> Path:
    """A folder with this config and one file of these tensors (those of the config where none are given)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    header, at = {}, 0
    for name, (dtype, shape) in (tensors_of(config) if tensors is None else tensors).items():
        size = prod(shape) * _SIZES[dtype]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + at)
    return folder


def _parts(told: Told) -> Iterator[tuple[str, Part]]:
    outside = told.anatomy.outside
    for number, layer in enumerate(told.anatomy.layers):
        yield f"{told.anatomy.prefix}{number}.", layer
    for part in (outside.embedding, outside.head, *outside.draft):
        yield "", part


def _stored(told: Told, prefix: str, weight: Weight, *, packed: bool) -> Iterator[tuple[str, Shape]]:
    for copy in range(1 if weight.fused else weight.copies):
        name = prefix + weight.name.replace("{}", str(copy))
        if packed:
            yield from _fp8_or_fp4(told, name, weight)
            continue
        shape = (weight.copies, *weight.shape) if weight.fused else weight.shape
        bare = not weight.linear or (weight.fused and "experts." in weight.name)
        yield (name if bare else f"{name}.weight"), (_DTYPES[weight.dtype or told.storage.dtype], shape)


def _fp8_or_fp4(told: Told, name: str, weight: Weight) -> Iterator[tuple[str, Shape]]:
    out, into = weight.shape
    own = told.model_type == "deepseek_v4"
    if own and ".experts." in name:
        yield f"{name}.weight", ("I8", (out, into // 2))
        yield f"{name}.scale", ("F8_E8M0", (out, into // 32))
        return
    yield f"{name}.weight", ("F8_E4M3", (out, into))
    scale = ("F8_E8M0" if own else "F32", (ceil(out / 128), ceil(into / 128)))
    yield (f"{name}.scale" if own else f"{name}.weight_scale_inv"), scale
