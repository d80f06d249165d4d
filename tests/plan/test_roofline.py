"""The predicted speed beside measured ones, and what must hold whatever the constants are."""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.checkpoint.facts import Checkpoint
from casemate.plan.catalogue import machine_of
from casemate.plan.decision import Speculation, Speed
from casemate.plan.launch import Launch, Layout
from casemate.plan.rates import Rates, rates
from casemate.plan.roofline import Pace, Workload, kept_tokens, speed
from plan import shapes
from plan.speeds import CHIPS, Compared, compared, load

USEFUL, HELD = 0.25, 0.8
V4, V4_DSPARK, V3 = (shapes.read(config) for config in (shapes.V4, shapes.V4_DSPARK, shapes.V3))
SMALL, LARGE = shapes.read(shapes.LLAMA_8B), shapes.read(shapes.LLAMA_70B)
MODELS = (V4, V3, SMALL, LARGE, *(shapes.read(config) for config in (shapes.GPT_OSS_120B, shapes.QWEN3_NEXT)))
CASES = tuple(compared(measured) for measured in load())
DSPARK = Speculation("dspark", 5)

models = st.sampled_from(MODELS)
lengths = st.integers(1, 200_000)
streams = st.integers(1, 512)


def of(gpus: str) -> Rates:
    machine = machine_of(gpus, CHIPS)
    found = rates(machine, tuple(card.index for card in machine.cards), known=CHIPS)
    assert found is not None
    return found


H100, H200_2, PRO_2 = of("1xH100"), of("2xH200"), of("2xRTX PRO 6000")


def launch(tensor: int = 1, **changed: Any) -> Launch:
    return replace(Launch(Layout(tensor), 1 << 18, 2048, 512, 0.9, capture=512), **changed)


def predict(
    checkpoint: Checkpoint, known: Rates, *, start: Launch | None = None, load: tuple[int, int, int] = (2048, 256, 1)
) -> Speed:
    return speed(checkpoint, start or launch(), rates=known, workload=Workload(*load))


def recorded(prompt: int, output: int, concurrency: int) -> Speed:
    """As the recorded DeepSeek-V4 was started on two H200."""
    layout = Layout(2, expert=True)
    start = Launch(layout, 131_072, 2048, 64, 0.9, kv_dtype="fp8", block_size=256, capture=64)
    return predict(V4, H200_2, start=start, load=(prompt, output, concurrency))


@pytest.mark.parametrize(
    ("prompt", "concurrency", "measured_ms"),
    [(512, 1, 7.49), (8192, 1, 7.30), (32_768, 1, 6.49), (512, 8, 10.45)],
)
def test_tokens_come_as_recorded(prompt: int, concurrency: int, measured_ms: float) -> None:
    found = recorded(prompt, 128, concurrency)
    assert found.tpot_s * 1e3 == pytest.approx(measured_ms, rel=min(USEFUL, found.error))


@pytest.mark.parametrize(("prompt", "measured_s"), [(512, 0.2198), (8192, 1.0085), (32_768, 3.4194), (100_000, 9.5794)])
def test_prompts_take_as_long_as_recorded(prompt: int, measured_s: float) -> None:
    found = recorded(prompt, 32, 1)
    assert found.ttft_s == pytest.approx(measured_s, rel=min(USEFUL, found.ttft_error))


@pytest.mark.parametrize(("load", "measured"), [((512, 128, 8), 540.0), ((8192, 32, 4), 32.4)])
def test_a_closed_loop_yields_what_was_recorded(load: tuple[int, int, int], measured: float) -> None:
    assert recorded(*load).sustained_tokens_per_s == pytest.approx(measured, rel=USEFUL)


def share(cases: list[Compared], *, of_band: bool) -> float:
    return sum(case.is_within if of_band else abs(case.error) <= USEFUL for case in cases) / len(cases)


@pytest.mark.parametrize("figure", ["ttft", "tpot", "request", "tokens"])
def test_four_of_five_public_figures_lie_within_the_stated_band(figure: str) -> None:
    cases = [case for case in CASES if case.measured.figure == figure]
    assert share(cases, of_band=True) >= HELD, [case.measured.name for case in cases if not case.is_within]
    assert statistics.median(abs(case.error) for case in cases) <= 0.15


def test_most_public_figures_are_met_within_a_quarter() -> None:
    assert share(list(CASES), of_band=False) >= HELD


def test_the_band_is_no_wider_than_it_must_be() -> None:
    assert statistics.median(case.band for case in CASES) <= 0.4


