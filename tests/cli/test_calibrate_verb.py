"""`casemate calibrate` as a process, and what it keeps."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from casemate.cli import corrections
from casemate.errors import UsageError
from casemate.plan.calibration import Calibration, calibrated
from casemate.plan.catalogue import machine_of
from casemate.plan.correction import NOTHING, Entry
from casemate.plan.decision import GIB
from casemate.plan.launch import Launch, Layout
from plan import shapes
from plan.startups import CHIPS, Box, printed, read, truth

Verb = Callable[..., subprocess.CompletedProcess[str]]
_CASEMATE = str(Path(sys.executable).parent / "casemate")
LLAMA = shapes.read(shapes.LLAMA_8B)
LOG = printed(
    Box(truth(weights=1.002, forward=1.5, alone_bytes=GIB // 2)),
    LLAMA,
    Launch(Layout(), 32768, 8192, 64, 0.6, capture=128),
)


@pytest.fixture
def verb(home: Path) -> Verb:
    (home / "config.json").write_text(json.dumps(shapes.LLAMA_8B), encoding="utf-8")
    (home / "engine.log").write_text(LOG, encoding="utf-8")
    environment = dict(os.environ) | {"HOME": str(home), "CASEMATE_HOME": str(home / ".casemate")}

    def call(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [_CASEMATE, "calibrate", *words], env=environment, cwd=home, capture_output=True, text=True, check=False,
            timeout=60, input=stdin,
        )  # fmt: skip

    return call


@pytest.fixture
def path(home: Path) -> Path:
    return home / ".casemate" / corrections.FILE


MODEL = ("--model", "config.json", "--gpus", "1xH200")


def entry() -> Entry:
    found = calibrated(read(LOG), LLAMA, machine=machine_of("1xH200", CHIPS), date="2026-11-30", chips=CHIPS)
    assert isinstance(found, Calibration)
    return found.entry


def test_a_log_is_held_against_the_plan_and_what_it_corrects_is_stored_for_its_owner_alone(
    verb: Verb, path: Path
) -> None:
    os.utime(path.parent.parent / "engine.log", (1_700_000_000, 1_700_000_000))
    got = verb("--log", "engine.log", *MODEL)
    assert got.returncode == 0, got.stderr
    assert "Stored: the cache was predicted" in got.stdout
    assert "outside the allocator" in got.stdout
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (stored,) = corrections.load(path)
    assert stored.correction.date == "2023-11-14"
    assert stored.correction.alone_bytes == pytest.approx(GIB // 2, abs=GIB // 50)
    kept = corrections.of_plan(path.parent, machine_of("1xH200", CHIPS), checkpoint=LLAMA, version="0.26.0")
    assert kept.correction == stored.correction


def test_a_dry_run_shows_the_same_and_stores_nothing(verb: Verb, path: Path) -> None:
    got = verb("--log", "-", *MODEL, "--dry-run", "--json", stdin=LOG)
    assert got.returncode == 0, got.stderr
    told = json.loads(got.stdout)
    assert next(iter(told)) == "schema_version"
    assert told["stored"] is False
    cache = next(row for row in told["rows"] if row["part"] == "cache")
    assert abs(cache["error_after_gib"]) < 0.02 < abs(cache["error_before_gib"])
    assert not path.exists()


def test_a_log_that_lacks_the_cache_is_refused_with_exit_code_1_and_says_so(verb: Verb, path: Path) -> None:
    got = verb("--log", "-", *MODEL, stdin=LOG.replace("Available KV cache memory", "nothing"))
    assert got.returncode == 1
    assert "available for the cache" in got.stdout
    assert not path.exists()


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--log", "engine.log"),
        ("--log", "engine.log", "--list"),
        ("--forget", "--list"),
        ("--forget", "--list", *MODEL),
        ("--log", "engine.log", *MODEL, "--forget", "--list"),
        ("--log", "absent.log", *MODEL),
        ("--log", "engine.log", "--model", "absent.json", "--gpus", "1xH200"),
        ("--log", "engine.log", *MODEL, "--machine", "config.json"),
        ("--log", ".", *MODEL),
    ],
)
def test_wrong_usage_is_told_in_one_line_with_exit_code_3(verb: Verb, words: tuple[str, ...]) -> None:
    got = verb(*words)
    assert got.returncode == 3, got.stdout
    assert len(got.stderr.strip().splitlines()) == 1


def test_what_is_stored_is_listed_and_forgotten_by_model_or_all(verb: Verb, path: Path) -> None:
    other = replace(entry(), shape=replace(entry().shape, layers=7))
    corrections.save(path, (other, entry()))
    assert len(json.loads(verb("--list", "--json").stdout)["corrections"]) == 2
    assert "1 left" in verb("--forget", *MODEL).stdout
    assert corrections.load(path) == (other,)
    assert verb("--forget").returncode == 0
    assert "None is stored" in verb("--list").stdout


def test_nothing_stored_corrects_nothing(tmp_path: Path) -> None:
    assert corrections.load(tmp_path / "absent.json") == ()
    found = corrections.of_plan(tmp_path, machine_of("1xH200", CHIPS), checkpoint=LLAMA, version="0.26.0")
    assert found.correction == NOTHING


def changed(tmp_path: Path, *keys: Any, to: Any) -> Path:
    """A stored file with one value changed."""
    path = tmp_path / "calibration.json"
    corrections.save(path, (entry(),))
    value = json.loads(path.read_text(encoding="utf-8"))
    inner = value
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = to
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("keys", "to"),
    [
        (("schema_version",), 2),
        (("corrections",), {}),
        (("corrections",), [0] * 300),
        (("corrections", 0, "release"), "0.26.0\x1b[2J"),
        (("corrections", 0, "extra"), 1),
        (("corrections", 0, "correction", "weights"), 1e9),
        (("corrections", 0, "correction", "weights"), 1.2),
        (("corrections", 0, "correction", "sampling"), 6),
        (("corrections", 0, "correction", "graphs"), 0.09),
        (("corrections", 0, "correction", "decode"), 7.5),
        (("corrections", 0, "correction", "prefill"), 0.1),
        (("corrections", 0, "correction", "ranks_bytes"), 20 * GIB),
        (("corrections", 0, "correction", "card_bytes"), 900 * GIB),
        (("corrections", 0, "correction", "weights"), float("nan")),
        (("corrections", 0, "correction", "weights"), True),
        (("corrections", 0, "correction", "forward"), -1),
        (("corrections", 0, "correction", "alone_bytes"), -5),
        (("corrections", 0, "correction", "alone_bytes"), 1.5),
        (("corrections", 0, "correction", "date"), "../../etc"),
        (("corrections", 0, "host", "link"), "telepathy"),
        (("corrections", 0, "host", "kinds", 0, "capability"), [9]),
        (("corrections", 0, "host", "kinds", 0, "capability"), 9),
        (("corrections", 0, "shape", "architecture"), "x" * 400),
        (("corrections", 0, "shape", "layers"), 1 << 80),
        (("corrections", 0, "tensor"), None),
    ],
)
def test_a_file_that_holds_what_cannot_be_is_refused_by_name(tmp_path: Path, keys: tuple[Any, ...], to: Any) -> None:
    path = changed(tmp_path, *keys, to=to)
    with pytest.raises(UsageError) as refused:
        corrections.load(path)
    assert refused.value.where == str(path)
    assert "\x1b" not in str(refused.value)


def test_a_damaged_file_is_told_of_and_the_plan_is_made_without_it(tmp_path: Path) -> None:
    changed(tmp_path, "corrections", 0, "correction", "weights", to=1.2)
    machine = machine_of("1xH200", CHIPS)
    found = corrections.of_plan(tmp_path, machine, checkpoint=LLAMA, version="0.26.0")
    assert found.correction == NOTHING
    (note,) = found.notes
    assert "weights is no factor between 0.85 and 1.15" in note
    assert "calibrate --forget" in note


@pytest.mark.usefixtures("verb")
def test_a_damaged_file_stops_no_plan(home: Path, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("{", encoding="utf-8")
    got = subprocess.run(
        [_CASEMATE, "plan", "config.json", "--gpus", "1xH200", "--json"], cwd=home, capture_output=True, text=True,
        check=False, timeout=60, env=dict(os.environ) | {"HOME": str(home), "CASEMATE_HOME": str(path.parent)},
    )  # fmt: skip
    assert got.returncode == 0, got.stderr
    assert json.loads(got.stdout)["refused"] is False
    assert "planned without corrections" in got.stderr


def test_a_log_with_more_context_than_the_model_has_is_refused(verb: Verb, path: Path) -> None:
    long = printed(
        Box(truth(weights=1.002, alone_bytes=GIB // 2)),
        LLAMA,
        Launch(Layout(), 131_072_000, 8192, 64, 0.6, capture=128),
    )
    got = verb("--log", "-", *MODEL, stdin=long)
    assert got.returncode == 1, got.stderr
    assert "131,072,000 tokens is beyond the 131,072" in " ".join(got.stdout.split())
    assert not path.exists()


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b"\xff\xfe", b"[" * 100_000, b'{"a": ' * 50_000, b" " * (2 << 20), b"9" * 10_000]
)
def test_a_file_that_is_no_store_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "calibration.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="cannot be used"):
        corrections.load(path)


def test_a_link_a_pipe_or_a_folder_in_its_place_is_refused_and_not_followed(tmp_path: Path) -> None:
    stored = tmp_path / "elsewhere.json"
    corrections.save(stored, (entry(),))
    link, pipe, folder = tmp_path / "link", tmp_path / "pipe", tmp_path / "folder"
    link.symlink_to(stored)
    os.mkfifo(pipe)
    folder.mkdir()
    for path in (link, pipe, folder):
        with pytest.raises(UsageError, match="cannot be used"):
            corrections.load(path)


def test_storing_replaces_the_file_whole_and_leaves_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "home" / "calibration.json"
    corrections.save(path, (entry(),))
    corrections.save(path, ())
    assert corrections.load(path) == ()
    assert list(path.parent.iterdir()) == [path]
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_what_could_not_be_read_again_is_not_stored_over_what_can(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    corrections.save(path, (entry(),))
    odd = replace(entry(), shape=replace(entry().shape, quantization="two words\x1b[2J"))
    with pytest.raises(UsageError, match="quantization"):
        corrections.save(path, (entry(), odd))
    assert corrections.load(path) == (entry(),)


def test_where_nothing_can_be_written_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be stored"):
        corrections.save(tmp_path / "file" / "calibration.json", ())
