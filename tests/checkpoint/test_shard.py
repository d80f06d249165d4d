from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import pytest

from casemate.checkpoint.assembling import assemble
from casemate.checkpoint.safetensors import INDEX, read_folder
from casemate.checkpoint.sharding import parsed_size, sharded
from casemate.errors import UsageError
from checkpoint.weights import SHARDS, model_folder, read_back

TWO_BIG = {
    "model.safetensors": {f"layers.{number}.weight": ("BF16", (512, 512)) for number in range(6)},
}
"""Six tensors of half a MiB."""


def tensors_of(folder: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    return {name: tensor for file in folder.glob("*.safetensors") for name, tensor in read_back(file).items()}


def shard(source: Path, output: Path, most_bytes: int) -> Path:
    return assemble(sharded(read_folder(source), most_bytes=most_bytes), output).output


@pytest.mark.parametrize("most_bytes", [300, 500, 1000, 10**9])
def test_files_stay_within_the_limit_and_every_tensor_within_its_bytes(tmp_path: Path, most_bytes: int) -> None:
    source = model_folder(tmp_path / "source")
    output = shard(source, tmp_path / "output", most_bytes)
    assert tensors_of(output) == tensors_of(source)
    for header in read_folder(output).headers:
        assert header.size_bytes <= most_bytes or len(header.tensors) == 1


@pytest.mark.parametrize("index", [True, False])
def test_one_big_limit_merges_all_into_one_file_that_needs_no_index(tmp_path: Path, *, index: bool) -> None:
    output = shard(model_folder(tmp_path / "source", index=index), tmp_path / "output", 10**9)
    assert [file.name for file in output.glob("*.safetensors*")] == ["model.safetensors"]


def test_the_index_tells_where_each_tensor_went_and_how_many_bytes_there_are(tmp_path: Path) -> None:
    source = model_folder(tmp_path / "source")
    output = shard(source, tmp_path / "output", 400)
    index = json.loads((output / INDEX).read_text())
    assert index["weight_map"] == {t.name: t.file for t in read_folder(output).tensors}
    assert index["metadata"]["total_size"] == sum(len(data) for _, _, data in tensors_of(source).values())
    assert len(set(index["weight_map"].values())) > 2


def test_config_and_tokenizer_go_along_and_pickles_do_not(tmp_path: Path) -> None:
    source = model_folder(tmp_path / "source")
    (source / "pytorch_model.bin").write_bytes(b"x")
    (source / "encoding").mkdir()
    (source / "encoding" / "vocab.txt").write_text("a")
    (source / ".git").mkdir()
    (source / ".git" / "HEAD").write_text("x")
    layout = sharded(read_folder(source), most_bytes=10**9)
    output = assemble(layout, tmp_path / "output").output
    for file in ("config.json", "tokenizer.json", "README.md", "encoding/vocab.txt"):
        assert (output / file).read_bytes() == (source / file).read_bytes()
    assert not (output / "pytorch_model.bin").exists()
    assert not (output / ".git").exists()
    assert layout.left_out == (("pytorch_model.bin", "a pickle, which runs code when loaded"),)


def test_wide_numbers_stand_at_multiples_of_their_size(tmp_path: Path) -> None:
    shapes = {"a": ("U8", (3,)), "b": ("F32", (2,)), "c": ("BF16", (1,)), "d": ("I64", (1,))}
    source = model_folder(tmp_path / "source", {"model.safetensors": shapes})
    header = read_folder(shard(source, tmp_path / "output", 10**9)).headers[0]
    widths = {"U8": 1, "F32": 4, "BF16": 2, "I64": 8}
    assert all(tensor.start % widths[tensor.dtype] == 0 for tensor in header.tensors)


def test_the_output_may_not_touch_the_source_nor_hold_anything(tmp_path: Path) -> None:
    source = model_folder(tmp_path / "source")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    (tmp_path / "link").symlink_to(source)
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "file").write_text("mine")
    for output in (
        source,
        source / "in",
        tmp_path,
        tmp_path / "link" / "in",
        tmp_path / "full",
        tmp_path / "file",
        tmp_path / "circle",
    ):
        with pytest.raises(UsageError, match=r"source|already|nowhere"):
            shard(source, output, 10**9)
    assert (tmp_path / "full" / "file").read_text() == "mine"


def test_an_empty_folder_may_be_the_output_and_nothing_hidden_stays(tmp_path: Path) -> None:
    source = model_folder(tmp_path / "source")
    (tmp_path / "output").mkdir()
    output = shard(source, tmp_path / "output", 10**9)
    assert not [path for folder in (tmp_path, output) for path in folder.iterdir() if path.name.startswith(".")]


def test_a_hidden_folder_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    source = model_folder(tmp_path / "source")
    hidden = tmp_path / ".casemate-output"
    hidden.mkdir()
    (hidden / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="no run of ours"):
        shard(source, tmp_path / "output", 10**9)
    assert (hidden / "thesis.txt").read_text() == "mine"


def test_a_tensor_in_two_files_is_refused(tmp_path: Path) -> None:
    shapes = {"x": ("U8", (1,))}
    source = model_folder(tmp_path / "source", {"a.safetensors": shapes, "b.safetensors": shapes}, index=False)
    with pytest.raises(UsageError, match="1 tensors are in more than one file"):
        sharded(read_folder(source), most_bytes=10**9)


@pytest.mark.parametrize(
    ("text", "size"),
    [("5GB", 5 * 10**9), ("4GiB", 4 << 30), ("4.5 gib", 4831838208), ("7", 7), ("1kb", 1000), (" 2MB ", 2 * 10**6)],
)
def test_sizes_are_read_with_their_units(text: str, size: int) -> None:
    assert parsed_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-5GB", "5XB", "5 G B", "0", "1e9", "nan", "inf", "٣GB", "9" * 40])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parsed_size(text)