@given(models, lengths, streams, st.floats(1.0, 4.0))
def test_a_faster_memory_is_never_slower(checkpoint: Checkpoint, prompt: int, many: int, factor: float) -> None:
    faster = replace(
        H200_2,
        reading_bytes_per_s=H200_2.reading_bytes_per_s * factor,
        reading_experts_bytes_per_s=H200_2.reading_experts_bytes_per_s * factor,
    )
    slow, fast = (predict(checkpoint, known, start=launch(2), load=(prompt, 64, many)) for known in (H200_2, faster))
    assert fast.tpot_s <= slow.tpot_s
    assert fast.ttft_s <= slow.ttft_s


@given(models, lengths, streams, st.floats(1.0, 4.0))
def test_faster_arithmetic_is_never_slower(checkpoint: Checkpoint, prompt: int, many: int, factor: float) -> None:
    faster = replace(H200_2, bf16_flops=H200_2.bf16_flops * factor, fp8_flops=H200_2.fp8_flops * factor)
    slow, fast = (predict(checkpoint, known, start=launch(2), load=(prompt, 64, many)) for known in (H200_2, faster))
    assert fast.tpot_s <= slow.tpot_s
    assert fast.ttft_s <= slow.ttft_s


@given(models, st.integers(1, 32_768), st.integers(1, 255))
def test_a_further_stream_never_costs_tokens_of_all(checkpoint: Checkpoint, prompt: int, many: int) -> None:
    fewer, more = (predict(checkpoint, H200_2, start=launch(2), load=(prompt, 256, n)) for n in (many, many + 1))
    assert more.output_tokens_per_s >= fewer.output_tokens_per_s * 0.999
    assert more.tpot_s >= fewer.tpot_s
    assert more.sustained_tokens_per_s >= fewer.sustained_tokens_per_s * 0.999


@given(models, lengths, lengths)
def test_a_longer_prompt_is_never_read_faster(checkpoint: Checkpoint, one: int, other: int) -> None:
    short, long = (predict(checkpoint, H200_2, start=launch(2), load=(n, 16, 1)) for n in sorted((one, other)))
    assert short.ttft_s <= long.ttft_s * 1.001
    assert short.tpot_s <= long.tpot_s


@given(models, lengths, streams)
def test_two_cards_over_nvlink_are_not_slower_than_over_pcie(checkpoint: Checkpoint, prompt: int, many: int) -> None:
    joined = replace(PRO_2, link_bytes_per_s=H200_2.link_bytes_per_s, link_s=H200_2.link_s)
    nvlink, pcie = (predict(checkpoint, known, start=launch(2), load=(prompt, 64, many)) for known in (joined, PRO_2))
    assert nvlink.tpot_s <= pcie.tpot_s
    assert nvlink.ttft_s <= pcie.ttft_s


@given(models, lengths, streams)
def test_what_is_told_adds_up(checkpoint: Checkpoint, prompt: int, many: int) -> None:
    found = predict(checkpoint, H200_2, start=launch(2), load=(prompt, 256, many))
    assert sum(taken_s for _, taken_s in found.terms) == pytest.approx(found.tpot_s)
    assert found.output_tokens_per_s == pytest.approx(found.concurrency / found.tpot_s)
    assert found.tpot_loaded_s >= found.tpot_s
    assert found.sustained_tokens_per_s <= found.output_tokens_per_s
    assert 0 < found.error < 1
    assert 0 < found.ttft_error < 1


@pytest.mark.parametrize("checkpoint", MODELS, ids=lambda checkpoint: checkpoint.model_type)
def test_without_graphs_a_step_is_never_faster(checkpoint: Checkpoint) -> None:
    eager, captured = (predict(checkpoint, H100, start=launch(capture=size)) for size in (0, 512))
    assert eager.tpot_s >= captured.tpot_s


def test_a_batch_above_the_largest_graph_waits_for_the_host() -> None:
    within, beyond = (predict(V4, H200_2, start=launch(2, capture=size), load=(64, 64, 64)) for size in (64, 32))
    assert beyond.tpot_s > 3 * within.tpot_s


def test_two_stages_are_no_faster_for_one_stream_but_for_many() -> None:
    whole = launch(1)
    staged = launch(1, layout=Layout(1, 2))
    alone = [predict(LARGE, H200_2, start=start, load=(512, 64, 1)).tpot_s for start in (whole, staged)]
    together = [predict(LARGE, H200_2, start=start, load=(8192, 64, 64)) for start in (whole, staged)]
    assert alone[1] >= alone[0]
    assert together[1].tpot_s < together[0].tpot_s
    assert together[1].ttft_s < together[0].ttft_s


