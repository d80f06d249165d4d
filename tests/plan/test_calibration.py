"""What a start-up corrects: its own figures exactly, other values of the same machine and model nearly, others not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casemate.doctor.machine import Machine, Surroundings
from casemate.plan.accounting import accounting
from casemate.plan.calibration import Calibration, Unusable, calibrated, find, with_entry
from casemate.plan.catalogue import machine_of
from casemate.plan.correction import NOTHING, Correction, Entry
from casemate.plan.decision import GIB, CardsPlan, Intent
from casemate.plan.fitting import place
from casemate.plan.launch import Launch, Layout
from casemate.plan.layout import seated
from casemate.plan.measured import launch_of, layout_of
from casemate.plan.memory import budgets
from casemate.plan.planner import plan
from conftest import Optional
from plan import shapes
from plan.startups import CHIPS, Box, printed, read, truth

LLAMA, V4 = shapes.read(shapes.LLAMA_70B), shapes.read(shapes.V4)
SWITCHED = machine_of("2xH200", CHIPS)
TWO = replace(SWITCHED, surroundings=Surroundings())
"""The same without multicast, as the boxes below."""
DATE = "2026-11-30"
LAUNCH = Launch(Layout(tensor=2), 32768, 8192, 64, 0.8, capture=128)
BOX = Box(truth(weights=1.004, forward=1.4, sampling=1.2, graphs=1.5, graphs_estimate=0.7, ranks_bytes=GIB // 2))
RECORDINGS = Path(__file__).resolve().parents[3] / "shared" / "gpu" / "recordings"


def from_text(text: str, *, model: Any = LLAMA, machine: Machine = TWO) -> Calibration | Unusable:
    return calibrated(read(text), model, machine=machine, date=DATE, chips=CHIPS)


def measured(box: Box = BOX, launch: Launch = LAUNCH, **more: Any) -> Calibration:
    found = from_text(printed(box, LLAMA, launch, **more))
    assert isinstance(found, Calibration), found
    return found


def refused(text: str, **more: Any) -> str:
    found = from_text(text, **more)
    assert isinstance(found, Unusable), found
    return "; ".join(found.reasons)


def kv_gib(text: str, correction: Correction, *, model: Any = LLAMA, machine: Machine = TWO, stage: int = 0) -> float:
    """The cache as a plan works it out for the values of a log."""
    log = read(text)
    rules = replace(accounting(log.engine_version), correction=correction)
    where = place(layout_of(log), seated(machine, model, engine=rules), intent=Intent())
    engine = where.rules(rules)
    launch = launch_of(log, model, where=where, engine=engine)
    found = budgets(model, launch, card_bytes=where.card_bytes, engine=engine, multicast=where.multicast)
    return found[stage].kv_bytes / GIB


def row(found: Calibration, name: str) -> tuple[float, float | None, float]:
    one = next(item for item in found.rows if item.name == name)
    printed_gib = None if one.measured_bytes is None else one.measured_bytes / GIB
    return one.predicted_bytes / GIB, printed_gib, one.corrected_bytes / GIB


FACTORS = st.builds(
    truth,
    weights=st.floats(0.97, 1.03),
    forward=st.floats(0.4, 2.5),
    graphs=st.floats(0.3, 3.0),
    graphs_estimate=st.floats(0.3, 3.0),
    ranks_bytes=st.integers(0, 3 * GIB),
)


@given(hidden=FACTORS, version=st.sampled_from(["0.10.2", "0.19.1", "0.26.0", "0.33.0"]))
@settings(max_examples=40, deadline=None)
def test_a_corrected_plan_gives_the_start_up_the_cache_that_it_had(hidden: Correction, version: str) -> None:
    found = measured(Box(hidden, version))
    _, printed_gib, corrected_gib = row(found, "cache")
    assert printed_gib is not None
    assert corrected_gib == pytest.approx(printed_gib, abs=0.02)


@given(
    hidden=FACTORS,
    version=st.sampled_from(["0.26.0", "0.33.0"]),
    batched=st.sampled_from([2048, 4096, 16384]),
    context=st.sampled_from([8192, 131072]),
    utilization=st.sampled_from([0.6, 0.92]),
)
@settings(max_examples=40, deadline=None)
def test_other_values_of_the_same_engine_are_then_predicted_within_a_fiftieth(
    hidden: Correction, version: str, batched: int, context: int, utilization: float
) -> None:
    box = Box(hidden, version)
    other = replace(LAUNCH, batched_tokens=batched, context=context, utilization=utilization, sequences=32, capture=64)
    text = printed(box, LLAMA, other)
    wanted = box.budget(LLAMA, other).kv_bytes / GIB
    assert kv_gib(text, measured(box).entry.correction) == pytest.approx(wanted, rel=0.02)


@pytest.mark.parametrize("version", ["0.26.0", "0.33.0"])
def test_each_figure_is_read_as_its_release_prints_it(version: str) -> None:
    correction = measured(Box(BOX.truth, version)).entry.correction
    assert correction.weights == pytest.approx(1.004, abs=0.001)
    assert correction.forward == pytest.approx(1.4, rel=0.03)
    assert correction.graphs_estimate == pytest.approx(0.7, rel=0.03)
    assert correction.graphs == pytest.approx(1.5, rel=0.03)
    assert correction.ranks_bytes == pytest.approx(GIB // 2, abs=0.03 * GIB)
    assert correction.alone_bytes is None


def test_an_estimate_of_graphs_that_was_printed_and_not_taken_off_is_not_taken_for_other_memory() -> None:
    text = printed(BOX, LLAMA, LAUNCH)
    found = BOX.budget(LLAMA, LAUNCH)
    before, after = (f"memory: {size / GIB:.2f} GiB" for size in (found.kv_bytes, found.kv_bytes + found.graphs_bytes))
    calibration = from_text(text.replace(f"KV cache {before}", f"KV cache {after}"))
    assert isinstance(calibration, Calibration)
    assert calibration.entry.correction.ranks_bytes == pytest.approx(GIB // 2, abs=0.03 * GIB)


def test_without_the_printed_peak_a_small_difference_is_other_memory_and_a_large_one_the_peak() -> None:
    slightly = replace(BOX.truth, forward=1.0, ranks_bytes=GIB // 4 + (100 << 20))
    small, large = (
        measured(Box(hidden), without=["Actual usage"]).entry.correction
        for hidden in (slightly, replace(slightly, forward=2.5))
    )
    assert small.forward == pytest.approx(1.0, abs=0.02)
    assert large.forward > 1.5


def test_a_peak_of_sampling_says_of_the_step_only_that_it_is_no_larger() -> None:
    crowded = replace(LAUNCH, batched_tokens=2048, sequences=1024, capture=512)
    found = measured(Box(truth(sampling=1.3)), crowded).entry.correction
    assert found.sampling == pytest.approx(1.3, rel=0.03)
    assert found.forward == 1.0


def test_graphs_that_were_off_stay_as_predicted_and_do_not_undo_an_older_measurement() -> None:
    eager = measured(launch=replace(LAUNCH, capture=0))
    assert eager.entry.correction.graphs is None
    assert any("graphs were off" in note for note in eager.notes)
    (kept,) = with_entry((measured().entry,), eager.entry)
    assert kept.correction.graphs == pytest.approx(1.5, rel=0.03)
    assert kept.correction.weights == eager.entry.correction.weights


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nothing of an engine\n", "no start-up of vLLM"),
        ("llama_kv_cache: size = 10.00 MiB ( 512 cells, 28 layers, 1/1 seqs)\n", "only of llama.cpp"),
        (printed(BOX, LLAMA, LAUNCH, without=["KV cache memory"]), "available for the cache"),
        (printed(BOX, LLAMA, LAUNCH, without=["loading took", "Actual usage"]), "loading the model took"),
        (printed(BOX, LLAMA, LAUNCH).replace("LlamaForCausalLM", "Qwen3ForCausalLM"), "Qwen3ForCausalLM"),
        (printed(BOX, LLAMA, replace(LAUNCH, layout=Layout(tensor=4))), "ran on 4 cards, this machine has 2"),
        (printed(BOX, LLAMA, replace(LAUNCH, layout=Layout(2, 2))), "ran on 4 cards"),
        (printed(Box(BOX.truth, card_gib=95.0), LLAMA, LAUNCH), "95.0 GiB, those of this machine 139.8"),
        (printed(Box(truth(weights=1.4)), LLAMA, LAUNCH), "GiB of weights were loaded"),
        (printed(Box(truth(ranks_bytes=30 * GIB)), LLAMA, LAUNCH), "does not know"),
        (printed(BOX, LLAMA, LAUNCH, cpu_offload_gb=10.0), "--cpu-offload-gb"),
        (printed(BOX, LLAMA, LAUNCH, enable_lora=True), "--enable-lora"),
        (printed(BOX, LLAMA, LAUNCH, decode_context_parallel_size=2), "--decode-context-parallel-size"),
        (printed(BOX, LLAMA, LAUNCH, speculative_config={"method": "eagle"}), "--speculative-config"),
        (printed(BOX, LLAMA, LAUNCH).replace("max_seq_len=32768", f"max_seq_len={10**30}"), "context cannot be"),
        (printed(BOX, LLAMA, replace(LAUNCH, utilization=40.0)), "a share of 40"),
        (printed(BOX, LLAMA, LAUNCH).replace("memory: ", "memory: " + "9" * 400), "more memory than a card can have"),
    ],
)  # fmt: skip
def test_a_log_that_lacks_something_or_is_of_something_else_is_refused_with_the_reason(text: str, reason: str) -> None:
    assert reason in refused(text)


def test_figures_that_cannot_be_are_refused() -> None:
    found = BOX.budget(LLAMA, LAUNCH)
    text = printed(BOX, LLAMA, LAUNCH).replace(f"{found.kv_bytes / GIB:.2f} GiB", f"{found.kv_bytes / GIB + 5:.2f} GiB")
    assert "do not add up" in refused(text)


def stored(**changes: Any) -> tuple[Entry, ...]:
    return (replace(measured().entry, **changes),)


@pytest.mark.parametrize(
    ("version", "applied"),
    [("0.26.0", True), ("v0.26.0+cu130", True), ("0.26.1", False), ("0.25.0", False), ("0.33.0", False)],
)
def test_another_release_is_told_of_and_corrects_nothing(version: str, *, applied: bool) -> None:
    found = find(stored(), TWO, checkpoint=LLAMA, version=version)
    assert (found.correction != NOTHING) == applied
    assert bool(found.notes) != applied
    assert applied or "0.26.0" in found.notes[0]


def test_names_and_paths_decide_nothing_and_another_model_or_machine_does() -> None:
    renamed = replace(LLAMA, name="other", path="/elsewhere")
    relabelled = replace(TWO, cards=tuple(replace(card, name="X", uuid="GPU-1") for card in TWO.cards))
    assert find(stored(), relabelled, checkpoint=renamed, version="0.26.0").correction != NOTHING
    assert find(stored(), TWO, checkpoint=shapes.read(shapes.LLAMA_8B), version="0.26.0").correction == NOTHING
    for gpus in ("4xH200", "2xH100", "2xH20-96GB", "1xH200"):
        assert find(stored(), machine_of(gpus, CHIPS), checkpoint=LLAMA, version="0.26.0").correction == NOTHING


def test_cards_joined_in_another_way_are_told_of_and_not_corrected() -> None:
    apart = replace(TWO, pairs=tuple(replace(pair, link="PHB", peer_access=False) for pair in TWO.pairs))
    found = find(stored(), apart, checkpoint=LLAMA, version="0.26.0")
    assert found.correction == NOTHING
    assert "another link" in found.notes[0]


def test_weights_told_by_headers_keep_the_size_that_was_measured_with_a_config() -> None:
    layers = tuple(replace(layer, sharded_bytes=round(layer.sharded_bytes * 1.01)) for layer in LLAMA.layers)
    exact = replace(LLAMA, layers=layers, weights_from="headers")
    correction = find(stored(), TWO, checkpoint=exact, version="0.26.0").correction
    ratio = exact.weights_bytes / LLAMA.weights_bytes
    assert correction.weights * ratio == pytest.approx(measured().entry.correction.weights, rel=1e-6)


def planned(correction: Correction) -> CardsPlan:
    found = plan(TWO, LLAMA, intent=Intent(32768, 2), engine_version="0.26.0", correction=correction)
    assert isinstance(found, CardsPlan), found
    return found


def reasons_of(found: CardsPlan) -> Iterator[str]:
    return (name for name, why in found.reasons if "corrected by a measured start-up of 2026-11-30" in why)


def test_a_plan_says_which_of_its_figures_a_start_up_corrected() -> None:
    correction = truth(weights=1.01, forward=3.0, graphs=2.0, graphs_estimate=2.0, alone_bytes=GIB, ranks_bytes=GIB)
    cold, warm = planned(NOTHING), planned(correction)
    for name in ("weights_gib", "activation_gib", "graphs_gib", "other_gib"):
        assert getattr(warm, name) > getattr(cold, name), name
    assert warm.kv_gib < cold.kv_gib
    assert not list(reasons_of(cold))
    assert set(reasons_of(warm)) == {"weights_gib", "activation_gib", "graphs_gib", "other_gib", "kv_gib"}


def test_recorded_start_ups_correct_themselves_and_each_other(optional: Optional) -> None:
    texts = {name: RECORDINGS / f"{name}.log" for name in ("tp2-ep", "pp2-eager")}
    optional("recordings of start-ups are not here", all(path.is_file() for path in texts.values()))
    ranks, staged = (path.read_text(encoding="utf-8") for path in texts.values())
    found = from_text(ranks, model=V4, machine=SWITCHED)
    assert isinstance(found, Calibration)
    cold_gib, printed_gib, warm_gib = row(found, "cache")
    assert printed_gib == pytest.approx(14.7)
    assert warm_gib == pytest.approx(14.7, abs=0.02)
    assert abs(cold_gib - 14.7) > 1.5  # named cards are thought to use multicast, the recorded ones did not
    assert kv_gib(staged, found.entry.correction, model=V4) == pytest.approx(14.38, rel=0.05)
    other = from_text(staged, model=V4, machine=SWITCHED)
    assert isinstance(other, Calibration)
    (both,) = with_entry((found.entry,), other.entry)
    assert kv_gib(ranks, both.correction, model=V4) == pytest.approx(14.7, rel=0.05)
