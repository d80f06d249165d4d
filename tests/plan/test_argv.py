"""The command of a plan: right in the words of each release, and nothing in it that should not be."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from typing import Any

import pytest

from casemate.cli import planning
from casemate.engine.flags.table import recorded
from casemate.errors import UsageError
from casemate.plan.argv import argv, command
from casemate.plan.decision import Purpose, Speculation
from casemate.plan.dialect import dialect
from casemate.plan.environment import cautions, dtype, environment, peer_writes_lost
from casemate.plan.recipe.checking import judged
from casemate.plan.recipe.shell import Word, commands
from casemate.plan.recipe.uses import uses
from plan import launches, shapes
from plan.launches import CASES, MODELS, VERSIONS, named, planned, serving, table


def words(name: str, gpus: str, version: str, **intent: object) -> tuple[str, ...]:
    plan = planned(name, named(gpus), version, **intent)
    assert plan is not None
    return argv(plan, serving(name, version))


def value(found: tuple[str, ...], flag: str) -> str:
    return found[found.index(flag) + 1]


VARIATIONS: tuple[dict[str, Any], ...] = (
    {},
    {"nodes": 2, "pipeline_parallel": 2},
    {"data_parallel": 2, "expert_parallel": True},
    {"enforce_eager": True, "gpu_memory_utilization": 0.5},
    {"kv_cache_dtype": "fp8", "block_size": 256, "max_num_seqs": 128},
    {"speculation": Speculation("mtp", 1), "moe_backend": "marlin"},
)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("name", "gpus"), CASES)
def test_no_command_has_a_word_that_its_release_does_not_know(name: str, gpus: str, version: str) -> None:
    plan = planned(name, named(gpus), version, context=8192, concurrency=8)
    assert plan is not None
    for variation in VARIATIONS:
        for more in ({}, {"peer_writes_lost": True}, {"dtype": "half"}):
            served = serving(name, version, **more)
            arguments = [Word(word, 1) for word in argv(replace(plan, **variation), served)[2:]]
            found = judged(uses(arguments, served.table, history=recorded()), served.table, history=recorded())
            assert not found, f"{variation}: {found}"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("name", "gpus"), CASES)
def test_the_linter_finds_nothing_in_a_planned_command(name: str, gpus: str, version: str) -> None:
    machine = named(gpus)
    release = planning.release_of(version, machine)
    for intent in ({"context": 8192, "concurrency": 8}, {"context": 2048, "concurrency": 1, "purpose": Purpose.BATCH}):
        plan = planned(name, machine, version, **intent)
        assert plan is not None
        served = serving(name, version)
        pairs = tuple((item.name, item.value) for item in environment(plan, served, machine=machine))
        ground = planning.ground_of(release, launches.checkpoint(name), machine=machine)
        assert planning.remarks(argv(plan, served), pairs, ground=ground) == ()


def test_the_linter_is_asked_in_earnest() -> None:
    """The check above must be able to fail."""
    machine = named("2xH20-96GB")
    release = planning.release_of("0.33.0", machine)
    found = (*words("v4", "2xH20-96GB", "0.33.0"), "--swap-space", "4")
    assert planning.remarks(found, (), ground=planning.ground_of(release, launches.checkpoint("v4"), machine=machine))


@pytest.mark.parametrize("version", VERSIONS)
def test_what_memory_and_answers_rest_on_is_pinned(version: str) -> None:
    plan = planned("v4", named("2xH20-96GB"), version)
    assert plan is not None
    found = argv(plan, serving("v4", version))
    assert value(found, "--max-model-len") == str(plan.max_model_len)
    assert value(found, "--max-num-batched-tokens") == str(plan.max_num_batched_tokens)
    assert value(found, "--max-num-seqs") == str(plan.max_num_seqs)
    assert value(found, "--max-cudagraph-capture-size") == str(plan.max_cudagraph_capture_size)
    assert value(found, "--kv-cache-dtype") == "fp8"
    assert value(found, "--block-size") == "256"
    kwargs = json.loads(value(found, "--default-chat-template-kwargs"))
    assert kwargs == {"thinking": True, "reasoning_effort": "low"}


def test_the_engine_listens_on_loopback_under_the_given_name_and_port() -> None:
    plan = planned("llama-8b", named("1xL40S"), "0.33.0")
    assert plan is not None
    found = argv(plan, serving("llama-8b", "0.33.0", port=9001, served_name="team/analyst"))
    assert found[:3] == ("vllm", "serve", "/models/llama-8b")
    assert (value(found, "--host"), value(found, "--port")) == ("127.0.0.1", "9001")
    assert value(found, "--served-model-name") == "team/analyst"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("name", "gpus"), CASES)
def test_no_command_trusts_remote_code_hides_statistics_or_holds_a_key(name: str, gpus: str, version: str) -> None:
    plan = planned(name, named(gpus), version, context=8192, concurrency=8)
    assert plan is not None
    text = " ".join(argv(plan, serving(name, version)))
    for never in ("trust-remote-code", "disable-log-stats", "api-key", "0.0.0.0", "enable-log-requests"):
        assert never not in text


def test_a_share_that_is_the_releases_own_is_left_out() -> None:
    plan = planned("llama-8b", named("1xH100"), "0.33.0")
    assert plan is not None
    plan = replace(plan, gpu_memory_utilization=0.92)
    assert "--gpu-memory-utilization" not in argv(plan, serving("llama-8b", "0.33.0"))
    assert value(argv(plan, serving("llama-8b", "0.19.1")), "--gpu-memory-utilization") == "0.92"


def test_graph_sizes_and_silence_are_spelled_as_each_release_has_them() -> None:
    plan = planned("llama-8b", named("1xH100"), "0.33.0")
    assert plan is not None
    assert "--max-cudagraph-capture-size" in argv(plan, serving("llama-8b", "0.11.2"))
    assert value(argv(plan, serving("llama-8b", "0.9.2")), "--cuda-graph-sizes") == "32"
    assert "--disable-log-requests" in argv(plan, serving("llama-8b", "0.9.2"))
    assert "--disable-log-requests" not in argv(plan, serving("llama-8b", "0.10.2"))
    eager = argv(replace(plan, enforce_eager=True), serving("llama-8b", "0.33.0"))
    assert "--enforce-eager" in eager
    assert "--max-cudagraph-capture-size" not in eager


def test_a_draft_is_one_json_option() -> None:
    found = words("v4-dspark", "4xH200", "0.33.0", context=131072)
    assert json.loads(value(found, "--speculative-config")) == {
        "method": "dspark",
        "num_speculative_tokens": 7,
        "draft_sample_method": "probabilistic",
    }
    assert json.loads(value(words("v4", "4xH200", "0.33.0", context=131072), "--speculative-config")) == {
        "method": "mtp",
        "num_speculative_tokens": 1,
    }


def test_several_hosts_run_on_ray() -> None:
    found = words("v3", "8xH100", "0.33.0", nodes=2)
    assert value(found, "--distributed-executor-backend") == "ray"
    assert value(found, "--pipeline-parallel-size") == "2"


def test_parsers_follow_the_config_and_the_release() -> None:
    v4 = dialect(launches.checkpoint("v4"), table("0.33.0"))
    assert (v4.tokenizer_mode, v4.reasoning_parser, v4.tool_call_parser) == ("deepseek_v4",) * 3
    older = dialect(launches.checkpoint("v4"), table("0.19.1"))
    assert (older.tokenizer_mode, older.reasoning_parser, older.tool_call_parser) == ("", "", "")
    assert len(older.notes) == 2
    oss = dialect(launches.checkpoint("gpt-oss"), table("0.33.0"))
    assert (oss.reasoning_parser, oss.tool_call_parser, oss.template) == ("openai_gptoss", "openai", ())


@pytest.mark.parametrize("name", ["qwen3-235b", "v3", "llama-8b"])
def test_a_config_that_does_not_tell_the_dialect_gets_no_parser_and_a_note(name: str) -> None:
    found = dialect(launches.checkpoint(name), table("0.33.0"))
    assert (found.reasoning_parser, found.tool_call_parser) == ("", "")
    assert "does not tell" in found.notes[0]


def test_a_name_in_the_folder_decides_nothing() -> None:
    renamed = shapes.read(MODELS["llama-8b"], "DeepSeek-V4-Flash")
    assert dialect(renamed, table("0.33.0")).tool_call_parser == ""


@pytest.mark.parametrize(
    "wrong",
    [
        {"port": 0}, {"port": 65536}, {"served_name": ""}, {"served_name": "--host"}, {"served_name": "a b"},
        {"served_name": "a\nb"}, {"folder": "relative"}, {"folder": "/models/a\nExecStart=x"}, {"folder": "--model"},
    ],
)  # fmt: skip
def test_what_cannot_stand_in_a_command_is_refused(wrong: dict[str, object]) -> None:
    plan = planned("llama-8b", named("1xH100"), "0.33.0")
    assert plan is not None
    with pytest.raises(UsageError):
        argv(plan, serving("llama-8b", "0.33.0", **wrong))


def test_a_pasted_command_is_the_same_words() -> None:
    plan = planned("v4", named("2xH20-96GB"), "0.33.0")
    assert plan is not None
    found = argv(plan, serving("v4", "0.33.0", folder='/models/it\'s $HOME/50% "off"'))
    text = command(found, (("NAME", "a b"),))
    assert tuple(shlex.split(text.replace("\\\n", ""))) == ("NAME=a b", *found)
    split = [word.text for line in commands(text) for word in line]
    assert split == ["NAME=a b", *found]


def test_a_subset_of_the_cards_is_named_by_uuid_where_the_release_takes_them() -> None:
    machine = named("8xH20-96GB")
    plan = planned("llama-8b", machine, "0.33.0")
    assert plan is not None
    shown = {item.name: item.value for item in environment(plan, serving("llama-8b", "0.33.0"), machine=machine)}
    assert shown["CUDA_VISIBLE_DEVICES"] == machine.cards[0].uuid
    older = {item.name: item.value for item in environment(plan, serving("llama-8b", "0.20.0"), machine=machine)}
    assert (older["CUDA_DEVICE_ORDER"], older["CUDA_VISIBLE_DEVICES"]) == ("PCI_BUS_ID", "0")
    whole = planned("v4", named("2xH20-96GB"), "0.33.0")
    assert whole is not None
    names = [item.name for item in environment(whole, serving("v4", "0.33.0"), machine=named("2xH20-96GB"))]
    assert names == ["VLLM_ENGINE_READY_TIMEOUT_S", "VLLM_NO_USAGE_STATS", "DO_NOT_TRACK", "HF_HUB_OFFLINE"]


def test_a_slice_of_a_card_is_always_named_and_never_by_its_parents_number() -> None:
    machine = launches.sliced()
    plan = planned("llama-8b", machine, "0.33.0", context=4096)
    assert plan is not None
    new, old = serving("llama-8b", "0.33.0"), serving("llama-8b", "0.20.0")
    assert {item.name: item.value for item in environment(plan, new, machine=machine)}[
        "CUDA_VISIBLE_DEVICES"
    ] == "MIG-3"
    assert list(cautions(plan, new, machine=machine)) == []
    assert "CUDA_VISIBLE_DEVICES" not in {item.name for item in environment(plan, old, machine=machine)}
    assert "vllm#41848" in next(cautions(plan, old, machine=machine))


def test_direct_exchange_is_off_only_where_bridges_redirect_it() -> None:
    machine = launches.redirected()
    plan = planned("llama-70b", machine, "0.33.0", context=2048, concurrency=1)
    plan = plan or planned("llama-8b", machine, "0.33.0")
    assert plan is not None
    plan = replace(plan, cards=(0, 1), tensor_parallel=2)
    assert peer_writes_lost(plan, machine)
    served = serving("llama-8b", "0.33.0", peer_writes_lost=True)
    assert "--disable-custom-all-reduce" in argv(plan, served)
    assert "NCCL_P2P_DISABLE" in {item.name for item in environment(plan, served, machine=machine)}
    assert not peer_writes_lost(plan, replace(machine, surroundings=launches.BARE))
    assert not peer_writes_lost(plan, named("2xH100", acs_redirect=True)), "NVLink does not pass the bridges"


@pytest.mark.parametrize(("gpus", "said"), [("1xT4", True), ("1xL4", False)])
def test_a_bfloat16_model_is_started_in_half_on_cards_without_bfloat16(gpus: str, *, said: bool) -> None:
    machine = named(gpus)
    plan = planned("llama-8b", named("1xH100"), "0.33.0")
    assert plan is not None
    kind = dtype(plan, launches.checkpoint("llama-8b"), machine=machine)
    assert ("--dtype half" in " ".join(argv(plan, serving("llama-8b", "0.33.0", dtype=kind)))) is said
