from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from casemate.cli import doctor as verb
from casemate.doctor import codec
from casemate.doctor.machine import Machine
from casemate.errors import CasemateError, UsageError
from casemate.report.visible import as_json
from conftest import Optional
from doctor.boxes import BARE, BOX, driven, each

Run = Callable[..., tuple[int, str]]
SCREEN = "\x1b[2J"
RECORDINGS = Path(__file__).parents[3] / "shared/gpu/recordings/host"


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The verb, as the command line runs it: exit code and what it printed."""
    monkeypatch.setenv("CASEMATE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "100")
    command = typer.main.get_group(verb.doctor)

    def _run(*arguments: str | Path) -> tuple[int, str]:
        code = command.main([str(argument) for argument in arguments], standalone_mode=False) or 0
        return code, capsys.readouterr().out

    return _run


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[Machine], Path]:
    """A machine's recording in a file of its own."""

    def _saved(machine: Machine) -> Path:
        path = tmp_path / "machine.json"
        path.write_text(as_json(codec.to_json(machine)), encoding="utf-8")
        return path

    return _saved


def test_this_host_is_examined_and_its_recording_is_judged_the_same(run: Run, tmp_path: Path) -> None:
    code, out = run("--json")
    found = json.loads(out)
    assert list(found)[:3] == ["schema_version", "verdict", "checks"]
    assert found["machine"]["cores"] >= 1
    assert code in (0, 1, 2)
    again = tmp_path / "again.json"
    again.write_text(out, encoding="utf-8")
    assert run("--machine", again, "--json") == (code, out)


@pytest.mark.parametrize(
    ("machine", "code", "verdict"),
    [
        (BARE, 0, "ok"),
        (BOX, 0, "ok"),
        (each(persistence=False), 0, "warn"),
        (each(ecc_uncorrected=1), 1, "fail"),
        (each(memory_total_bytes=None), 2, "unknown"),
        (driven(each(memory_total_bytes=None), cuinit=802), 1, "fail"),
    ],
    ids=["bare", "box", "warning", "failure", "unknown", "failure and unknown"],
)
def test_the_exit_code_says_what_it_comes_to(
    run: Run, saved: Callable[[Machine], Path], *, machine: Machine, code: int, verdict: str
) -> None:
    exited, out = run("--machine", saved(machine), "--format", "json")
    assert exited == code
    assert json.loads(out)["verdict"] == verdict


def test_the_text_says_the_verdict_first_then_what_to_do_then_everything(
    run: Run, saved: Callable[[Machine], Path]
) -> None:
    _, out = run("--machine", saved(driven(each(persistence=False, memory_total_bytes=None), cuinit=803)))
    order = [
        "✗ Something is broken",
        "What to do",
        "fail: CUDA starts (driver.cuinit)",
        "unknown: Memory of the cards (cards.memory)",
        "warn: Persistence (cards.persistence)",
        "Every check",
    ]
    places = [out.index(line) for line in order]
    assert places == sorted(places)
    assert "Remedy: " in out
    assert "nvidia-smi --query-gpu=index,persistence_mode --format=csv" in out


def test_a_host_without_cards_reads_as_a_normal_case(run: Run, saved: Callable[[Machine], Path]) -> None:
    code, out = run("--machine", saved(BARE))
    assert code == 0
    assert "✓ All is well" in out
    assert "CPU engine" in out
    assert "What to do" not in out


def test_the_advice_is_a_lock_with_digests_and_one_command(run: Run, saved: Callable[[Machine], Path]) -> None:
    _, out = run("--machine", saved(BOX), "--advise")
    assert "vllm==0.33.0 --hash=sha256:" in out
    assert "uv pip install" in out
    advice = json.loads(run("--machine", saved(BOX), "--advise", "--json")[1])["advice"]
    assert advice["kind"] == "install"
    assert advice["lock"][0].startswith("vllm==0.33.0 --hash=sha256:")
    assert json.loads(run("--machine", saved(BARE), "--advise", "--json")[1])["advice"]["kind"] == "instead"
    assert "casemate up" in run("--machine", saved(BARE), "--advise")[1]
    assert "advice" not in json.loads(run("--machine", saved(BARE), "--json")[1])


