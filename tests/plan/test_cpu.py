from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.checkpoint.facts import Gguf
from casemate.doctor.machine import Machine
from casemate.plan.cpu import memory_bytes, plan
from casemate.plan.decision import GIB, CpuPlan, Intent, Refusal

MIB = 1 << 20
MACHINE = Machine(
    cores=4,
    memory_total_bytes=8 * GIB,
    memory_available_bytes=6 * GIB,
    disk_free_bytes=50 * GIB,
    system="Linux",
    architecture="x86_64",
)
CHECKPOINT = Gguf(
    path="model.gguf",
    name="A model",
    architecture="qwen2",
    weights_bytes=GIB,
    layers=28,
    context_length=32768,
    kv_bytes_per_token=28672,
)


def planned(machine: Machine = MACHINE, checkpoint: Gguf = CHECKPOINT, *, intent: Intent = Intent()) -> CpuPlan:  # noqa: B008 - it is frozen
    outcome = plan(machine, checkpoint, intent=intent)
    assert isinstance(outcome, CpuPlan), outcome
    return outcome


def refused(machine: Machine = MACHINE, checkpoint: Gguf = CHECKPOINT, *, intent: Intent = Intent()) -> Refusal:  # noqa: B008 - it is frozen
    outcome = plan(machine, checkpoint, intent=intent)
    assert isinstance(outcome, Refusal), outcome
    return outcome


def test_what_fits_is_planned_as_wanted() -> None:
    outcome = planned()
    assert (outcome.engine, outcome.model, outcome.path) == ("llamacpp", "A model", "model.gguf")
    assert (outcome.context, outcome.slots, outcome.threads) == (4096, 2, 4)


def test_every_value_of_a_plan_has_its_reason() -> None:
    assert [name for name, _ in planned().reasons] == ["context", "slots", "threads", "memory_bytes"]


def test_threads_as_asked_win_over_the_number_of_cores() -> None:
    outcome = planned(intent=Intent(threads=3))
    assert outcome.threads == 3
    assert "as asked" in dict(outcome.reasons)["threads"]


def test_no_more_context_is_planned_than_the_model_was_trained_for() -> None:
    outcome = planned(checkpoint=replace(CHECKPOINT, context_length=2048))
    assert outcome.context == 2048
    assert dict(outcome.reasons)["context"] == "2048 tokens: wanted 4096, trained for 2048"


def test_the_cache_counts_once_for_each_slot() -> None:
    one, three = (planned(intent=Intent(concurrency=slots)).memory_bytes for slots in (1, 3))
    assert three - one == 2 * 4096 * CHECKPOINT.kv_bytes_per_token


def test_too_little_memory_is_a_refusal_with_both_figures_and_a_remedy() -> None:
    outcome = refused(replace(MACHINE, memory_available_bytes=GIB))
    assert outcome.reasons == ("needs 2.07 GiB of memory, 0.50 GiB are free",)
    assert "smaller model" in outcome.remedy


def test_memory_below_the_headroom_is_none_and_not_negative() -> None:
    assert "0.00 GiB are free" in refused(replace(MACHINE, memory_available_bytes=1)).reasons[0]


@pytest.mark.parametrize("context", [511, 1, 0, -4096])
def test_a_context_in_which_no_question_fits_is_refused(context: int) -> None:
    assert "below the 512" in refused(intent=Intent(context=context)).reasons[0]


def test_the_smallest_context_is_planned() -> None:
    assert planned(intent=Intent(context=512)).context == 512


def test_a_model_trained_for_too_little_is_refused_for_that() -> None:
    assert refused(checkpoint=replace(CHECKPOINT, context_length=256)).reasons == (
        "trained for 256 tokens, at least 512 are needed",
    )


@pytest.mark.parametrize("intent", [Intent(concurrency=0), Intent(concurrency=-1), Intent(threads=-1)])
def test_less_than_nothing_is_refused(intent: Intent) -> None:
    assert len(refused(intent=intent).reasons) == 1


def test_a_refusal_names_every_reason_and_every_remedy() -> None:
    outcome = refused(
        replace(MACHINE, memory_available_bytes=GIB),
        replace(CHECKPOINT, context_length=100),
        intent=Intent(context=100, concurrency=0, threads=-1),
    )
    assert len(outcome.reasons) == 5
    assert outcome.remedy.count("; ") == 4


@pytest.mark.parametrize(
    ("weights_bytes", "kv_bytes_per_token", "measured_mib"),
    [(1_117_320_768, 28672, 2051), (491_400_064, 12288, 724), (98_362_432, 23040, 345)],
    ids=["1.5B", "0.5B", "135M"],
)
def test_no_measured_run_took_more_than_is_planned_for_it(
    weights_bytes: int, kv_bytes_per_token: int, measured_mib: int
) -> None:
    """Peaks of docs/decisions/0003-step-down.md: context 4096, two slots, both at work."""
    planned_bytes = memory_bytes(weights_bytes, cache_bytes=2 * 4096 * kv_bytes_per_token)
    assert measured_mib * MIB <= planned_bytes <= (measured_mib + 400) * MIB


@given(
    free_bytes=st.integers(0, 64 * GIB),
    context=st.integers(-10, 1 << 20),
    concurrency=st.integers(-2, 64),
    threads=st.integers(-2, 256),
)
def test_a_plan_never_takes_more_than_is_free(free_bytes: int, context: int, concurrency: int, threads: int) -> None:
    machine = replace(MACHINE, memory_available_bytes=free_bytes)
    outcome = plan(machine, CHECKPOINT, intent=Intent(context, concurrency, threads))
    if isinstance(outcome, Refusal):
        assert outcome.reasons
        assert outcome.remedy
    else:
        assert outcome.memory_bytes < free_bytes
        assert min(outcome.context, outcome.slots, outcome.threads) > 0
