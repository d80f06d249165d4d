"""Speed from throughput lines: only windows that prove something count, and no figure is made up from the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from casemate.plan.calibration import Calibration, calibrated, pace_of
from casemate.plan.catalogue import machine_of
from casemate.plan.correction import Correction
from casemate.plan.decision import GIB
from casemate.plan.launch import Launch, Layout
from casemate.plan.rates import rates
from casemate.plan.roofline import Workload, speed
from plan import shapes
from plan.startups import CHIPS, Box, printed, read, throughput, truth

LLAMA = shapes.read(shapes.LLAMA_70B)
BOX = machine_of("4xH200", CHIPS)
LAUNCH = Launch(Layout(tensor=4), 32768, 8192, 64, 0.8, capture=128)
RATES = rates(BOX, (0, 1, 2, 3), known=CHIPS)
STREAMS, LENGTH = 16, 4096
Row = tuple[float, float, int, int, float]


def usage(length: int, streams: int) -> float:
    """Per cent of the cache that so many requests of that length take."""
    found = Box(truth(ranks_bytes=2 * GIB)).budget(LLAMA, LAUNCH)
    return 100 * streams * found.pool.blocks(length, 0) / (found.kv_bytes // found.pool.block_bytes)


def generated(factor: float, streams: int = STREAMS) -> float:
    """Tokens a second of an engine that takes `factor` times the predicted time."""
    assert RATES
    predicted = speed(LLAMA, LAUNCH, rates=RATES, workload=Workload(LENGTH, 0, streams))
    return streams / (predicted.tpot_s * factor)


def decoding(factor: float, streams: int = STREAMS) -> Row:
    return 0.0, generated(factor, streams), streams, 0, usage(LENGTH, streams)


def reading(factor: float) -> Row:
    """A queue of short prompts, which the engine reads in full batches."""
    assert RATES
    tokens = LAUNCH.batched_tokens
    whole, one = (speed(LLAMA, LAUNCH, rates=RATES, workload=Workload(many, 0, 1)).ttft_s for many in (tokens, 1))
    return (tokens - 1) / ((whole - one) * factor), 1.0, 4, 30, usage(2048, 4)


def found(rows: list[Row], launch: Launch = LAUNCH) -> tuple[Correction, str]:
    text = printed(Box(truth(ranks_bytes=2 * GIB)), LLAMA, launch) + throughput(rows)
    got = calibrated(read(text), LLAMA, machine=BOX, date="2026-11-30", chips=CHIPS)
    assert isinstance(got, Calibration), got
    return got.entry.correction, "; ".join(got.notes)


@pytest.mark.parametrize("factor", [0.7, 1.0, 1.6])
def test_steady_windows_tell_how_fast_tokens_come(factor: float) -> None:
    correction, _ = found([(9000.0, 50.0, STREAMS, 0, 5.0), *[decoding(factor)] * 5])
    assert correction.decode == pytest.approx(factor, rel=0.03)
    assert correction.prefill is None


def test_a_queue_of_prompts_tells_how_fast_they_are_read() -> None:
    slow, _ = found([reading(2.0)] * 6)
    assert slow.prefill == pytest.approx(2.0, rel=0.08)
    assert slow.decode is None


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [decoding(1.0)] * 3,  # the first only opens a window
        [(0.0, 0.0, STREAMS, 0, 5.0)] * 8,  # stalled
        [decoding(1.0), decoding(1.6)] * 4,  # they do not agree
        [(200.0, generated(1.0), STREAMS, 0, 5.0)] * 8,  # prompts come in between
        [(0.0, generated(1.0), STREAMS, 3, 5.0)] * 8,  # others wait
        [decoding(1.0, 16), decoding(1.0, 8)] * 4,  # requests come and go
        [decoding(9.0)] * 8,  # that is no pace of cards
        [decoding(1.0)] * 5 + [(0.0, 0.0, 0, 0, 0.0)] + [decoding(2.0)] * 5,  # two stretches disagree
    ],
    ids=["none", "few", "stalled", "apart", "prompts", "queue", "changing", "absurd", "two"],
)
def test_windows_that_prove_nothing_leave_the_prediction_and_it_is_said_why(rows: list[Row]) -> None:
    correction, notes = found(rows)
    assert correction.decode is None
    assert "not corrected" in notes


def test_prompts_few_of_which_fill_a_window_are_not_measured_by_it() -> None:
    prompts, generation, running, waiting, _ = reading(1.0)
    long = (prompts, generation, running, waiting, usage(32768, running))
    assert prompts * 10 < 10 * 32768, "the sample must be one of few prompts"
    assert found([long] * 6)[0].prefill is None


def test_the_narrow_band_is_claimed_only_if_prompts_and_tokens_were_both_measured() -> None:
    correction, _ = found([decoding(1.3)] * 5)
    half, whole = pace_of(correction), pace_of(replace(correction, prefill=1.1))
    assert half.decode == pytest.approx(1.3, rel=0.03)
    assert (half.prefill, half.measured) == (1.0, "")
    assert whole.measured == "a log of 2026-11-30"
