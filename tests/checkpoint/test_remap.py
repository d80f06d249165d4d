from __future__ import annotations

import json
import os
import shutil
from hashlib import sha256
from pathlib import Path

import pytest

from casemate.checkpoint.assembling import assemble
from casemate.checkpoint.remapping import Collision, Remapping, Renaming, layout_of, remapped
from casemate.checkpoint.rules import read_rules
from casemate.checkpoint.safetensors import INDEX, read_folder
from casemate.checkpoint.verifying import verify
from casemate.errors import UsageError
from checkpoint.weights import SHARDS, framed, model_folder, read_back

FIRST, SECOND = SHARDS
RENAME = "[[rule]]\nmatch = '^model\\.layers\\.(\\d+)\\.mlp\\.up'\nreplace = 'layers.\\1.ffn.w1'\n"
DROP = "[[rule]]\nmatch = 'inv_freq$'\ndrop = true\n"


def tried(source: Path, rules: str) -> Remapping:
    file = source.parent / "rules.toml"
    file.write_text(rules)
    return remapped(read_folder(source), read_rules(file))


def remap(source: Path, rules: str) -> Path:
    return assemble(layout_of(read_folder(source), tried(source, rules)), source.parent / "output").output


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return model_folder(tmp_path / "source")


def test_what_would_change_is_told_before_anything_does(source: Path) -> None:
    difference = tried(source, RENAME + DROP + "[[rule]]\nmatch = 'absent'\ndrop = true\n").difference
    assert difference.renamed == (
        Renaming("model.layers.0.mlp.up.weight", "layers.0.ffn.w1.weight", FIRST),
        Renaming("model.layers.0.mlp.up.scale", "layers.0.ffn.w1.scale", FIRST),
        Renaming("model.layers.1.mlp.up.weight", "layers.1.ffn.w1.weight", SECOND),
    )
    assert [tensor.name for tensor in difference.dropped] == ["model.layers.1.rotary.inv_freq"]
    assert (difference.untouched, difference.dropped_bytes) == (2, 12)
    assert [count for _, count in difference.uses] == [3, 1, 0]
    assert [rule.match for rule in difference.idle] == ["absent"]
    assert [file.name for file in source.parent.iterdir() if file.name not in ("source", "rules.toml")] == []


def test_names_change_and_data_does_not(source: Path) -> None:
    output = remap(source, RENAME + DROP)
    for file, shapes in SHARDS.items():
        before, after = read_back(source / file), read_back(output / file)
        names = {name: name.replace("model.layers.", "layers.").replace("mlp.up", "ffn.w1") if "mlp" in name else name
                 for name in shapes}  # fmt: skip
        assert after == {names[name]: before[name] for name in shapes if "inv_freq" not in name}
    index = json.loads((output / INDEX).read_text())
    assert index["weight_map"] == {tensor.name: tensor.file for tensor in read_folder(output).tensors}
    assert index["metadata"]["total_size"] == sum(tensor.size_bytes for tensor in read_folder(output).tensors)
    assert dict(read_folder(output).headers[0].metadata) == {"format": "pt"}


def test_a_file_in_which_nothing_changes_is_equal_to_the_last_byte(source: Path) -> None:
    spaced = json.dumps({"a": {"shape": [1], "dtype": "U8", "data_offsets": [0, 1]}}, indent=4)
    (source / SECOND).write_bytes(framed(spaced.encode(), b"x"))
    (source / INDEX).unlink()
    output = remap(source, RENAME)
    assert digest(output / SECOND) == digest(source / SECOND)
    assert digest(output / FIRST) != digest(source / FIRST)


def test_where_no_rule_matches_every_file_is_equal_to_the_last_byte(source: Path) -> None:
    index = json.loads((source / INDEX).read_text())
    (source / INDEX).write_text(json.dumps({**index, "note": "kept"}))
    output = remap(source, "[[rule]]\nmatch = 'absent'\ndrop = true\n")
    assert {file.name: digest(file) for file in output.iterdir()} == {
        file.name: digest(file) for file in source.iterdir()
    }


def test_a_file_that_loses_every_tensor_is_not_written(source: Path) -> None:
    output = remap(source, "[[rule]]\nmatch = 'layers\\.1|lm_head'\ndrop = true\n")
    assert not (output / SECOND).exists()
    assert set(json.loads((output / INDEX).read_text())["weight_map"].values()) == {FIRST}


def test_numbered_files_without_an_index_get_one_when_one_of_them_goes(tmp_path: Path) -> None:
    source = model_folder(tmp_path / "source", index=False)
    output = remap(source, "[[rule]]\nmatch = 'layers\\.1|lm_head'\ndrop = true\n")
    assert verify(output).is_clean
    assert verify(remap_again(output)).is_clean


def remap_again(source: Path) -> Path:
    """A folder that keeps its files but not all names."""
    layout = layout_of(read_folder(source), tried(source, RENAME))
    return assemble(layout, source.parent / "again").output


def test_rules_run_in_order_each_on_what_the_one_before_left(source: Path) -> None:
    rules = "[[rule]]\nmatch = '^lm_head'\nreplace = 'output'\n[[rule]]\nmatch = '^output\\.'\nreplace = 'head.'\n"
    assert tried(source, rules).difference.renamed == (Renaming("lm_head.weight", "head.weight", SECOND),)


