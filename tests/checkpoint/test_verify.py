from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha1, sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from casemate.checkpoint.manifest import manifest_text, read_manifest
from casemate.checkpoint.safetensors import INDEX
from casemate.checkpoint.verifying import Fault, Verified, verify
from casemate.errors import UsageError
from checkpoint.weights import SHARDS, model_folder, read_back, weights, write_index

FIRST, SECOND = SHARDS
PLACES = {tensor: file for file, shapes in SHARDS.items() for tensor in shapes}


def faults(verified: Verified) -> dict[Fault, tuple[str, ...]]:
    return {found.fault: found.places for found in verified.found}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return model_folder(tmp_path / "model")


def test_a_whole_folder_is_clean(folder: Path) -> None:
    verified = verify(folder)
    assert verified.is_clean
    assert (verified.files, verified.tensors, verified.has_index) == (2, 6, True)
    assert verified.tensor_bytes == sum(
        len(data) for file in SHARDS for _, _, data in read_back(folder / file).values()
    )


def test_an_absent_shard_is_told_once_and_not_tensor_by_tensor(folder: Path) -> None:
    (folder / SECOND).unlink()
    assert faults(verify(folder)) == {Fault.ABSENT_FILE: (SECOND,)}


def test_a_shard_that_the_index_does_not_name_is_told(folder: Path) -> None:
    (folder / "extra.safetensors").write_bytes(weights({"x": ("U8", (1,))}))
    assert faults(verify(folder)) == {Fault.UNNAMED_FILE: ("extra.safetensors",)}


def test_missing_extra_and_misplaced_tensors_are_told_apart(folder: Path) -> None:
    places = dict(PLACES)
    del places["lm_head.weight"]
    places |= {"ghost": FIRST, "model.layers.1.mlp.up.weight": FIRST}
    write_index(folder, places)
    assert faults(verify(folder)) == {
        Fault.MISSING_TENSOR: (f"ghost: not in {FIRST}",),
        Fault.EXTRA_TENSOR: (f"lm_head.weight: in {SECOND}",),
        Fault.MISPLACED_TENSOR: (f"model.layers.1.mlp.up.weight: in {SECOND}, not in {FIRST}",),
    }


@pytest.mark.parametrize("index", [True, False])
def test_a_tensor_in_two_files_is_told(tmp_path: Path, *, index: bool) -> None:
    shards = {file: {**shapes, "twice": ("U8", (4,))} for file, shapes in SHARDS.items()}
    folder = model_folder(tmp_path, shards, index=index)
    assert faults(verify(folder)) == {Fault.DUPLICATE_TENSOR: (f"twice: {FIRST}, {SECOND}",)}


def test_a_total_that_is_not_the_sum_is_told(folder: Path) -> None:
    write_index(folder, PLACES, total=1)
    (place,) = faults(verify(folder))[Fault.WRONG_TOTAL]
    assert place.startswith(f"{INDEX}: 1 bytes")


@pytest.mark.parametrize(("more", "fault"), [(-1, Fault.CUT_OFF), (1, Fault.TOO_LONG), (1 << 33, Fault.TOO_LONG)])
def test_a_file_of_another_size_than_its_header_says_is_told(folder: Path, more: int, fault: Fault) -> None:
    size = (folder / FIRST).stat().st_size
    os.truncate(folder / FIRST, size + more)
    assert faults(verify(folder)) == {fault: (f"{FIRST}: {size + more} bytes of {size}",)}


def test_a_file_that_is_not_of_the_format_is_told_with_the_reason(folder: Path) -> None:
    (folder / FIRST).write_bytes(b"{}")
    verified = verify(folder)
    (place,) = faults(verified)[Fault.MALFORMED_FILE]
    assert place == f"{FIRST}: not a safetensors file: it has 2 bytes"
    assert list(faults(verified)) == [Fault.MALFORMED_FILE]


def test_a_gap_in_the_numbers_of_the_files_is_told_where_no_index_tells(tmp_path: Path) -> None:
    folder = model_folder(tmp_path, index=False)
    (folder / FIRST).unlink()
    assert faults(verify(folder)) == {Fault.ABSENT_FILE: (FIRST,)}


def test_numbers_that_count_without_end_do_not_hold_us_up(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number}-00001-of-999999.safetensors").write_bytes(weights({f"{number}": ("U8", (1,))}))
    assert len(faults(verify(tmp_path))[Fault.ABSENT_FILE]) == 10_000


