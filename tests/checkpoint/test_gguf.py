from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from casemate.checkpoint.gguf import read_gguf
from casemate.errors import UsageError

TYPES: dict[str, int] = {"<B": 0, "<H": 2, "<I": 4, "<i": 5, "<f": 6, "<?": 7, "<Q": 10}
F32, Q4_K = 0, 12
FACTS: dict[str, Any] = {
    "general.architecture": "qwen2",
    "general.name": "A model",
    "qwen2.block_count": 4,
    "qwen2.context_length": 8192,
    "qwen2.embedding_length": 1024,
    "qwen2.attention.head_count": 16,
    "qwen2.attention.head_count_kv": 2,
}


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def value(content: Any) -> bytes:
    match content:
        case bytes():
            return content
        case str():
            return struct.pack("<I", 8) + text(content)
        case [str(), *_]:
            return struct.pack("<IIQ", 9, 8, len(content)) + b"".join(map(text, content))
        case list():
            return struct.pack(f"<IIQ{len(content)}I", 9, TYPES["<I"], len(content), *content)
        case _:
            return struct.pack("<II", TYPES["<I"], content)


def gguf(facts: dict[str, Any], *, version: int = 3, tensors: tuple[tuple[int, int], ...] = ((F32, 64),)) -> bytes:
    """A file with these facts and vectors of (type, length), all of them in place."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(facts))
    head += b"".join(text(key) + value(content) for key, content in facts.items())
    data_bytes = 0
    for kind, length in tensors:
        head += text("t") + struct.pack("<IQIQ", 1, length, kind, data_bytes)
        data_bytes += length * 4 if kind == F32 else length // 256 * 144
    return head + bytes(-len(head) % 32 + data_bytes)


def written(folder: Path, content: bytes) -> Path:
    path = folder / "model.gguf"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("version", [2, 3])
def test_a_header_gives_the_facts_of_its_model(version: int, tmp_path: Path) -> None:
    path = written(tmp_path, gguf(FACTS | {"tokenizer.ggml.tokens": ["a", "b"]}, version=version))
    checkpoint = read_gguf(path)
    assert (checkpoint.path, checkpoint.name, checkpoint.architecture) == (str(path), "A model", "qwen2")
    assert (checkpoint.layers, checkpoint.context_length) == (4, 8192)
    assert checkpoint.weights_bytes == path.stat().st_size
    assert checkpoint.kv_bytes_per_token == 2 * 4 * 2 * 64 * 2


@pytest.mark.parametrize(
    ("facts", "kv_bytes"),
    [
        ({"qwen2.attention.key_length": 128, "qwen2.attention.value_length": 128}, 2 * 4 * 2 * 128 * 2),
        ({"qwen2.attention.key_length": 192, "qwen2.attention.value_length": 128}, 4 * 2 * (192 + 128) * 2),
        ({"qwen2.attention.head_count_kv": [2, 0, 2, 0]}, 2 * 2 * 2 * 64 * 2),
    ],
    ids=["sizes of its own", "keys and values differ", "layers differ"],
)
def test_the_cache_follows_the_heads_of_each_layer(facts: dict[str, Any], kv_bytes: int, tmp_path: Path) -> None:
    assert read_gguf(written(tmp_path, gguf(FACTS | facts))).kv_bytes_per_token == kv_bytes


def test_without_a_number_of_key_value_heads_every_head_has_its_own(tmp_path: Path) -> None:
    facts = {key: fact for key, fact in FACTS.items() if not key.endswith("head_count_kv")}
    assert read_gguf(written(tmp_path, gguf(facts))).kv_bytes_per_token == 2 * 4 * 16 * 64 * 2


def test_a_model_without_a_name_is_called_like_its_file(tmp_path: Path) -> None:
    facts = {key: fact for key, fact in FACTS.items() if key != "general.name"}
    assert read_gguf(written(tmp_path, gguf(facts))).name == "model"


def test_control_characters_of_a_name_do_not_reach_the_terminal(tmp_path: Path) -> None:
    assert read_gguf(written(tmp_path, gguf(FACTS | {"general.name": "a\x1b[31m\nb"}))).name == "a?[31m?b"


@pytest.mark.parametrize(
    "content", [b"", b"GG", b"PK\x03\x04" + bytes(100), b"<html>not found</html>", b"GGML" + bytes(99)]
)
def test_what_does_not_begin_with_gguf_is_not_one(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"not a GGUF file.*model\.gguf.*casemate fetch") as caught:
        read_gguf(written(tmp_path, content))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("version", [0, 1, 4, 1 << 24])
def test_another_version_is_refused_by_its_number(version: int, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"its version is {version}"):
        read_gguf(written(tmp_path, gguf(FACTS, version=version)))


@pytest.mark.parametrize("tensors", [((F32, 64),), ((Q4_K, 512), (Q4_K, 256))], ids=["numbers", "blocks"])
def test_a_file_that_lacks_any_of_its_end_is_not_one(tensors: tuple[tuple[int, int], ...], tmp_path: Path) -> None:
    whole = gguf(FACTS, tensors=tensors)
    read_gguf(written(tmp_path, whole))
    for length in range(len(whole)):
        with pytest.raises(UsageError, match="not a GGUF file"):
            read_gguf(written(tmp_path, whole[:length]))


@pytest.mark.parametrize("key", [key for key in FACTS if key not in {"general.name", "qwen2.attention.head_count_kv"}])
def test_a_header_that_lacks_a_fact_is_refused_by_its_name(key: str, tmp_path: Path) -> None:
    facts = {name: fact for name, fact in FACTS.items() if name != key}
    with pytest.raises(UsageError, match=key):
        read_gguf(written(tmp_path, gguf(facts)))


@pytest.mark.parametrize(
    "facts",
    [
        {"qwen2.block_count": 1 << 31},
        {"qwen2.block_count": 0},
        {"qwen2.block_count": "four"},
        {"qwen2.block_count": struct.pack("<Iq", 11, -1)},
        {"qwen2.context_length": struct.pack("<If", 6, 8192.0)},
        {"qwen2.attention.head_count_kv": [2, 2]},
        {"a": struct.pack("<IQ", 8, 1 << 63)},
        {"a": struct.pack("<IIQ", 9, 8, 1 << 40)},
        {"a": struct.pack("<IIQ", 9, 4, 1 << 21)},
        {"a": struct.pack("<IIQ", 9, 9, 1) * 50},
        {"a": struct.pack("<I", 99)},
    ],
    ids=[
        "too many layers", "no layers", "layers in words", "negative", "a float", "another number of layers",
        "an endless text", "an endless array", "an array beyond the end", "arrays in arrays", "an unknown kind",
    ],
)  # fmt: skip
def test_absurd_values_are_refused_at_once(facts: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a GGUF file"):
        read_gguf(written(tmp_path, gguf(FACTS | facts)))


@pytest.mark.parametrize("counts", [(1 << 63, 0), (0, 1 << 63), (1, 1 << 20)])
def test_absurd_counts_are_refused_at_once(counts: tuple[int, int], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="would be many"):
        read_gguf(written(tmp_path, b"GGUF" + struct.pack("<IQQ", 3, *counts) + bytes(1000)))


@pytest.mark.parametrize("name", ["none.gguf", "folder"])
def test_what_cannot_be_read_is_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match=r"cannot be read: .*\(") as caught:
        read_gguf(tmp_path / name)
    assert "\n" not in str(caught.value)


@given(content=st.binary(max_size=400))
@example(content=b"GGUF" + struct.pack("<IQQ", 3, 0, 0))
def test_no_bytes_raise_anything_but_a_usage_error(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    for begin in (b"", b"GGUF\x03\x00\x00\x00"):
        with pytest.raises(UsageError):
            read_gguf(written(tmp_path_factory.getbasetemp(), begin + content))


@given(at=st.integers(0, 500), noise=st.binary(min_size=1, max_size=16))
def test_no_damage_raises_anything_but_a_usage_error(
    at: int, noise: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = gguf(FACTS | {"tokenizer.ggml.tokens": ["a", "b"], "qwen2.attention.head_count_kv": [2, 0, 2, 0]})
    path = written(tmp_path_factory.getbasetemp(), whole[:at] + noise + whole[at + len(noise) :])
    try:
        assert read_gguf(path).kv_bytes_per_token >= 0
    except UsageError as error:
        assert "not a GGUF file" in str(error)  # noqa: PT017 - damage may also hit a byte that nobody reads


@pytest.mark.model
def test_the_real_model_file_has_the_facts_that_its_publisher_states(model_file: Path) -> None:
    checkpoint = read_gguf(model_file)
    assert (checkpoint.architecture, checkpoint.layers, checkpoint.context_length) == ("qwen2", 24, 32768)
    assert checkpoint.kv_bytes_per_token == 2 * 24 * 2 * 64 * 2
