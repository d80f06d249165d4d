"""Figures of the checkpoint tools: a folder of the size of a large model, made of real headers over sparse data.

python bench/checkpoint.py                    46 files, 70,000 tensors, 160 GB: inspect and verify; 1 GB renamed
python bench/checkpoint.py --write-gb 10      the same with more to write
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from casemate.checkpoint.assembling import assemble
from casemate.checkpoint.inspecting import inspect
from casemate.checkpoint.remapping import layout_of, remapped
from casemate.checkpoint.rules import Rule, Rules
from casemate.checkpoint.safetensors import INDEX, read_folder, read_header
from casemate.checkpoint.verifying import verify

T = TypeVar("T")

FILES, TENSORS, TOTAL_BYTES = 46, 70_000, 160 * 10**9
MILLION = 1_000_000
LAYERS, EXPERTS = 43, 256


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write-gb", type=float, default=1.0)
    wanted = parser.parse_args()
    with TemporaryDirectory() as place:
        streamed(Path(place), int(wanted.write_gb * 1e9))  # the first, while the peak is low
        large(Path(place) / "large")
        hostile(Path(place) / "million.safetensors")


def large(folder: Path) -> None:
    """Time of `inspect` and `verify` on a folder of the size of a large mixture of experts."""
    names = [f"layers.{n % LAYERS}.ffn.experts.{n // LAYERS % EXPERTS}.w{n % 3 + 1}.{n}.weight" for n in range(TENSORS)]
    folder.mkdir()
    each = TOTAL_BYTES // TENSORS // 4096 * 4096
    places: dict[str, str] = {}
    for number in range(FILES):
        file = f"model-{number + 1:05}-of-{FILES:05}.safetensors"
        places |= sparse(folder / file, names[number::FILES], each_bytes=each)
    index = {"metadata": {"total_size": each * TENSORS}, "weight_map": places}
    (folder / INDEX).write_text(json.dumps(index))
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": LAYERS,
              "hidden_size": 4096, "vocab_size": 128, "num_attention_heads": 32, "intermediate_size": 4096}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    seen, wall_s, cpu_s = timed(lambda: inspect(folder))
    assert (seen.tensors, seen.unread) == (TENSORS, ())
    sound, verify_s, verify_cpu_s = timed(lambda: verify(folder))
    assert sound.is_clean
    print(f"{seen.tensor_bytes / 1e9:.0f} GB, {FILES} files, {TENSORS:,} tensors, parts {[p.name for p in seen.parts]}")
    print(f"inspect {wall_s:.2f} s ({cpu_s:.2f} s of CPU), verify {verify_s:.2f} s ({verify_cpu_s:.2f} s)", end="")
    print(f", peak memory {peak_bytes() / 1e6:.0f} MB")


def streamed(folder: Path, size_bytes: int) -> None:
    """Memory and speed of renaming: the peak may not grow with the data."""
    source = folder / "source"
    source.mkdir()
    sparse(
        source / "model.safetensors", [f"layers.{number}.weight" for number in range(64)], each_bytes=size_bytes // 64
    )
    model = read_folder(source)
    layout = layout_of(model, remapped(model, Rules((Rule(r"^layers\.", "model.layers."),))))
    before = peak_bytes()
    done, wall_s, _ = timed(lambda: assemble(layout, folder / "output"))
    grown = peak_bytes() - before
    print(
        f"remap {done.size_bytes / 1e9:.2f} GB in {wall_s:.2f} s, {done.size_bytes / wall_s / 1e9:.2f} GB/s, ", end=""
    )
    print(f"peak memory grew by {grown / 1e6:.1f} MB")


def hostile(path: Path) -> None:
    """Time and memory of the largest header that is taken."""
    sparse(path, [f"t{number}" for number in range(MILLION)], each_bytes=1)
    before = peak_bytes()
    header, wall_s, cpu_s = timed(lambda: read_header(path))
    assert len(header.tensors) == MILLION
    print(
        f"a header of {MILLION:,} tensors ({header.data_start / 1e6:.0f} MB) {wall_s:.2f} s ({cpu_s:.2f} s of CPU), ",
        end="",
    )
    print(f"peak memory grew by {(peak_bytes() - before) / 1e6:.0f} MB")


def sparse(path: Path, names: list[str], *, each_bytes: int) -> dict[str, str]:
    """A file of these tensors, whose data are a hole; their place in it by name."""
    entries = (
        f'"{name}":{{"dtype":"U8","shape":[{each_bytes}],"data_offsets":[{at * each_bytes},{(at + 1) * each_bytes}]}}'
        for at, name in enumerate(names)
    )
    header = b"{" + ",".join(entries).encode() + b"}"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    os.truncate(path, 8 + len(header) + each_bytes * len(names))
    return dict.fromkeys(names, path.name)


def timed(task: Callable[[], T]) -> tuple[T, float, float]:
    """What the task gives, its seconds of wall clock, and those of CPU (the machine may be busy with other things)."""
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    return task(), time.perf_counter() - wall_s, time.process_time() - cpu_s


def peak_bytes() -> int:
    """The most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