def test_replicas_share_many_streams_and_do_nothing_for_one() -> None:
    known = of("4xA100-80GB")
    one, four = (launch(1, layout=Layout(data=replicas)) for replicas in (1, 4))
    alone = [predict(SMALL, known, start=start).tpot_s for start in (one, four)]
    together = [predict(SMALL, known, start=start, load=(4096, 64, 64)).tpot_s for start in (one, four)]
    quarter = predict(SMALL, known, start=one, load=(4096, 64, 16)).tpot_s
    assert alone[0] == alone[1]
    assert together[1] == pytest.approx(quarter)
    assert together[1] < together[0]


def test_replicas_that_share_experts_exchange_rows() -> None:
    start = launch(1, layout=Layout(data=8, expert=True))
    assert dict(predict(V3, of("8xH200"), start=start, load=(2048, 256, 64)).terms)["all_reduce_s"] > 0


def test_of_a_mixture_one_stream_reads_few_experts_and_many_read_all() -> None:
    one, many = (predict(V3, of("8xH200"), start=launch(8), load=(128, 64, n)) for n in (1, 256))
    assert one.tpot_s * 3 < many.tpot_s
    assert many.output_tokens_per_s > 30 * one.output_tokens_per_s


def test_an_eight_bit_cache_is_read_in_half_the_time() -> None:
    full, half = (
        dict(predict(SMALL, H100, start=launch(kv_dtype=kind), load=(32_768, 2, 64)).terms)["memory_s"]
        for kind in ("auto", "fp8")
    )
    weights = dict(predict(SMALL, H100, load=(1, 2, 1)).terms)["memory_s"]
    assert full - weights == pytest.approx(2 * (half - weights), rel=0.01)


@pytest.mark.parametrize(
    ("sequences", "fitting", "runs", "because"),
    [
        (512, None, 64, ""),
        (16, None, 16, "max_num_seqs"),
        (512, 9, 9, "cache"),
        (16, 9, 9, "cache"),
        (512, 0, 1, "cache"),
    ],
)
def test_streams_that_do_not_run_are_told(sequences: int, fitting: int | None, runs: int, because: str) -> None:
    work = Workload(2048, 256, 64, fitting=fitting)
    found = speed(SMALL, launch(sequences=sequences), rates=H100, workload=work)
    assert (found.asked, found.concurrency, found.limited_by) == (64, runs, because)


def test_a_bound_widens_the_band_and_a_measurement_narrows_it() -> None:
    work, start = Workload(2048, 256, 1), launch()
    known = speed(SMALL, start, rates=H100, workload=work)
    bounded = speed(SMALL, start, rates=replace(H100, bounded=True), workload=work)
    measured = speed(SMALL, start, rates=H100, workload=work, pace=Pace(1.2, 1.1, "a run"))
    assert measured.error < known.error < bounded.error
    assert measured.ttft_error < known.ttft_error < bounded.ttft_error
    assert measured.calibrated == "a run"
    assert measured.tpot_s == pytest.approx(1.1 * known.tpot_s)


def test_the_band_is_wider_where_launches_take_the_time() -> None:
    assert predict(V4, H200_2, start=launch(2)).error > predict(LARGE, H200_2, start=launch(2)).error


def test_the_band_of_a_short_prompt_is_wider_since_the_way_to_the_engine_counts() -> None:
    short, long = (predict(SMALL, H100, load=(tokens, 64, 1)) for tokens in (64, 16_384))
    assert short.ttft_error > 1.5 * long.ttft_error


def test_a_draft_speeds_one_stream_up_by_what_it_keeps() -> None:
    """Eight H20 decoded a public DSpark run 2.03 times as fast as without (195 of 96 tokens a second)."""
    plain, drafted = (
        predict(V4_DSPARK, of("8xH20-141GB"), start=launch(8, speculation=draft)) for draft in (None, DSPARK)
    )
    assert drafted.tokens_per_step == pytest.approx(2.8, abs=0.1)
    assert drafted.error > plain.error
    assert plain.tpot_s / drafted.tpot_s == pytest.approx(2.03, rel=USEFUL)


def test_a_draft_of_which_nothing_is_kept_only_costs() -> None:
    start = launch(2, speculation=DSPARK)
    lost = speed(V4_DSPARK, start, rates=H200_2, workload=Workload(2048, 256, 1, kept=0.0))
    assert lost.tokens_per_step == 1
    assert lost.tpot_s > predict(V4_DSPARK, H200_2, start=launch(2)).tpot_s


@pytest.mark.parametrize(
    ("speculation", "kept"),
    [
        (None, 0.0),
        (DSPARK, 1.8),
        (Speculation("dspark", 7), 1.93),
        (Speculation("mtp", 1), 0.8),
        (Speculation("mtp", 3), 1.95),
    ],
)
def test_a_draft_keeps_what_public_runs_kept(speculation: Speculation | None, kept: float) -> None:
    assert kept_tokens(speculation) == pytest.approx(kept, abs=0.01)
