"""Options as the engine's parser takes them; argparse itself, made from the same table, is the judge."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casemate.engine.flags.table import recorded
from casemate.plan.recipe.checking import check
from casemate.plan.recipe.flags import Ambiguous, Flag, FlagTable, Hit, dashed, is_option, numbers
from casemate.plan.recipe.values import refused
from engine.parsers import RefusedError, parser

_NEWEST = recorded().table("0.33.0")
_SMALL = FlagTable(
    "1",
    (
        Flag("model"),
        Flag("port", "int"),
        Flag("max-len", "int", aliases=("-ml",)),
        Flag("max-seqs", "int"),
        Flag("ratio", "float"),
        Flag("eager", "switch"),
        Flag("enable-cache", "pair"),
        Flag("kind", values=("one", "two"), closed=True),
        Flag("keys", arity="+", aliases=("-k",)),
        Flag("token", arity="?"),
        Flag("level", "int", values=("1", "2"), closed=True),
    ),
)
_WORDS = [
    "--port", "--port=8", "8", "-1", "x", "1.5", "--max-len", "--max-l", "--max", "-ml", "-ml=3", "--ratio",
    "--eager",
    "--eager=1", "--enable-cache", "--no-enable-cache", "--no-enable", "--no-eager", "--kind", "one", "three",
    "--kind=two",
    "--keys", "-k", "--token", "--tok", "--level", "2", "--unknown", "-z", "--model", "m",
]  # fmt: skip


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(_WORDS), max_size=6))
def test_a_command_is_refused_exactly_where_argparse_refuses_it(words: list[str]) -> None:
    try:
        parser(_SMALL).parse_args(words)
        stopped = ""
    except RefusedError as refusal:
        stopped = str(refusal)
    argued = [word for word in words if not word.startswith("--model")] if "--model" in words else words
    if argued != words:
        return  # vLLM counts --model and the positional model as one, argparse as two
    found = check(words, _SMALL)
    assert bool(found) is bool(stopped), (words, stopped, [problem.says for problem in found])


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("--tensor-parallel-size", "tensor-parallel-size"),
        ("--tensor_parallel_size", "tensor-parallel-size"),
        ("--tensor-par", "tensor-parallel-size"),
        ("-tp", "tensor-parallel-size"),
        ("--device-memory-utilization", "gpu-memory-utilization"),
        ("-O3", "optimization-level"),
        ("-O=2", "optimization-level"),
        ("-q", "quantization"),
        ("--no-enable-prefix-caching", "enable-prefix-caching"),
        ("--disable-prefix-caching", "enable-prefix-caching"),
        ("--compilation-config.pass_config.fuse_norm", "compilation-config"),
        ("-cc.mode", "compilation-config"),
    ],
)
def test_a_spelling_leads_to_its_flag(typed: str, name: str) -> None:
    hit = _NEWEST.find(typed)
    assert isinstance(hit, Hit)
    assert hit.flag.name == name


def test_keys_behind_a_dot_keep_their_underscores() -> None:
    hit = _NEWEST.find("--compilation_config.pass_config.fuse_norm")
    assert isinstance(hit, Hit)
    assert hit.path == ("pass_config", "fuse_norm")
    assert dashed("--a_b.c_d") == "--a-b.c_d"


def test_a_prefix_of_several_is_ambiguous_and_names_them() -> None:
    found = _NEWEST.find("--max-num")
    assert isinstance(found, Ambiguous)
    assert "--max-num-seqs" in found.names


@pytest.mark.parametrize("typed", ["--nothing-like-it", "--", "-", "-zz", "word", ""])
def test_what_is_no_option_of_it_is_not_found(typed: str) -> None:
    assert _NEWEST.find(typed) is None


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        ("int", ["1", "-1", " 7 ", "1_000", "None"], ["x", "1.0", "1k"]),
        ("float", ["1", ".9", "1e-3"], ["x", "0,9"]),
        ("size", ["8192", "8k", "2K", "1.5m"], ["1.5K", "k", "-1", "auto", "8 k"]),
        ("length", ["auto", "-1", "128k"], ["max", "1.5K"]),
        ("bool", ["true", "False"], ["1", "yes"]),
        ("json", ['{"a": 1}', "None", '{"bytes": 80m}', "[1]"], ["{a: 1}", "{", "[" * 100_000]),
        ("str", ["anything", ""], []),
    ],
)
def test_values_are_taken_and_refused_by_their_form(form: str, good: list[str], bad: list[str]) -> None:
    flag = Flag("x", form)  # type: ignore[arg-type]  # the table's own words, checked by the table of cases
    assert [value for value in good if refused(flag, value)] == []
    assert [value for value in bad if not refused(flag, value)] == []


def test_a_word_of_a_list_may_be_written_with_dashes_and_capitals_where_the_engine_does_not_mind() -> None:
    flag = Flag("moe-backend", "word", values=("deep_gemm", "marlin"), closed=True)
    assert not refused(flag, "Deep-GEMM")
    assert "marlin" in refused(flag, "deepgem")


def test_a_negative_number_and_a_quoted_text_are_no_options() -> None:
    words = ["--a", "-1", "-.5", "-tp", "-", "a", "-a b"]
    assert [word for word in words if is_option(word)] == ["--a", "-tp"]


def test_versions_compare_by_their_numbers() -> None:
    assert numbers("v0.26.0+cu129") == (0, 26, 0)
    assert numbers("0.9.2") < numbers("0.10.2rc1")
    assert numbers("latest") == ()


def test_checking_an_argv_of_the_planner_names_nothing() -> None:
    argv = [
        "m",
        "--tensor-parallel-size",
        "2",
        "--enable-expert-parallel",
        "--max-model-len",
        "131072",
        "--kv-cache-dtype",
        "fp8",
    ]
    assert check(argv, _NEWEST) == ()


def test_without_a_history_a_flag_is_only_unknown_and_with_one_its_life_is_told() -> None:
    (plain,) = check(["--swap-space", "4"], _NEWEST)
    (told,) = check(["--swap-space", "4"], _NEWEST, history=recorded())
    assert (plain.kind, told.kind) == ("unknown", "removed")
    assert "0.16.0" in told.says


def test_a_removed_flag_that_now_reads_as_another_is_told_as_such() -> None:
    (told,) = check(["--device", "cuda"], recorded().table("0.26.0"), history=recorded())
    assert told.kind == "removed"
    assert "--device-ids" in told.says
