"""Reading the text of `vllm serve --help=all`."""

from __future__ import annotations

import pytest

from casemate.engine.flags.helptext import from_help
from casemate.engine.flags.table import recorded
from casemate.errors import UsageError
from casemate.plan.recipe.flags import Flag, History
from engine.parsers import columns, parser

_NOTHING_KNOWN = History(("0.1.0",), ())


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_a_help_that_argparse_prints_gives_the_same_flags_whatever_the_terminal(width: int) -> None:
    table = recorded().table("0.26.0")
    with columns(width):
        text = parser(table).format_help()
    found = {flag.name: flag for flag in from_help(text, recorded()).flags}
    assert set(found) == {flag.name for flag in table.flags}
    for flag in table.flags:
        read = found[flag.name]
        assert (read.form, read.arity, read.aliases) == (flag.form, flag.arity, flag.aliases)
        assert read.deprecated is flag.deprecated
        if flag.closed and flag.form != "word":
            assert set(read.values) == set(flag.values)


_FILLER = "".join(f"  --filler-{number} N        A number.\n" for number in range(30))


def _read(lines: str, history: History = _NOTHING_KNOWN) -> dict[str, Flag]:
    text = f"usage: vllm serve [model_tag] [options]\n\nModelConfig:\n  What it is.\n\n{lines}\n{_FILLER}"
    return {flag.name: flag for flag in from_help(text, history).flags}


def test_choices_that_a_terminal_broke_over_lines_are_put_together() -> None:
    flags = _read(
        "  --kv-cache-dtype {auto,fp8,fp8_e4m3,fp8_\ne5m2,fp8_inc}\n                        How the cache is kept.\n"
    )
    assert flags["kv-cache-dtype"].values == ("auto", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc")
    assert flags["kv-cache-dtype"].closed


def test_a_list_of_built_in_values_is_open_and_braces_with_an_or_are_too() -> None:
    flags = _read(
        "  --tokenizer-mode ['auto', 'hf', 'slow']\n                        The mode.\n"
        "  --tool-call-parser {hermes,mistral} or name registered in --tool-parser-plugin\n"
        "                        The parser.\n"
    )
    assert flags["tokenizer-mode"].values == ("auto", "hf", "slow")
    assert not flags["tokenizer-mode"].closed
    assert flags["tool-call-parser"].values == ("hermes", "mistral")
    assert not flags["tool-call-parser"].closed
    assert flags["tool-call-parser"].aliases == ()


def test_pairs_twins_and_switches_are_told_apart() -> None:
    flags = _read(
        "  --enforce-eager, --no-enforce-eager\n                        No graphs.\n"
        "  --enable-log-requests, --disable-log-requests\n                        Log them.\n"
        "  --headless            No front end.\n"
    )
    assert [flags[name].form for name in ("enforce-eager", "enable-log-requests", "headless")] == [
        "pair",
        "twin",
        "switch",
    ]


def test_short_names_values_and_defaults_are_read_in_the_old_and_the_new_order() -> None:
    flags = _read(
        "  --tensor-parallel-size TENSOR_PARALLEL_SIZE, -tp TENSOR_PARALLEL_SIZE\n"
        "                        How many. (default: 1)\n"
        "  -pp, --pipeline-parallel-size PIPELINE_PARALLEL_SIZE\n                        Stages. (default: None)\n"
        "  --api-key API_KEY [API_KEY ...]\n                        Keys.\n"
        "  --hf-token [HF_TOKEN]\n                        A token.\n"
    )
    assert (flags["tensor-parallel-size"].aliases, flags["tensor-parallel-size"].default) == (("-tp",), "1")
    assert (flags["pipeline-parallel-size"].aliases, flags["pipeline-parallel-size"].default) == (("-pp",), "")
    assert (flags["api-key"].arity, flags["hf-token"].arity) == ("+", "?")


def test_what_kind_of_number_it_is_comes_from_the_records_and_colours_are_no_part_of_it() -> None:
    flags = _read("  \x1b[36m--max-model-len\x1b[0m MAX_MODEL_LEN\n                        Length.\n", recorded())
    assert flags["max-model-len"].form == "length"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "usage: ls [options]\n  --all  everything\n",
        "Config Groups:\n  ModelConfig  what it is\n",
        "\x00\x01",
        "{" * 300_000,
    ],
)
def test_what_is_no_full_help_is_refused_and_says_how_to_make_one(text: str) -> None:
    with pytest.raises(UsageError, match="vllm serve --help=all"):
        from_help(text, recorded())
