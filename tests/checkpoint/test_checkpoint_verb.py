from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
import typer

import casemate.checkpoint
from casemate.cli.checkpoint import checkpoint
from casemate.errors import UsageError
from checkpoint.weights import SHARDS, model_folder, read_back

FIRST, SECOND = SHARDS
RULES = "[[rule]]\nmatch = '^lm_head'\nreplace = 'output'\n[[rule]]\nmatch = 'inv_freq$'\ndrop = true\n"


def run(*arguments: object) -> int:
    command = typer.main.get_command(checkpoint)
    return command.main([str(item) for item in arguments], prog_name="checkpoint", standalone_mode=False) or 0


def printed(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> dict[str, Any]:
    assert run(*arguments, "--json") == code
    out = capsys.readouterr().out
    assert out.startswith('{\n  "schema_version": 1')
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return model_folder(tmp_path / "model")


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.toml"
    path.write_text(RULES)
    return path


def test_inspect_prints_what_there_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("inspect", folder) == 0
    out = capsys.readouterr().out
    for text in ("ToyForCausalLM", "F8_E4M3", "apache-2.0 (README.md)", "model.embed_tokens.weight"):
        assert text in out
    found = printed(capsys, "inspect", folder)
    assert (found["tensors"], found["tensor_bytes"], found["licence_stated"]) == (6, 340, True)
    assert found["biggest"][0]["size_bytes"] == 128


def test_inspect_ends_with_2_where_weights_are_missing_and_with_1_where_only_pickles_are(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / FIRST).unlink()
    assert printed(capsys, "inspect", folder, code=2)["unread"] == [{"path": FIRST, "reason": "not there"}]
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "pytorch_model.bin").write_bytes(b"x")
    assert run("inspect", tmp_path / "old") == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "1 pickle, not opened" in out
    assert "Prefer the publisher's safetensors" in out


def test_a_folder_with_nothing_of_a_model_is_a_wrong_path(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing of a model"):
        run("inspect", tmp_path)


def test_verify_ends_with_0_1_and_3(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "verify", folder)["clean"] is True
    (folder / SECOND).unlink()
    found = printed(capsys, "verify", folder, code=1)
    assert found["found"] == [{"fault": "absent_file", "places": [SECOND]}]
    assert run("verify", folder) == 1
    assert SECOND in capsys.readouterr().out
    with pytest.raises(UsageError):
        run("verify", tmp_path / "absent")


def test_a_manifest_is_written_of_a_sound_folder_only_and_never_over_another(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = folder / "SHA256SUMS"
    assert printed(capsys, "verify", folder, "--write-manifest", manifest)["manifest"] == str(manifest)
    assert printed(capsys, "verify", folder, "--manifest", manifest)["checked_hashes"] == 6
    with pytest.raises(UsageError, match="there already"):
        run("verify", folder, "--write-manifest", manifest)
    (folder / "config.json").write_text("{}")
    assert printed(capsys, "verify", folder, "--manifest", manifest, code=1)["found"][0]["fault"] == "changed"
    manifest.unlink()
    (folder / FIRST).unlink()
    assert printed(capsys, "verify", folder, "--write-manifest", manifest, code=1)["manifest"] is None
    assert not manifest.exists()


def test_remap_tells_first_and_writes_when_told_to(
    folder: Path, rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "output"
    told = printed(capsys, "remap", folder, "--rules", rules, "--output", output)
    assert told["applied"] is False
    assert told["renamed"] == [{"old": "lm_head.weight", "new": "output.weight", "file": SECOND}]
    assert not output.exists()
    written = printed(capsys, "remap", folder, "--rules", rules, "--output", output, "--apply")
    assert written["written"]["files"] == 6
    assert "output.weight" in read_back(output / SECOND)
    assert run("remap", folder, "--rules", rules) == 0
    assert "lm_head.weight → output.weight" in capsys.readouterr().out


def test_remap_ends_with_1_where_a_rule_matches_nothing_and_with_3_where_names_collide(
    folder: Path, rules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules.write_text("[[rule]]\nmatch = 'absent'\ndrop = true\n")
    assert run("remap", folder, "--rules", rules) == 1
    assert run("remap", folder, "--rules", rules, "--output", folder.parent / "idle", "--apply") == 1
    assert not (folder.parent / "idle").exists()
    assert "1 rule without any name that matches" in capsys.readouterr().out
    rules.write_text("[[rule]]\nmatch = '.+'\nreplace = 'x'\n")
    assert len(printed(capsys, "remap", folder, "--rules", rules, code=3)["collisions"]) == 1
    with pytest.raises(UsageError, match="belong to several"):
        run("remap", folder, "--rules", rules, "--output", folder.parent / "output", "--apply")
    with pytest.raises(UsageError, match="needs --output"):
        run("remap", folder, "--rules", rules, "--apply")


def test_remap_tells_where_the_config_names_what_is_renamed_and_what_is_not_copied(
    folder: Path, rules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"quantization_config": {"ignore": ["lm_head", "model.embed_tokens"]}, "model_type": "toy"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "training_args.bin").write_bytes(b"x")
    found = printed(capsys, "remap", folder, "--rules", rules)
    assert found["stale_in_config"] == ["lm_head"]
    assert found["not_copied"][0]["file"] == "training_args.bin"


def test_names_with_control_characters_reach_no_terminal(
    tmp_path: Path, rules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "x\x1b]0;owned\x07\u202e\n"
    folder = model_folder(tmp_path / "model", {f"{name}.safetensors": {f"lm_head{name}": ("U8", (1,))}}, index=False)
    (folder / f"{name}.bin").write_bytes(b"")
    for command in (("inspect", folder), ("verify", folder), ("remap", folder, "--rules", rules),
                    ("shard", folder, "--output", tmp_path / "o", "--dry-run")):  # fmt: skip
        for form in ("text", "json"):
            run(*command, "--format", form)
            out = capsys.readouterr().out
            assert not {"\x1b", "\x07", "\u202e"} & set(out)
            assert "owned" in out or command[0] == "verify"


def test_shard_writes_or_only_tells(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "output"
    told = printed(capsys, "shard", folder, "--output", output, "--max-bytes", "400", "--dry-run")
    assert told["applied"] is False
    assert not output.exists()
    written = printed(capsys, "shard", folder, "--output", output, "--max-bytes", "400")
    assert sorted(file.name for file in output.glob("*.safetensors")) == [file["name"] for file in written["files"]]
    capsys.readouterr()
    assert run("verify", output, "--hashes") == 0
    assert capsys.readouterr().err == ""  # no bar where there is no terminal


def test_no_file_of_the_checkpoint_tools_can_load_a_pickle() -> None:
    loaders = {"pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "torch", "marshal", "shelve"}
    files = list(Path(str(casemate.checkpoint.__file__)).parent.rglob("*.py"))
    assert len(files) > 10
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not loaders & {name.partition(".")[0] for name in names}, file
