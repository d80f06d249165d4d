from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from casemate.checkpoint.entry import BITS
from casemate.checkpoint.safetensors import read_header
from casemate.errors import UsageError
from checkpoint.weights import framed, weights

VALID = weights({"a": ("BF16", (2, 3)), "b.c": ("F32", ()), "empty": ("U8", (0, 7))}, metadata={"format": "pt"})


def written(folder: Path, content: bytes, name: str = "model.safetensors") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def entry(dtype: Any = "U8", shape: Any = (1,), offsets: Any = (0, 1), **more: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets, **more}


def refusal(folder: Path, content: bytes) -> str:
    with pytest.raises(UsageError) as refused:
        read_header(written(folder, content))
    assert "model.safetensors" in refused.value.where
    assert str(refused.value).isprintable()
    return refused.value.what


def test_a_header_tells_names_types_shapes_and_places_in_the_file(tmp_path: Path) -> None:
    header = read_header(written(tmp_path, VALID))
    first, second, third = header.tensors
    assert (first.name, first.dtype, first.shape, first.file) == ("a", "BF16", (2, 3), "model.safetensors")
    assert (first.start, first.end, second.size_bytes, third.size_bytes) == (
        header.data_start,
        header.data_start + 12,
        4,
        0,
    )
    assert second.shape == ()
    assert header.metadata == (("format", "pt"),)
    assert header.size_bytes == header.needed_bytes == len(VALID)


def test_the_form_of_the_json_does_not_matter(tmp_path: Path) -> None:
    header = {"b": {"data_offsets": [1, 3], "shape": [2], "later": [1], "dtype": "I8"}, "é\n": entry()}
    for spaces in (None, 2):
        names = [
            t.name
            for t in read_header(written(tmp_path, framed(json.dumps(header, indent=spaces).encode(), b"xyz"))).tensors
        ]
        assert names == ["b", "é\n"]


@pytest.mark.parametrize("dtype", BITS)
def test_every_data_type_of_the_format_is_sized_in_bits(tmp_path: Path, dtype: str) -> None:
    size = BITS[dtype]  # eight numbers
    path = written(tmp_path, framed({"x": entry(dtype, [8], [0, size])}, bytes(size)))
    assert read_header(path).tensors[0].size_bytes == size
    assert "bytes, not" in refusal(tmp_path, framed({"x": entry(dtype, [16], [0, size])}, bytes(size)))


def test_numbers_smaller_than_a_byte_must_end_at_one(tmp_path: Path) -> None:
    assert "do not end at a byte" in refusal(tmp_path, framed({"x": entry("F4", [3], [0, 2])}, b"12"))


@pytest.mark.parametrize(
    ("offsets", "reason"),
    [
        ({"a": (0, 2), "b": (1, 3), "c": (3, 4)}, "overlaps"),
        ({"a": (0, 1), "b": (2, 4)}, "leaves a gap"),
        ({"a": (1, 4)}, "leaves a gap"),
        ({"a": (0, 2), "b": (0, 2), "c": (2, 4)}, "overlaps"),
        ({"a": (4, 0)}, "ends before it begins"),
        ({"a": (0, 4), "b": (4, 9)}, "cut off"),
        ({"a": (0, 3)}, "longer than"),
        ({}, "longer than"),
    ],
)
def test_tensors_must_cover_the_data_once(tmp_path: Path, offsets: dict[str, tuple[int, int]], reason: str) -> None:
    header = {name: entry("U8", [max(0, end - start)], [start, end]) for name, (start, end) in offsets.items()}
    assert reason in refusal(tmp_path, framed(header, b"data"))


@pytest.mark.parametrize(
    "wrong",
    [
        entry(shape=[-1]),
        entry(shape=[1.0]),
        entry(shape=[True]),
        entry(shape=[10**30]),
        entry(shape=[2**62, 2**62]),
        entry(shape=[1] * 65),
        entry(shape="1"),
        entry(shape=None),
        entry(offsets=[0]),
        entry(offsets=[0, 1, 2]),
        entry(offsets=[-1, 0]),
        entry(offsets=[0, "1"]),
        entry(dtype="F128"),
        entry(dtype=7),
        entry(dtype="\x1b[2J"),
        {"dtype": "U8", "shape": [1]},
        {},
        [],
        None,
        7,
    ],
    ids=str,
)
def test_an_entry_that_is_not_of_the_form_is_refused(tmp_path: Path, wrong: Any) -> None:
    refusal(tmp_path, framed({"x": wrong}, b"1"))


