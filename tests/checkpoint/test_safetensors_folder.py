from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from casemate.checkpoint.listing import listed
from casemate.checkpoint.safetensors import INDEX, read_folder, read_index
from casemate.errors import UsageError
from checkpoint.test_safetensors import mutated
from checkpoint.weights import SHARDS, model_folder, weights, write_index

FIRST, SECOND = SHARDS


def hub_cache(root: Path) -> Path:
    """A snapshot as the hub's cache lays it out: links to blobs beside it."""
    repository = root / "models--toy--toy"
    whole = model_folder(repository / "whole")
    snapshot, blobs = repository / "snapshots" / "abc", repository / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for number, file in enumerate(sorted(whole.iterdir())):
        file.rename(blobs / str(number))
        (snapshot / file.name).symlink_to(Path("../../blobs") / str(number))
    whole.rmdir()
    return snapshot


def test_a_folder_has_the_tensors_of_all_files_that_its_index_names(tmp_path: Path) -> None:
    folder = read_folder(model_folder(tmp_path))
    assert {tensor.name: tensor.file for tensor in folder.tensors} == {
        name: file for file, shapes in SHARDS.items() for name in shapes
    }
    assert folder.index is not None
    assert folder.index.total_size == sum(tensor.size_bytes for tensor in folder.tensors)


def test_without_an_index_every_weight_file_counts(tmp_path: Path) -> None:
    folder = read_folder(model_folder(tmp_path, index=False))
    assert folder.index is None
    assert [header.file for header in folder.headers] == [FIRST, SECOND]


def test_a_weight_file_that_the_index_does_not_name_is_told_and_not_read(tmp_path: Path) -> None:
    model_folder(tmp_path)
    (tmp_path / "consolidated.safetensors").write_bytes(b"never read")
    folder = read_folder(tmp_path)
    assert folder.unnamed == ("consolidated.safetensors",)
    assert len(folder.headers) == 2


def test_a_snapshot_of_the_hubs_cache_is_read_through_its_links(tmp_path: Path) -> None:
    assert len(read_folder(hub_cache(tmp_path)).tensors) == 6


def test_a_link_out_of_the_folder_or_of_the_repositorys_cache_is_refused(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.safetensors"
    elsewhere.write_bytes(weights(SHARDS[FIRST]))
    for folder in (model_folder(tmp_path / "plain"), hub_cache(tmp_path / "cache")):
        (folder / FIRST).unlink()
        (folder / FIRST).symlink_to(elsewhere)
        with pytest.raises(UsageError, match="link that leads out"):
            read_folder(folder)


def test_a_link_within_the_folder_is_followed_and_one_that_leads_nowhere_is_not(tmp_path: Path) -> None:
    model_folder(tmp_path)
    (tmp_path / FIRST).rename(tmp_path / "first")
    (tmp_path / FIRST).symlink_to("first")
    assert len(read_folder(tmp_path).tensors) == 6
    (tmp_path / "first").rename(tmp_path / "gone")
    (tmp_path / "circle").symlink_to("circle")
    assert listed(tmp_path).odd == ("circle", FIRST)
    with pytest.raises(UsageError, match="not there"):
        read_folder(tmp_path)


def test_an_absent_shard_is_named(tmp_path: Path) -> None:
    model_folder(tmp_path)
    (tmp_path / SECOND).unlink()
    with pytest.raises(UsageError, match=SECOND):
        read_folder(tmp_path)


def test_a_fifo_in_place_of_a_shard_is_refused_without_waiting(tmp_path: Path) -> None:
    model_folder(tmp_path)
    (tmp_path / SECOND).unlink()
    os.mkfifo(tmp_path / SECOND)
    with pytest.raises(UsageError, match="is no file"):
        read_folder(tmp_path)


def test_a_folder_of_pickles_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    with pytest.raises(UsageError) as refused:
        read_folder(tmp_path)
    assert "run code when loaded" in refused.value.remedy


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "file", tmp_path / "absent"):
        with pytest.raises(UsageError, match="cannot be read"):
            read_folder(path)


@pytest.mark.parametrize(
    "file",
    ["../x.safetensors", "/etc/x.safetensors", "a/b.safetensors", "..\\x.safetensors", ".x.safetensors",
     "x.bin", "", "\x1b[2Jx.safetensors", "\u202ex.safetensors", "\0.safetensors"],
)  # fmt: skip
def test_an_index_names_plain_files_of_its_folder_or_is_refused(tmp_path: Path, file: str) -> None:
    model_folder(tmp_path)
    index = json.loads((tmp_path / INDEX).read_text())
    index["weight_map"]["lm_head.weight"] = file
    (tmp_path / INDEX).write_text(json.dumps(index))
    with pytest.raises(UsageError, match="it names") as refused:
        read_folder(tmp_path)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"weight_map": []}', '{"weight_map": {"a": 1}}', '{"weight_map": {"a": "b.safetensors"}} x',
     '{"weight_map": {"a": "b.safetensors", "a": "c.safetensors"}}', '{"metadata": ' + "[" * 3_000_000,
     '{"metadata": {"x": ' + "9" * 5000 + '}, "weight_map": {}}', '{"weight_map": {}, "weight_map": {}}'],
    ids=range(10),
)  # fmt: skip
def test_an_index_of_another_form_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / INDEX
    path.write_text(text)
    with pytest.raises(UsageError, match="not an index"):
        read_index(path)


@pytest.mark.parametrize(
    ("said", "understood"), [(7, 7), (1.6e11, 160_000_000_000), (1.5, None), (True, None), ("7", None), (-1, None)]
)
def test_the_total_of_an_index_is_a_whole_number_or_unknown(
    tmp_path: Path, said: object, understood: int | None
) -> None:
    write_index(tmp_path, {"a": "b.safetensors"}, total=said)
    assert read_index(tmp_path / INDEX).total_size == understood


def test_of_several_indexes_the_one_that_engines_look_for_rules(tmp_path: Path) -> None:
    model_folder(tmp_path)
    (tmp_path / "consolidated.safetensors.index.json").write_text("not read")
    assert len(read_folder(tmp_path).headers) == 2
    (tmp_path / INDEX).rename(tmp_path / "other.safetensors.index.json")
    with pytest.raises(UsageError, match="2 indexes"):
        read_folder(tmp_path)


def test_damage_of_an_index_ends_in_a_usage_error_or_in_names_of_this_folder(tmp_path: Path) -> None:
    chance = Random(5)
    path = model_folder(tmp_path) / INDEX
    whole = path.read_bytes()
    for _ in range(1000):
        path.write_bytes(mutated(whole, chance))
        with suppress(UsageError):
            assert all(file == Path(file).name and file.isprintable() for file in read_index(path).files)
