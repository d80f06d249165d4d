"""Reading flags off an engine's source, without importing or running any of it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from casemate.engine.flags import table
from casemate.engine.flags.extract import table as extracted
from casemate.engine.flags.installed import source
from casemate.errors import UsageError
from casemate.plan.recipe.flags import Flag
from engine.sources import MODULES, unpacked, wheel

_SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "record_flags.py"

_EXPECTED = {
    "headless": Flag("headless", "switch"),
    "port": Flag("port", "int", default="8000"),
    "api-key": Flag("api-key", "str", "+"),
    "allowed-origins": Flag("allowed-origins", "json"),
    "tool-call-parser": Flag("tool-call-parser", values=("hermes", "mistral", "pixtral")),
    "model": Flag("model", default="tiny"),
    "old-one": Flag("old-one", deprecated=True),
    "old-two": Flag("old-two", deprecated=True),
    "max-model-len": Flag("max-model-len", "length"),
    "hf-token": Flag("hf-token", "str", "?"),
    "mode": Flag("mode", values=("slow", "fast"), default="fast"),
    "enforce-eager": Flag("enforce-eager", "pair", default="False"),
    "enable-thing": Flag("enable-thing", "twin"),
    "kv-cache-dtype": Flag("kv-cache-dtype", values=("auto", "fp8"), closed=True, default="auto"),
    "max-num-batched-tokens": Flag("max-num-batched-tokens", "size", default="2048"),
    "backend": Flag("backend", "word", values=("one_way", "other_way"), closed=True, default="one_way"),
    "tensor-parallel-size": Flag("tensor-parallel-size", "int", aliases=("-tp",), default="1"),
    "gone": Flag("gone", "switch", deprecated=True),
    "config-json": Flag("config-json", "json"),
    "enable-log-requests": Flag("enable-log-requests", "twin", default="False"),
}


def test_every_shape_of_an_option_is_read(tmp_path: Path) -> None:
    version, texts = source(unpacked(tmp_path))
    found = extracted(texts, version)
    assert {flag.name: flag for flag in found.flags} == _EXPECTED
    assert (found.version, found.modules) == ("9.8.7", ("vllm.entrypoints.openai.api_server",))
    assert found.variables == ("VLLM_A", "VLLM_B")


def test_a_wheel_reads_as_its_folder_does(tmp_path: Path) -> None:
    assert source(wheel(tmp_path)) == source(unpacked(tmp_path / "site"))


def test_an_engine_without_the_newer_rules_is_read_by_its_own(tmp_path: Path) -> None:
    _, texts = source(unpacked(tmp_path))
    old = texts["vllm.engine.arg_utils"].replace(
        '"metavar" if contains_type(type_hints, str) else "choices"', '"choices"'
    )
    old = old.replace("if type_hints == {bool, str, type(None)}:\n        pass\n    elif", "if")
    texts |= {"vllm.engine.arg_utils": old, "vllm.utils.argparse_utils": ""}
    found = extracted(texts, "9")
    mode, token, thing = found.get("mode"), found.get("hf-token"), found.get("enable-thing")
    assert mode
    assert token
    assert thing
    assert mode.closed
    assert (token.form, thing.form) == ("pair", "pair")


@pytest.mark.parametrize("broken", ["def f(:", "x = '" + "(" * 500, "\x00", "é" * 10 + "\nclass"])
def test_a_module_that_cannot_be_parsed_is_passed_over(tmp_path: Path, broken: str) -> None:
    _, texts = source(unpacked(tmp_path))
    found = extracted(texts | {"vllm.config.types": broken, "vllm.envs": broken}, "9")
    assert found.get("port") == _EXPECTED["port"]
    assert found.variables == ()


def test_imports_that_go_in_circles_come_to_an_end(tmp_path: Path) -> None:
    _, texts = source(unpacked(tmp_path))
    texts |= {"vllm.config.types": "from vllm.config.types import CacheDType\nfrom vllm.config.types import Sub\n"}
    assert extracted(texts, "9").get("kv-cache-dtype") is not None


def test_what_holds_no_engine_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "vllm.whl"
    broken.write_bytes(b"PK\x03\x04 not really")
    for place in (tmp_path, tmp_path / "none", broken):
        with pytest.raises(UsageError):
            source(place)


def test_a_wheel_that_lies_about_a_size_is_read_no_further_than_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "vllm-1.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("vllm/big.py", b"#" * (5 << 20))
        archive.writestr("vllm/engine/arg_utils.py", MODULES["vllm/engine/arg_utils.py"])
    _, texts = source(path)
    assert "vllm.big" not in texts


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    root = unpacked(tmp_path / "site")
    (tmp_path / "outside.py").write_text("SECRET = 1")
    (root / "vllm" / "inside.py").symlink_to(tmp_path / "outside.py")
    assert "vllm.inside" not in source(root)[1]


def test_the_script_adds_a_version_to_a_table_and_keeps_the_others(tmp_path: Path) -> None:
    into = tmp_path / "flags.tsv"
    into.write_text(table.written([table.recorded().table("0.33.0")]), encoding="utf-8")
    command = [sys.executable, str(_SCRIPT), str(wheel(tmp_path)), "--into", str(into)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "9.8.7: 20 flags, 2 variables" in ran.stdout
    history = table.parsed(into.read_text(encoding="utf-8"))
    assert history.versions == ("0.33.0", "9.8.7")
    assert _kinds(history.table("9.8.7").flags) == _kinds(tuple(_EXPECTED.values()))
    assert history.table("0.33.0").flags == table.recorded().table("0.33.0").flags


def _kinds(flags: tuple[Flag, ...]) -> dict[str, tuple[str, set[str]]]:
    return {flag.name: (flag.form, set(flag.values)) for flag in flags}
