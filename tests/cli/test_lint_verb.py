"""`casemate lint` as it is used: commands, files, options, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from casemate.doctor import codec
from casemate.engine.flags.table import recorded
from engine.parsers import columns, parser
from plan.recipes import host

_RUN = "import sys; from casemate.cli import main; main.run(sys.argv[1:])"
_CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 8192,
    "vocab_size": 128256, "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic"},
}  # fmt: skip


def _lint(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _RUN, "lint", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=60)


def _json(*arguments: str, stdin: str = "") -> dict[str, Any]:
    ran = _lint(*arguments, "--json", stdin=stdin)
    assert ran.returncode in (0, 1), ran.stderr
    value: dict[str, Any] = json.loads(ran.stdout)
    return value


def test_a_sound_command_ends_with_0_and_a_bad_one_with_1_and_its_correction() -> None:
    good = _lint("vllm serve m --port 8000")
    assert (good.returncode, good.stderr) == (0, "")
    assert "every word is fine" in good.stdout
    bad = _lint("vllm serve m --enforce-eager --port 8000")
    assert bad.returncode == 1
    assert bad.stdout.rstrip().endswith("corrected:\n  vllm serve m --port 8000")


def test_json_has_the_schema_first_then_problems_and_the_correction_as_words_and_as_a_line() -> None:
    value = _json("vllm serve m --swap-space 4 --seed 1", "--engine-version", "0.33.0")
    assert next(iter(value)) == "schema_version"
    assert value["engine_version"] == "0.33.0"
    (problem,) = value["problems"]
    assert (problem["flag"], problem["value"], problem["kind"], problem["severity"]) == (
        "--swap-space",
        "4",
        "removed",
        "high",
    )
    assert problem["source"]
    assert problem["says"]
    assert value["corrected"]["argv"] == ["vllm", "serve", "m", "--seed", "1"]
    assert value["corrected"]["command"] == "vllm serve m --seed 1"


def test_a_split_command_stands_behind_two_dashes() -> None:
    assert _lint("--", "vllm", "serve", "m", "--disable-log-stats").returncode == 1


def test_a_file_and_standard_input_are_read(tmp_path: Path) -> None:
    script = tmp_path / "start.sh"
    script.write_text("#!/bin/sh\nvllm serve m \\\n  --enforce-eager\n", encoding="utf-8")
    assert "--enforce-eager" in _lint(str(script)).stdout
    assert "--enforce-eager" in _lint("-", stdin=script.read_text()).stdout


def test_an_image_s_tag_chooses_the_version_and_one_that_is_asked_for_goes_before_it() -> None:
    text = "docker run vllm/vllm-openai:v0.13.0 --model m --swap-space 4"
    assert _json(text)["engine_version"] == "0.13.0"
    assert _json(text, "--engine-version", "0.33.0")["engine_version"] == "0.33.0"


def test_an_image_older_than_all_records_is_judged_by_the_oldest_and_says_so() -> None:
    value = _json("docker run vllm/vllm-openai:v0.4.2 --model m")
    assert value["engine_version"] == "0.6.3"
    assert "older than all that is recorded" in value["notes"][0]


def test_a_version_that_is_not_recorded_is_judged_by_the_one_before_and_says_so() -> None:
    value = _json("vllm serve m", "--engine-version", "0.27.1")
    assert value["engine_version"] == "0.26.0"
    assert "0.27.1 is not recorded" in value["notes"][0]


def test_a_saved_help_is_judged_by(tmp_path: Path) -> None:
    saved = tmp_path / "help.txt"
    with columns(90):
        saved.write_text(parser(recorded().table("0.28.0")).format_help(), encoding="utf-8")
    value = _json("vllm serve m --device cuda --max-model-len 4k", "--help-file", str(saved))
    assert value["engine_version"] is None
    assert [problem["flag"] for problem in value["problems"]] == ["--device"]


def test_the_model_s_config_and_the_machine_s_facts_are_taken_into_account(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(_CONFIG), encoding="utf-8")
    machine = tmp_path / "machine.json"
    machine.write_text(json.dumps(codec.to_json(host(2))), encoding="utf-8")
    value = _json(
        "vllm serve m --quantization fp8 -tp 4 --max-model-len 16384", "--model", str(config), "--machine", str(machine)
    )
    kinds = {problem["flag"]: problem["kind"] for problem in value["problems"]}
    assert kinds == {"--quantization": "needless", "-tp": "refused", "--max-model-len": "refused"}
    assert value["corrected"]["command"] == "vllm serve m --tensor-parallel-size 2 --max-model-len 8192"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["no/such/file"],
        ["hello world"],
        ["vllm serve 'm"],
        ["vllm serve m", "--engine-version", "newest"],
        ["vllm serve m", "--engine-version", "0.1.0"],
        ["vllm serve m", "--help-file", "no/such/file"],
        ["vllm serve m", "--model", "no/such/model"],
        ["vllm serve m", "--machine", "no/such/file"],
        ["vllm serve m", "--format", "xml"],
    ],
)
def test_wrong_usage_ends_with_3_and_one_line(arguments: list[str]) -> None:
    ran = _lint(*arguments)
    assert ran.returncode == 3, ran.stdout
    assert ran.stdout == ""
    assert "Traceback" not in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "content", [b"\x7fELF\x02\x01\x01\x00" * 40, b"\xff\xfe\x00" * 9, b"vllm serve m\n" * 900_000, b""]
)
def test_a_file_that_is_no_recipe_ends_with_3(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "recipe"
    path.write_bytes(content)
    ran = _lint(str(path))
    assert (ran.returncode, ran.stdout) == (3, "")


def test_control_characters_of_a_recipe_do_not_reach_the_terminal() -> None:
    ran = _lint("vllm serve m --nonsense '\x1b[2Jclear'")
    assert "\x1b" not in ran.stdout + ran.stderr