def model_folder(folder: Path, *, short: int = 0) -> Path:
    """A folder with one file of safetensors, `short` bytes of which are missing."""
    folder.mkdir()
    head = json.dumps({"a": {"dtype": "F16", "shape": [4], "data_offsets": [0, 8]}}).encode()
    data = struct.pack("<Q", len(head)) + head + bytes(8 - short)
    (folder / "model.safetensors").write_bytes(data)
    return folder


def test_a_model_folder_is_looked_at_and_a_broken_one_is_a_finding(
    run: Run, saved: Callable[[Machine], Path], tmp_path: Path
) -> None:
    machine = saved(BOX)
    assert run("--machine", machine, "--model", model_folder(tmp_path / "whole"))[0] == 0
    code, out = run("--machine", machine, "--model", model_folder(tmp_path / "short", short=3))
    assert code == 1
    assert "fail: Model folder (model.folder)" in out
    (tmp_path / "empty").mkdir()
    assert run("--machine", machine, "--model", tmp_path / "empty")[0] == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("--machine", "MISSING"),
        ("--machine", "FOLDER"),
        ("--machine", "NOISE"),
        ("--recorded", "MISSING"),
        ("--recorded", "FOLDER"),
        ("--recorded", "FOLDER", "--machine", "NOISE"),
        ("--model", "MISSING"),
        ("--format", "yaml"),
        ("--log", ""),
        ("--profile", ""),
        ("--json", "watch", "--once"),
        ("--machine", "NOISE", "watch", "--once"),
        ("--log", "NOISE", "--machine", "NOISE"),
        ("--log", "NOISE", "--advise"),
        ("--log", "NOISE", "--profile", "NOISE"),
        ("teleport",),
    ],
    ids=" ".join,
)
def test_what_cannot_be_meant_is_refused_with_a_word(run: Run, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "noise").write_bytes(b"\xff\x00{")
    named = {name: str(tmp_path / name.lower()) for name in ("MISSING", "FOLDER", "NOISE")}
    with pytest.raises((CasemateError, typer.TyperException)):
        run(*(named.get(argument, argument) for argument in arguments))


def test_a_recording_of_impossible_values_is_refused_by_name(run: Run, tmp_path: Path) -> None:
    value: dict[str, Any] = codec.to_json(BOX)
    value["cards"][0]["memory_total_bytes"] = "plenty"
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    with pytest.raises(UsageError, match="memory_total_bytes"):
        run("--machine", path)


def test_what_a_strangers_recording_says_does_not_move_the_cursor(run: Run, saved: Callable[[Machine], Path]) -> None:
    evil = driven(each(name=f"{SCREEN}H20", ecc_enabled=None, unknown=(("ecc_enabled", SCREEN),)), version=f"1{SCREEN}")
    for arguments in ((), ("--json",), ("--advise",)):
        _, out = run("--machine", saved(evil), *arguments)
        assert "\x1b" not in out
        assert "H20" in out


def test_a_fact_of_a_later_version_is_left_out_with_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(codec.to_json(BARE) | {"warp_cores": 2}), encoding="utf-8")
    assert typer.main.get_group(verb.doctor).main(["--machine", str(path), "--json"], standalone_mode=False) == 0
    captured = capsys.readouterr()
    assert "warp_cores" in captured.err
    assert "warp_cores" not in captured.out


def test_options_that_would_be_passed_over_are_refused_by_their_names(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--json says nothing to watch"):
        run("--json", "watch", "--once")
    with pytest.raises(UsageError, match="--log and --machine exclude each other"):
        run("--log", tmp_path / "x", "--machine", tmp_path / "y")


def test_a_real_box_of_two_cards_has_nothing_that_fails(run: Run, optional: Optional) -> None:
    optional("the recording of a real box is not beside this checkout", RECORDINGS.is_dir())
    code, out = run("--recorded", RECORDINGS, "--json")
    found = json.loads(out)
    verdicts = {check["id"]: check["verdict"] for check in found["checks"]}
    assert code in (0, 2)
    assert "fail" not in verdicts.values()
    assert {verdicts[name] for name in ("cards.memory", "cards.capability", "links.peer-access", "health.ecc")} == {
        "ok"
    }
    assert verdicts["driver.cuda"] == "ok"
