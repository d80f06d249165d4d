"""`casemate plan`, as the command line runs it."""

from __future__ import annotations

import json
import re
import shlex
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from syrupy.assertion import SnapshotAssertion

from casemate.cli import plan as verb
from casemate.doctor import codec
from casemate.doctor.machine import Machine
from casemate.errors import CasemateError, UsageError
from casemate.report.visible import as_json
from plan import shapes
from plan.launches import named

Run = Callable[..., tuple[int, str]]
TWO = ("--gpus", "2xH20-96GB")
BUDGET = re.compile(r"^(?P<part>\S.*?) {2,}(?P<gib>-?\d+\.\d\d)", re.MULTILINE)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The verb: exit code and what it printed."""
    monkeypatch.setenv("CASEMATE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "100")
    app = typer.Typer()
    app.command()(verb.plan)
    command = typer.main.get_command(app)

    def _run(*arguments: str | Path) -> tuple[int, str]:
        code = command.main([str(argument) for argument in arguments], standalone_mode=False) or 0
        return code, capsys.readouterr().out

    return _run


@pytest.fixture
def v4(tmp_path: Path) -> Path:
    """DeepSeek-V4-Flash, as its config tells it."""
    return _config(tmp_path / "DeepSeek-V4-Flash", shapes.V4)


def test_a_plan_is_told_with_reasons_memory_speed_and_command(run: Run, v4: Path, snapshot: SnapshotAssertion) -> None:
    code, out = run(v4, *TWO, "--engine-version", "0.33.0", "--context", "131072", "--concurrency", "4")
    assert code == 0
    before, title, rest = out.partition("Predicted speed\n")
    speed, start, after = rest.partition("Start it\n")
    # What the figures are is for the tests of the prediction; here it counts how they are told.
    assert "".join((before, title, re.sub(r"\d+(?:\.\d+)?", "#", speed), start, after)) == snapshot


def test_the_memory_of_a_card_adds_up_as_printed(run: Run, v4: Path) -> None:
    for version in ("0.20.0", "0.33.0"):
        _, out = run(v4, *TWO, "--engine-version", version)
        found = {match["part"]: round(float(match["gib"]) * 100) for match in BUDGET.finditer(out)}
        parts = ("weights", "peak of a step", "CUDA graphs, set aside", "outside the allocator", "cache")
        assert sum(found[part] for part in parts) == found["= given to the engine"]
        assert found["= given to the engine"] + found["left outside"] == found["= card"]
        assert found["= card"] == 9502


def test_json_has_flat_values_and_reasons_by_the_same_names(run: Run, v4: Path) -> None:
    code, out = run(v4, *TWO, "--json", "--context", "131072")
    value = json.loads(out)
    assert code == 0
    assert (next(iter(value)), value["refused"]) == ("schema_version", False)
    assert (value["tensor_parallel"], value["pipeline_parallel"], value["max_model_len"]) == (2, 1, 131072)
    assert 73 < value["weights_gib"] < 76
    for name in ("tensor_parallel", "max_num_batched_tokens", "kv_gib", "weights_gib", "moe_backend"):
        assert value[name] is not None
        assert value["reasons"][name]
    assert set(value["reasons"]) <= set(value)
    assert value["argv"][:2] == ["vllm", "serve"]
    assert value["environment"]["HF_HUB_OFFLINE"] == "1"
    assert value["problems"] == []


def test_predicted_speed_has_its_band_and_its_definitions(run: Run, v4: Path) -> None:
    speed = json.loads(run(v4, *TWO, "--json")[1])["speed"]
    for name in ("ttft_s", "tpot_s", "output_tokens_per_s"):
        low, high = speed["bands"][name]
        assert low < speed[name] < high
        error = speed["ttft_error" if name == "ttft_s" else "error"]
        assert low == pytest.approx(speed[name] * (1 - error), rel=0.01)
        assert speed["definitions"][name]
    assert speed["output_tokens_per_s"] == pytest.approx(speed["concurrency"] / speed["tpot_s"], rel=0.01)
    assert "roofline" in speed["method"]


def test_a_refusal_has_every_reason_and_a_remedy(run: Run, v4: Path, snapshot: SnapshotAssertion) -> None:
    code, out = run(v4, "--gpus", "1xH100")
    assert code == 1
    assert out == snapshot
    code, out = run(v4, "--gpus", "1xH100", "--json")
    value = json.loads(out)
    assert (code, value["refused"]) == (1, True)
    assert value["reasons"]
    assert value["remedy"]
    assert "argv" not in value


def test_a_machine_without_cards_refuses_a_model_for_cards(run: Run, v4: Path, tmp_path: Path) -> None:
    bare = replace(named("1xH100"), cards=(), pairs=())
    code, out = run(v4, "--machine", _saved(tmp_path, bare), "--json")
    value = json.loads(out)
    assert (code, value["refused"]) == (1, True)
    assert "--gpus" in value["remedy"]


def test_a_recorded_machine_is_planned_for_as_the_one_it_is(run: Run, v4: Path, tmp_path: Path) -> None:
    path = _saved(tmp_path, named("8xH200"))
    _, out = run(v4, "--machine", path, "--json")
    value = json.loads(out)
    assert value["environment"]["CUDA_VISIBLE_DEVICES"].count("GPU-") == len(value["cards"]) == 2


def test_this_machine_is_measured_where_none_is_named(run: Run, v4: Path) -> None:
    code, out = run(v4, "--json", "--context", "4096")
    assert code in (0, 1)
    assert json.loads(out)["refused"] is (code == 1)


def test_a_gguf_file_is_planned_for_the_cpu(run: Run, tmp_path: Path) -> None:
    path = _gguf(tmp_path / "small.gguf")
    code, out = run(path, "--json")
    value = json.loads(out)
    assert (code, value["engine"], value["refused"]) == (0, "llamacpp", False)
    assert set(value["reasons"]) <= set(value)
    assert "llama.cpp" in run(path)[1]
    assert run(path, "--context", "100")[0] == 1
    for wrong in (("--gpus", "1xH100"), ("--emit", "argv")):
        with pytest.raises(UsageError, match="GGUF"):
            run(path, *wrong)


def test_a_hub_id_is_looked_up_in_the_local_cache_alone(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "hub"
    monkeypatch.setenv("HF_HUB_CACHE", str(cache))
    with pytest.raises(UsageError, match="not on this machine"):
        run("org/model", *TWO)
    _config(cache / "models--org--model" / "snapshots" / "0abc", shapes.LLAMA_8B)
    value = json.loads(run("org/model", "--gpus", "1xH100", "--json")[1])
    assert value["argv"][value["argv"].index("--served-model-name") + 1] == "model"


def test_a_cap_counts_as_the_memory_of_each_card(run: Run, tmp_path: Path) -> None:
    llama = _config(tmp_path / "llama", shapes.LLAMA_8B)
    whole = json.loads(run(llama, "--gpus", "1xH100", "--json")[1])
    capped = json.loads(run(llama, "--gpus", "1xH100", "--memory-cap", "40", "--json")[1])
    assert capped["gpu_memory_utilization"] < 0.51 < whole["gpu_memory_utilization"]
    assert capped["kv_gib"] < whole["kv_gib"]


@pytest.mark.parametrize("name", ["argv", "systemd", "nginx", "compose", "env", "all"])
def test_what_is_emitted_is_the_files_and_nothing_else(run: Run, v4: Path, name: str) -> None:
    code, out = run(v4, *TWO, "--emit", name)
    assert code == 0
    named_files = re.findall(r"^# file: (\S+)$", out, re.MULTILINE)
    assert len(named_files) == {"systemd": 2, "env": 2, "all": 7}.get(name, 0)
    assert not re.search(r"^(?:VLLM|CASEMATE_ENGINE)_API_KEY=", out, re.MULTILINE)


def test_an_emitted_command_can_be_pasted(run: Run, v4: Path) -> None:
    _, out = run(v4, *TWO, "--emit", "argv")
    value = json.loads(run(v4, *TWO, "--json")[1])
    variables = [f"{name}={text}" for name, text in value["environment"].items()]
    assert shlex.split(out.replace("\\\n", "")) == [*variables, *value["argv"]]


def test_files_in_json_are_the_texts(run: Run, v4: Path) -> None:
    value = json.loads(run(v4, *TWO, "--emit", "compose", "--json")[1])
    compose = yaml.safe_load(value["files"]["compose.yaml"])
    assert compose["services"]["engine"]["image"].startswith("vllm/vllm-openai:v")
    assert value["refused"] is False


def test_a_folder_gets_the_files_with_a_fresh_key_that_is_never_printed(run: Run, v4: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    printed = [run(v4, *TWO, "--emit", "all", "--output", folder, *more)[1] for more in ((), ("--json",))]
    keys = set()
    for name in ("engine.env", "gateway.env"):
        assert (folder / name).stat().st_mode & 0o777 == 0o600
        keys |= set(re.findall(r"^\w+_API_KEY=(\w{64})$", (folder / name).read_text(), re.MULTILINE))
    (key,) = keys
    assert not [text for text in printed if key in text]
    assert not [path for path in folder.iterdir() if path.suffix != ".env" and key in path.read_text()]


def test_several_hosts_get_ray_lines(run: Run, tmp_path: Path) -> None:
    v3 = _config(tmp_path / "v3", shapes.V3)
    code, out = run(v3, "--gpus", "8xH100", "--nodes", "2", "--emit", "ray")
    assert code == 0
    assert "ray start --head" in out
    with pytest.raises(UsageError, match="several"):
        run(v3, "--gpus", "8xH100", "--nodes", "2", "--emit", "compose")


def test_a_release_that_is_not_recorded_is_told_of(run: Run, v4: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = typer.Typer()
    app.command()(verb.plan)
    typer.main.get_command(app).main([str(v4), *TWO, "--engine-version", "0.99.0"], standalone_mode=False)
    said = capsys.readouterr()
    assert "0.99.0 is not recorded" in said.err
    assert "on vLLM 0.99.0" in said.out


@pytest.mark.parametrize(
    "wrong",
    [
        ("--context", "-5"), ("--context", "9" * 30), ("--context", "many"), ("--concurrency", "0"),
        ("--concurrency", "9" * 30), ("--nodes", "0"), ("--nodes", "1000"), ("--purpose", "war"), ("--emit", "shell"),
        ("--gpus", "0xH20-96GB"), ("--gpus", "2xNoSuchCard"), ("--gpus", "9999xH100"), ("--gpus", "\x1b[2J"),
        ("--memory-cap", "0"), ("--memory-cap", "-3"), ("--memory-cap", "nan"), ("--memory-cap", "1e400"),
        ("--engine-version", "newest"), ("--engine-version", "0.1.0"), ("--engine-version", "0." + "9" * 5000),
        ("--machine", "/no/such/file"), ("--output", "/tmp/out"), ("--emit", "ray"),
    ],
)  # fmt: skip
def test_what_means_nothing_is_refused_in_one_line(run: Run, v4: Path, wrong: tuple[str, str]) -> None:
    machine = () if wrong[0] in ("--gpus", "--machine") else TWO
    with pytest.raises((CasemateError, typer.TyperException)) as caught:
        run(v4, *machine, *wrong)
    assert isinstance(caught.value, typer.TyperException) or str(caught.value)


@pytest.mark.parametrize("model", ["", "/no/such/model", ".", "a\nb", "\x00", "org/none", "x" * 5000])
def test_a_model_that_is_not_there_is_refused(run: Run, model: str) -> None:
    with pytest.raises(CasemateError):
        run(model, *TWO)


@pytest.mark.parametrize(
    "asked", [("--context", str(1 << 30)), ("--concurrency", "60000"), ("--memory-cap", "0.001"), ("--nodes", "64")]
)
def test_huge_and_tiny_wishes_end_in_a_plan_or_a_refusal(run: Run, v4: Path, asked: tuple[str, str]) -> None:
    code, out = run(v4, *TWO, *asked, "--json")
    assert code == int(json.loads(out)["refused"])


def test_machine_and_named_cards_exclude_each_other(run: Run, v4: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exclude"):
        run(v4, *TWO, "--machine", _saved(tmp_path, named("1xH100")))


def test_hostile_names_reach_no_terminal_and_no_command(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "evil \x1b[2J; $(rm) 'x"
    path = _config(folder, shapes.LLAMA_8B)
    _, out = run(path, "--gpus", "1xH100")
    assert "\x1b" not in out
    value = json.loads(run(folder, "--gpus", "1xH100", "--json")[1])
    name = value["argv"][value["argv"].index("--served-model-name") + 1]
    assert re.fullmatch(r"[\w.-]+", name)
    foreign = _config(tmp_path / "模型", shapes.LLAMA_8B).parent
    value = json.loads(run(foreign, "--gpus", "1xH100", "--json")[1])
    assert value["argv"][value["argv"].index("--served-model-name") + 1] == "model"


def _config(folder: Path, config: dict[str, Any]) -> Path:
    folder.mkdir(parents=True)
    path = folder / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def _saved(folder: Path, machine: Machine) -> Path:
    path = folder / "machine.json"
    path.write_text(as_json(codec.to_json(machine)), encoding="utf-8")
    return path


def _gguf(path: Path) -> Path:
    """A model file of two layers, in the real format."""

    def text(value: bytes) -> bytes:
        return struct.pack("<Q", len(value)) + value

    facts = {"block_count": 2, "attention.head_count": 4, "embedding_length": 64, "context_length": 4096}
    content = b"GGUF" + struct.pack("<IQQ", 3, 0, 1 + len(facts))
    content += text(b"general.architecture") + struct.pack("<I", 8) + text(b"toy")
    for key, value in facts.items():
        content += text(f"toy.{key}".encode()) + struct.pack("<II", 4, value)
    path.write_bytes(content + bytes(64))
    return path