@pytest.mark.parametrize(
    "header",
    [
        b"[]",
        b"null",
        b"",
        b"{",
        b'{"x":',
        b'{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}',
        b'{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}} x',
        b'{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},}',
        b'{"x":{"dtype":"U8","shape":[01],"data_offsets":[0,1]}}',
        b'{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"x":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}}',
        b'{"x":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
        b'{"\xff":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
        b'{"\\ud800":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
        b'{"\\q":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
        b'{"__metadata__":{"a":1},"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
        b'{"__metadata__":{"a":"1","a":"2"},"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
        b' {"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
        b'{"' + b"n" * 5000 + b'":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
        b'{"x":' + b"[" * 100_000,
        b'{"x":{"a":' + b"[" * 100_000,
        b'{"x":{"a":' + b'{"b":' * 100_000,
    ],
    ids=range(21),
)
def test_a_header_that_is_not_an_object_of_entries_is_refused(tmp_path: Path, header: bytes) -> None:
    refusal(tmp_path, framed(header, b"1"))


def test_an_unfit_length_of_the_header_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    assert "header would have" in refusal(tmp_path, b"\xff" * 8 + b"{}")
    assert "header would have" in refusal(tmp_path, (9).to_bytes(8, "little") + b"{}      ")
    assert "it has 3 bytes" in refusal(tmp_path, b"abc")
    assert "it has 0 bytes" in refusal(tmp_path, b"")
    path = tmp_path / "sparse.safetensors"
    path.write_bytes((100_000_001).to_bytes(8, "little"))
    os.truncate(path, 1 << 40)
    with pytest.raises(UsageError, match="100000000 are the most"):
        read_header(path)


@pytest.mark.parametrize(
    "start", [b"PK\x03\x04\x00\x00\x08\x08", b"\x80\x02\x8a\x0al\xfc\x9cF", b"\x80\x04\x95\x10" + bytes(4)]
)
def test_a_pickle_under_a_safe_name_is_called_one(tmp_path: Path, start: bytes) -> None:
    assert "pickle" in refusal(tmp_path, start + b"archive/data.pkl" * 9)


def test_a_header_of_endless_small_things_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    notes = b",".join(b'"%d":""' % number for number in range(100_000))
    assert "more than 65536 texts" in refusal(tmp_path, framed(b'{"__metadata__":{%b}}' % notes))
    others = b",".join(b'"%d":0' % number for number in range(100_000))
    assert "does not tell its dtype" in refusal(tmp_path, framed(b'{"x":{%b}}' % others))


def test_a_fifo_or_a_device_is_refused_at_once(tmp_path: Path) -> None:
    fifo = tmp_path / "model.safetensors"
    os.mkfifo(fifo)
    for path in (fifo, Path("/dev/zero"), tmp_path):
        with pytest.raises(UsageError, match=r"regular file|cannot be read"):
            read_header(path)


def test_an_absent_file_and_a_name_with_a_zero_byte_are_usage_errors(tmp_path: Path) -> None:
    for name in ("absent", "a\0b", "x" * 5000):
        with pytest.raises(UsageError):
            read_header(tmp_path / name)


def test_a_file_that_was_cut_off_is_read_where_the_caller_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, VALID[:-3])
    with pytest.raises(UsageError, match="cut off"):
        read_header(path)
    header = read_header(path, short=True)
    assert header.needed_bytes - header.size_bytes == 3


def test_damage_of_any_kind_ends_in_a_usage_error_or_in_a_header_that_adds_up(tmp_path: Path) -> None:
    chance = Random(4)
    for _ in range(3000):
        path = written(tmp_path, mutated(VALID, chance))
        with suppress(UsageError):
            header = read_header(path)
            assert header.size_bytes == path.stat().st_size == header.needed_bytes
            assert sum(tensor.size_bytes for tensor in header.tensors) == header.size_bytes - header.data_start


TOKENS = (
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"-1",
    b"1e9",
    b"\\u0000",
    b"\\",
    b"null",
    b"\xc3",
    b"9" * 40,
    b'"U8"',
)


def mutated(content: bytes, chance: Random) -> bytes:
    """The content with one to four changes: a bit, a token of JSON, a cut, a piece twice."""
    changed = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(changed) + 1)
        match chance.randrange(5):
            case 0 if at < len(changed):
                changed[at] ^= 1 << chance.randrange(8)
            case 1:
                changed[at:at] = chance.choice(TOKENS)
            case 2:
                del changed[at : at + chance.randint(1, 12)]
            case 3:
                changed[at:at] = changed[at : at + chance.randint(1, 60)]
            case _:
                changed[:8] = chance.randrange(1 << chance.choice((8, 9, 64))).to_bytes(8, "little")
    return bytes(changed)