def test_links_that_lead_out_and_what_is_no_file_are_told(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("x")
    (folder / "tokenizer.model").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(folder / "pipe")
    assert faults(verify(folder)) == {Fault.OUTSIDE: ("tokenizer.model",), Fault.ODD: ("pipe",)}


def test_a_folder_without_weights_is_not_clean(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    verified = verify(tmp_path)
    assert list(faults(verified)) == [Fault.NO_WEIGHTS]
    assert verified.pickles == ("pytorch_model.bin",)


def test_a_damaged_index_is_told_and_the_files_are_checked_all_the_same(folder: Path) -> None:
    (folder / INDEX).write_text("{")
    assert list(faults(verify(folder))) == [Fault.MALFORMED_INDEX]


AS_NOBODY = """
import os, sys
from pathlib import Path
from casemate.checkpoint.verifying import verify
if os.geteuid() == 0:  # root may read everything
    os.setuid(65534)
verified = verify(Path(sys.argv[1]), hashes=True)
print([file.path for file in verified.unread], [found.fault.name for found in verified.found], verified.is_clean)
"""


def test_what_cannot_be_read_is_told_apart_from_damage() -> None:
    with TemporaryDirectory() as place:
        folder = model_folder(Path(place))
        folder.chmod(0o755)
        (folder / FIRST).chmod(0)
        (folder / "tokenizer.json").chmod(0)
        seen = subprocess.check_output([sys.executable, "-c", AS_NOBODY, folder], text=True)
    assert seen.strip() == f"{[FIRST, 'tokenizer.json']} [] False"


def test_a_manifest_that_we_write_is_one_that_sha256sum_checks(folder: Path) -> None:
    (folder / "odd \\ name\nof two lines").write_text("x")
    verified = verify(folder, hashes=True)
    assert {digest.file for digest in verified.digests} == {file.name for file in folder.iterdir()}
    manifest = folder.parent / "SHA256SUMS"
    manifest.write_bytes(manifest_text({digest.file: digest.sha256 for digest in verified.digests}))
    checked = subprocess.run(["sha256sum", "--strict", "-c", manifest], cwd=folder, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr
    again = verify(folder, manifest=manifest)
    assert again.is_clean
    assert again.checked_hashes == len(verified.digests) == 7


def test_a_manifest_that_sha256sum_writes_is_one_that_we_check(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "back\\slash").write_text("x")
    manifest = folder / "SHA256SUMS"
    files = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    for options in ([], ["--tag"], ["--binary"]):
        manifest.unlink(missing_ok=True)
        names = [f"./{name}" for name in files]
        manifest.write_bytes(subprocess.check_output(["sha256sum", *options, *names], cwd=folder))
        assert verify(folder, manifest=manifest).is_clean


def test_changed_absent_and_unlisted_files_are_told_apart(folder: Path) -> None:
    digests = {digest.file: digest.sha256 for digest in verify(folder, hashes=True).digests}
    manifest = folder / "SHA256SUMS"
    manifest.write_bytes(manifest_text(digests))
    content = bytearray((folder / FIRST).read_bytes())
    content[-1] ^= 1
    (folder / FIRST).write_bytes(content)
    (folder / "tokenizer.json").unlink()
    (folder / "modeling.py").write_text("print()")
    assert faults(verify(folder, manifest=manifest)) == {
        Fault.CHANGED: (FIRST,),
        Fault.NOT_FOUND: ("tokenizer.json",),
        Fault.UNLISTED: ("modeling.py",),
    }


@pytest.mark.parametrize(
    "line",
    [
        "",
        "# only a comment",
        "0" * 63 + "  file",
        "0" * 64 + " file",
        "g" * 64 + "  file",
        "0" * 64 + "  /etc/passwd",
        "0" * 64 + "  ../file",
        "0" * 64 + "  a/../../file",
        "0" * 64 + "  a\0b",
        "0" * 64 + "  file\n" + "1" * 64 + "  ./file",
        "hello",
    ],
    ids=range(11),
)
def test_a_manifest_of_another_form_is_refused(folder: Path, line: str) -> None:
    manifest = folder / "SHA256SUMS"
    manifest.write_text(line)
    with pytest.raises(UsageError):
        verify(folder, manifest=manifest)


def test_line_ends_comments_and_capital_digits_of_a_manifest_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(b"# made by hand\r\n\r\n" + b"AB" * 32 + b" *file\r\n")
    assert read_manifest(tmp_path / "m") == {"file": "ab" * 32}


def test_hashes_that_the_hub_names_its_blobs_by_are_compared(tmp_path: Path) -> None:
    whole = model_folder(tmp_path / "whole")
    repository = tmp_path / "models--toy"
    (repository / "blobs").mkdir(parents=True)
    snapshot = repository / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    for file in list(whole.iterdir()):
        content = file.read_bytes()
        large = file.name.endswith(".safetensors")
        name = sha256(content).hexdigest() if large else sha1(b"blob %d\0" % len(content) + content).hexdigest()
        file.rename(repository / "blobs" / name)
        (snapshot / file.name).symlink_to(f"../../blobs/{name}")
    verified = verify(snapshot, hashes=True)
    assert verified.is_clean
    assert verified.checked_hashes == 6
    for changed in (SECOND, "config.json"):
        blob = (snapshot / changed).resolve()
        blob.write_bytes(blob.read_bytes()[:-1] + (b"?" if changed == SECOND else b" }"))
    assert faults(verify(snapshot, hashes=True)) == {Fault.CHANGED: ("config.json", SECOND)}


def test_hashes_that_a_plain_download_of_the_hub_noted_are_compared(folder: Path) -> None:
    notes = folder / ".cache" / "huggingface" / "download"
    notes.mkdir(parents=True)
    (notes / f"{FIRST}.metadata").write_text(f"{'c' * 40}\n{'0' * 64}\n1700000000.0\n")
    (notes / f"{SECOND}.metadata").write_text("damaged")
    verified = verify(folder, hashes=True)
    assert faults(verified) == {Fault.CHANGED: (FIRST,)}
    assert verified.checked_hashes == 1


def test_hashing_tells_how_far_it_is_and_ends_at_all_bytes(folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    verify(folder, hashes=True, observe=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] == sum(file.stat().st_size for file in folder.iterdir())


def test_a_config_that_is_no_json_object_is_told(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    for content in ("{", "[]", "\ufeffnone", "[" * 100_000):
        (folder / "config.json").write_text(content)
        assert [found.fault for found in verify(folder).found] == [Fault.MALFORMED_CONFIG], content[:9]


def test_a_total_that_is_text_is_told(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    index = json.loads((folder / INDEX).read_text())
    index["metadata"] = {"total_size": "12"}
    (folder / INDEX).write_text(json.dumps(index))
    (found,) = verify(folder).found
    assert found.fault is Fault.WRONG_TOTAL
    assert "no number" in found.places[0]
