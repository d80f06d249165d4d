"""The recorded tables: what became of which flag, and that the file says what it was given."""

from __future__ import annotations

from importlib import resources

import pytest

from casemate.engine.flags import table
from casemate.engine.flags.advice import advice
from casemate.engine.flags.published import published
from casemate.plan.recipe.flags import Flag, FlagTable, Hit, numbers

_HISTORY = table.recorded()
_ALWAYS = "0.6.3", "0.33.0"

# flag: first and last recorded version that has it (the lifetimes that were read off the wheels by hand)
_LIFETIMES = {
    "quantization-param-path": ("0.6.3", "0.6.3"),
    "disable-log-requests": ("0.6.3", "0.16.0"),
    "enable-log-requests": ("0.10.2", "0.33.0"),
    "disable-log-stats": _ALWAYS,
    "preemption-mode": ("0.6.3", "0.10.2"),
    "device": ("0.6.3", "0.9.2"),
    "num-scheduler-steps": ("0.6.3", "0.9.2"),
    "enable-reasoning": ("0.7.3", "0.9.2"),
    "swap-space": ("0.6.3", "0.16.0"),
    "calculate-kv-scales": ("0.7.3", "0.26.0"),
    "max-num-partial-prefills": ("0.7.3", "0.26.0"),
    "kv-cache-memory-bytes": ("0.10.2", "0.33.0"),
    "moe-backend": ("0.19.1", "0.33.0"),
    "reasoning-config": ("0.19.1", "0.33.0"),
    "linear-backend": ("0.22.1", "0.33.0"),
    "default-chat-template-kwargs": ("0.16.0", "0.33.0"),
    "enforce-eager": _ALWAYS,
    "enable-prefix-caching": _ALWAYS,
    "enable-chunked-prefill": _ALWAYS,
    "block-size": _ALWAYS,
    "pipeline-parallel-size": _ALWAYS,
    "kv-cache-dtype": _ALWAYS,
    "gpu-memory-utilization": _ALWAYS,
    "max-num-batched-tokens": _ALWAYS,
    "tokenizer-mode": _ALWAYS,
}


@pytest.mark.parametrize("name", _LIFETIMES)
def test_a_flag_is_there_from_its_first_to_its_last_version_and_in_no_other(name: str) -> None:
    first, last = _LIFETIMES[name]
    held = [version for version in _HISTORY.versions if _HISTORY.table(version).get(name)]
    inside = [version for version in _HISTORY.versions if numbers(first) <= numbers(version) <= numbers(last)]
    assert held == inside


def test_a_flag_that_never_was_is_in_no_version() -> None:
    assert _HISTORY.spans_of("max-num-prompt-tokens") == ()


def test_logging_of_requests_was_deprecated_before_it_went() -> None:
    said = [_flag(version, "disable-log-requests").deprecated for version in ("0.9.2", "0.10.2")]
    assert said == [False, True]


def test_since_0_33_the_pair_takes_enable_and_disable_for_each_other() -> None:
    assert _HISTORY.table("0.32.0").find("--disable-log-requests") is None
    hit = _HISTORY.table("0.33.0").find("--disable-log-requests")
    assert isinstance(hit, Hit)
    assert (hit.flag.name, hit.negated) == ("enable-log-requests", True)


def test_block_sizes_were_a_closed_list_once() -> None:
    assert _flag("0.6.3", "block-size").values == ("8", "16", "32")
    assert not _flag("0.33.0", "block-size").closed


def test_the_demonstration_server_went_after_0_22_and_the_other_stayed() -> None:
    there = {version: "vllm.entrypoints.api_server" in _HISTORY.table(version).modules for version in _HISTORY.versions}
    assert [version for version, held in there.items() if held][-1] == "0.22.1"
    assert all("vllm.entrypoints.openai.api_server" in _HISTORY.table(version).modules for version in _HISTORY.versions)


def test_aliases_forms_and_registries_are_recorded() -> None:
    assert _flag("0.33.0", "tensor-parallel-size").aliases == ("-tp",)
    assert _flag("0.33.0", "gpu-memory-utilization").aliases == ("--device-memory-utilization",)
    assert _flag("0.33.0", "max-model-len").form == "length"
    assert _flag("0.33.0", "moe-backend").form == "word"
    assert {"deepseek_v4", "hermes"} <= set(_flag("0.33.0", "tool-call-parser").values)
    assert "hermes" in _flag("0.6.3", "tool-call-parser").values
    assert "fp8" in _flag("0.33.0", "quantization").values


def test_variables_are_recorded_as_they_came_and_went() -> None:
    assert "VLLM_USE_V1" in _HISTORY.table("0.10.2").variables
    assert "VLLM_USE_V1" not in _HISTORY.table("0.33.0").variables


def test_the_file_is_small_and_comes_back_from_its_own_tables_letter_by_letter() -> None:
    text = (resources.files("casemate.engine.flags") / "vllm.tsv").read_text(encoding="utf-8")
    assert len(text.encode()) < 150_000
    assert table.written([_HISTORY.table(version) for version in _HISTORY.versions]) == text


def test_a_version_that_is_added_makes_new_lines_only_where_something_changed() -> None:
    old = FlagTable("1.0.0", (Flag("a", "int"), Flag("b", "switch")))
    new = FlagTable("1.1.0", (Flag("a", "int"), Flag("b", "pair"), Flag("c", values=("x", "y"), closed=True)))
    text = table.written([new, old])
    rows = [line.split("\t")[:4] for line in text.splitlines() if line[:1] in "abc"]
    assert rows == [
        ["a", "1.0.0", "1.1.0", "int"],
        ["b", "1.0.0", "1.0.0", "switch"],
        ["b", "1.1.0", "1.1.0", "pair"],
        ["c", "1.1.0", "1.1.0", "str"],
    ]
    assert table.parsed(text).table("1.1.0").flags == new.flags


def test_the_nearest_version_is_the_newest_that_is_not_newer() -> None:
    assert [_HISTORY.nearest(version) for version in ("0.27.1", "0.33.0", "9.9", "0.1")] == [
        "0.26.0",
        "0.33.0",
        "0.33.0",
        "0.6.3",
    ]


def test_every_piece_of_advice_names_its_source_and_what_it_replaces_exists() -> None:
    newest = _HISTORY.table("0.33.0")
    for row in advice():
        assert row.says.endswith("."), row.name
        assert row.source, row.name
        words = [] if row.mend == "keep" else row.mend.split()
        if words:
            assert newest.find(words[0]), row.name
        if row.when == "gone":
            assert newest.get(row.name) is None, row.name
        if row.when == "here":
            assert _HISTORY.spans_of(row.name), row.name


def test_published_facts_are_those_of_the_two_checkpoints_and_of_no_name_that_only_looks_alike() -> None:
    preview, official = published("deepseek-ai/DeepSeek-V4-Flash"), published("deepseek-ai/DeepSeek-V4-Flash-0731")
    assert preview
    assert official
    assert preview.draft
    assert official.draft
    assert (preview.draft.method, official.draft.method) == ("mtp", "dspark")
    assert published("./deepseek-v4-flash-hf") is None


def _flag(version: str, name: str) -> Flag:
    found = _HISTORY.table(version).get(name)
    assert found is not None
    return found