KILLED = """
import os, signal, sys
from pathlib import Path
from casemate.checkpoint.assembling import assemble
from casemate.checkpoint.safetensors import read_folder
from casemate.checkpoint.sharding import sharded
def observe(done, total):
    if done >= int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
layout = sharded(read_folder(Path(sys.argv[1])), most_bytes=1_100_000)
assemble(layout, Path(sys.argv[2]), observe=observe, sync_every_bytes=4096)
"""


def killed_at(source: Path, output: Path, done_bytes: int) -> int:
    return subprocess.run([sys.executable, "-c", KILLED, source, output, str(done_bytes)], check=False).returncode


def test_a_run_that_was_killed_goes_on_where_it_was_and_ends_with_the_same_bytes(tmp_path: Path) -> None:
    source = model_folder(tmp_path / "source", TWO_BIG)
    whole = shard(source, tmp_path / "whole", 1_100_000)
    # In the first file, at a border, twice in the middle of the second, and in the last.
    for at in (1, 600_000, 1_049_000, 1_500_000, 1_700_000, 3_100_000):
        assert killed_at(source, tmp_path / "output", at) == -signal.SIGKILL
        assert not (tmp_path / "output").exists()
    assembled = assemble(sharded(read_folder(source), most_bytes=1_100_000), tmp_path / "output")
    assert assembled.resumed_bytes > 2_000_000
    assert digests(assembled.output) == digests(whole)


def test_bytes_that_no_journal_vouches_for_are_written_again(tmp_path: Path) -> None:
    source = model_folder(tmp_path / "source", TWO_BIG)
    whole = shard(source, tmp_path / "whole", 1_100_000)
    assert killed_at(source, tmp_path / "output", 1_500_000) == -signal.SIGKILL
    hidden = tmp_path / ".casemate-output"
    noted = json.loads((hidden / ".casemate-journal.json").read_text())["synced_bytes"]
    with (hidden / ".casemate-part").open("r+b") as part:  # as after a power cut: the end never reached the disk
        part.truncate(noted)
        part.truncate(noted + 9999)
    assert digests(shard(source, tmp_path / "output", 1_100_000)) == digests(whole)


@pytest.mark.parametrize("journal", ["", "[]", "[" * 9999, '{"fingerprint": "x", "file": "y", "synced_bytes": "z"}'])
def test_after_a_damaged_journal_the_run_begins_anew(tmp_path: Path, journal: str) -> None:
    source = model_folder(tmp_path / "source", TWO_BIG)
    killed_at(source, tmp_path / "output", 1_500_000)
    (tmp_path / ".casemate-output" / ".casemate-journal.json").write_text(journal)
    assert tensors_of(shard(source, tmp_path / "output", 1_100_000)) == tensors_of(source)


def test_after_a_change_of_the_source_or_of_the_plan_the_run_begins_anew(tmp_path: Path) -> None:
    source = model_folder(tmp_path / "source", TWO_BIG)
    killed_at(source, tmp_path / "output", 1_500_000)
    later = time.time() + 5
    os.utime(source / "model.safetensors", (later, later))
    assembled = assemble(sharded(read_folder(source), most_bytes=1_100_000), tmp_path / "output")
    assert assembled.resumed_bytes == 0
    killed_at(source, tmp_path / "other", 1_500_000)
    assert assemble(sharded(read_folder(source), most_bytes=10**9), tmp_path / "other").resumed_bytes == 0


def test_a_run_that_was_killed_at_its_last_step_is_found_finished(tmp_path: Path) -> None:
    source = model_folder(tmp_path / "source", TWO_BIG)
    killed_at(source, tmp_path / "output", 3_100_000)
    journal = (tmp_path / ".casemate-output" / ".casemate-journal.json").read_bytes()
    output = shard(source, tmp_path / "output", 1_100_000)
    (output / ".casemate-journal.json").write_bytes(journal)
    assert shard(source, output, 1_100_000) == output
    assert not (output / ".casemate-journal.json").exists()
    with pytest.raises(UsageError, match="already"):
        shard(source, output, 1_100_000)


def test_two_runs_at_once_do_not_write_one_output(tmp_path: Path) -> None:
    source = model_folder(tmp_path / "source", SHARDS)
    layout = sharded(read_folder(source), most_bytes=10**9)
    seen: list[str] = []

    def observe(done: int, total: int) -> None:
        if not seen:
            with pytest.raises(UsageError, match="another run") as refused:
                assemble(layout, tmp_path / "output")
            seen.append(refused.value.what)

    assemble(layout, tmp_path / "output", observe=observe)
    assert seen


def test_a_source_that_shrinks_meanwhile_is_an_error_and_no_output(tmp_path: Path) -> None:
    source = model_folder(tmp_path / "source", TWO_BIG)
    layout = sharded(read_folder(source), most_bytes=10**9)
    os.truncate(source / "model.safetensors", 1000)
    with pytest.raises(UsageError, match="changed while it was copied"):
        assemble(layout, tmp_path / "output")
    assert not (tmp_path / "output").exists()


def digests(folder: Path) -> dict[str, str]:
    return {file.name: sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


def test_a_folder_without_any_tensor_is_refused(tmp_path: Path) -> None:
    source = model_folder(tmp_path / "source", {"model.safetensors": {}}, index=False)
    with pytest.raises(UsageError, match="no tensor"):
        sharded(read_folder(source), most_bytes=10**9)


def test_a_fraction_without_a_unit_is_no_size() -> None:
    with pytest.raises(UsageError, match="no unit"):
        parsed_size("1.5")
    assert parsed_size("1.5GB") == 1_500_000_000