def test_a_rule_file_may_also_set_the_size_of_the_files(source: Path) -> None:
    output = remap(source, 'max_bytes = "1GB"\n' + RENAME)
    assert [file.name for file in output.glob("*.safetensors")] == ["model.safetensors"]
    assert "layers.0.ffn.w1.weight" in read_back(output / "model.safetensors")


def test_names_that_would_belong_to_two_tensors_are_told_and_nothing_is_written(source: Path) -> None:
    remapping = tried(source, "[[rule]]\nmatch = 'layers\\.\\d'\nreplace = 'layers.0'\n")
    assert remapping.difference.collisions == (
        Collision(
            "model.layers.0.mlp.up.weight",
            (f"{FIRST}: model.layers.0.mlp.up.weight", f"{SECOND}: model.layers.1.mlp.up.weight"),
        ),
    )
    with pytest.raises(UsageError, match="1 names would belong to several"):
        layout_of(read_folder(source), remapping)


@pytest.mark.parametrize("replacement", ["", "__metadata__"])
def test_a_name_that_the_format_cannot_have_is_refused(source: Path, replacement: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name"):
        remap(source, f"[[rule]]\nmatch = '^lm_head.weight$'\nreplace = '{replacement}'\n")


def test_dropping_everything_is_refused(source: Path) -> None:
    with pytest.raises(UsageError, match="every tensor"):
        remap(source, "[[rule]]\nmatch = '.'\ndrop = true\n")


@pytest.mark.parametrize(
    "rules",
    [
        "",
        "rule = 1",
        "rule = [1]",
        "[[rule]]",
        "[[rule]]\nmatch = 'a'",
        "[[rule]]\nmatch = 'a'\ndrop = false",
        "[[rule]]\nmatch = 'a'\ndrop = true\nreplace = 'b'",
        "[[rule]]\nmatch = 'a'\ndrop = 1",
        "[[rule]]\nmatch = ''\ndrop = true",
        "[[rule]]\nmatch = 7\ndrop = true",
        "[[rule]]\nmatch = 'a'\nreplace = 7",
        "[[rule]]\nmatch = 'a'\ndrop = true\ncast = 'F16'",
        "max_bytes = -1",
        "max_bytes = true",
        "max_bytes = 'much'",
        "other = 1",
        "[[rule]\n",
        "a = " + "[" * 9999,
        "# " + "x" * (1 << 20),
        "[[rule]]\nmatch = '" + "a" * 5000 + "'\ndrop = true",
    ],
    ids=range(20),
)
def test_a_rule_file_of_another_form_is_refused(source: Path, rules: str) -> None:
    with pytest.raises(UsageError) as refused:
        tried(source, rules)
    assert "rules.toml" in refused.value.where


def test_a_rule_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="no TOML"):
        read_rules(tmp_path / "rules.toml")


@pytest.mark.parametrize(
    ("match", "replace", "reason"),
    [
        ("(", "x", "rule 1"),
        ("a", "\\\\1", "invalid group"),
        ("(?P<a>x)", "\\\\g<b>", "unknown group"),
        ("a{9999999999}", "x", "rule 1"),
    ],
)
def test_a_wrong_expression_or_replacement_is_refused_with_the_rules_number(
    source: Path, match: str, replace: str, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        tried(source, f'[[rule]]\nmatch = "{match}"\nreplace = "{replace}"\n')


def test_an_expression_that_backtracks_without_end_is_ended(tmp_path: Path) -> None:
    source = model_folder(tmp_path / "source", {"model.safetensors": {"a" * 60: ("U8", (1,))}})
    with pytest.raises(UsageError, match=r"time limit"):
        tried(source, "[[rule]]\nmatch = '^(a+)+$x'\ndrop = true\n".replace("$x", "b$"))


def test_a_replacement_that_makes_names_explode_is_refused(source: Path) -> None:
    rule = "[[rule]]\nmatch = '(.*weight)'\nreplace = '\\1\\1\\1\\1\\1\\1\\1\\1'\n"
    with pytest.raises(UsageError, match="4096 letters"):
        tried(source, rule * 8)


def test_too_little_room_on_the_disk_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    size = shutil.disk_usage(tmp_path).free + (1 << 30)
    source = tmp_path / "source"
    source.mkdir()
    header = framed({"a": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}})
    (source / "model.safetensors").write_bytes(header)
    os.truncate(source / "model.safetensors", len(header) + size)
    with pytest.raises(UsageError, match=r"MiB free; .* MiB are to be written, and"):
        remap(source, "[[rule]]\nmatch = 'a'\nreplace = 'b'\n")
    assert {file.name for file in tmp_path.iterdir()} == {"source", "rules.toml"}


def digest(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()


def test_a_replacement_with_characters_that_do_not_show_is_refused(source: Path) -> None:
    for odd in ("\\u001b[2J", "\\u202e", "\\n"):
        with pytest.raises(UsageError, match="control characters"):
            tried(source, f"[[rule]]\nmatch = '^lm_head'\nreplace = \"x{odd}\"\n")
