"""Case "wedged or busy": W, B, I and D are its rows; the sources stand in the case."""

from __future__ import annotations

from dataclasses import replace

import pytest

from casemate.doctor.watch.bottleneck import Verdict, judge
from casemate.doctor.watch.evidence import ADVICE
from casemate.doctor.watch.sample import CardSample, EngineSample, HostSample, LogSample, Reach, Sample, Worker

Row = tuple[float, float, float, float] | Reach


def rows(*told: Row, every_s: float = 5.0) -> list[Sample]:
    """Running, waiting, generated and prompt tokens; or how the answer failed to come."""
    found = []
    for place, row in enumerate(told):
        if isinstance(row, str):
            found.append(Sample(place * every_s, row, reach_error=row))
            continue
        running, waiting, out, into = row
        sample = EngineSample("vllm", running=running, waiting=waiting, generation_tokens=out, prompt_tokens=into)
        found.append(Sample(place * every_s, "answered", sample))
    return found


STANDING: list[Row] = [(2, 1, 5000, 90000), *[(2, 3, 5000, 90000)] * 6]


def with_cards(window: list[Sample], *cards: CardSample) -> list[Sample]:
    return [replace(sample, cards=cards) for sample in window]


def with_host(window: list[Sample], host: HostSample) -> list[Sample]:
    return [replace(sample, host=host) for sample in window]


def texts(verdict: Verdict) -> str:
    return "\n".join(one.text for suspect in verdict.suspects for one in suspect.evidence)


def test_w_requests_without_a_token_for_thirty_seconds_are_a_wedged_engine() -> None:
    verdict = judge(rows(*STANDING))
    assert verdict.kind == "wedged"
    assert verdict.found
    assert "none for 30 s up to now" in texts(verdict)
    assert "restart" in verdict.advice


def test_w_before_thirty_seconds_it_is_only_said_to_stand() -> None:
    assert judge(rows(*STANDING[:-1])).kind == "stalled"


def test_b_an_engine_whose_prefill_moves_is_busy_even_if_an_answer_came_too_late() -> None:
    busy: list[Row] = [(8, 40, 5000, 90000), "silent", (8, 40, 5000, 98192), "silent", (8, 40, 5000, 106384)]
    assert judge(rows(*busy)).kind not in ("wedged", "dead", "stalled", "jit", "idle")


def test_i_an_engine_that_nobody_asks_is_idle_and_that_is_fine() -> None:
    verdict = judge(rows(*[(0.0, 0.0, 5000.0, 90000.0)] * 8))
    assert (verdict.kind, verdict.found) == ("idle", False)


def test_d_an_engine_that_refuses_connections_is_dead() -> None:
    verdict = judge(rows("refused", "refused"))
    assert (verdict.kind, verdict.partial) == ("dead", ("engine: refused",))
    assert judge(rows(*STANDING[:2], "refused", "refused")).kind == "dead"


def test_one_refused_connection_among_answers_kills_nobody() -> None:
    assert judge(rows((1, 0, 10, 0), (1, 0, 20, 0), "refused")).kind != "dead"


def test_a_server_that_takes_connections_and_says_nothing_is_wedged_after_thirty_seconds() -> None:
    silent: list[Row] = ["silent"] * 7
    assert judge(rows((1, 0, 10, 0), *silent)).kind == "wedged"
    assert judge(rows((1, 0, 10, 0), *silent[:3])).kind != "wedged"


@pytest.mark.parametrize(
    "card", [CardSample(0, busy=1.0, memory_busy=0.3), CardSample(0, busy=1.0, power_w=500, power_limit_w=700)]
)
def test_a_prefill_of_more_than_thirty_seconds_keeps_the_card_at_work_and_is_not_wedged(card: CardSample) -> None:
    verdict = judge(with_cards(rows(*STANDING, *[(2.0, 3.0, 5000.0, 90000.0)] * 6), card))
    assert verdict.kind not in ("wedged", "stalled", "jit")


def test_a_card_that_only_waits_for_another_is_no_sign_of_life() -> None:
    spinning = CardSample(0, busy=1.0, memory_busy=0.0, power_w=150, power_limit_w=700)
    assert judge(with_cards(rows(*STANDING), spinning)).kind == "wedged"


@pytest.mark.parametrize(
    "host",
    [
        HostSample(8, workers=(Worker(1, "w", 1.0),), compilers=1),
        HostSample(8, workers=(Worker(1, "w", 1.0),), compilers=0, children_cores=0.7),
        HostSample(8, workers=(Worker(1, "w", 1.0),), compilers=0, faults_per_s=8000.0),
    ],
)
def test_an_engine_that_compiles_is_not_wedged_however_long_it_takes(host: HostSample) -> None:
    assert judge(with_host(rows(*STANDING * 3), host)).kind == "jit"


def test_a_log_that_tells_of_compiling_is_believed_where_nothing_else_is_seen() -> None:
    log = LogSample(compile_lines=1, compiling=True, last="begins to compile kernel `a{b}`")
    verdict = judge([replace(sample, log=log) for sample in rows(*STANDING)])
    assert verdict.kind == "jit"
    assert "a{b}" in texts(verdict)


def test_a_spinning_process_is_no_compiler() -> None:
    host = HostSample(8, workers=(Worker(1, "w", 1.0, 1.0),), compilers=0, children_cores=0.0, faults_per_s=3.0)
    assert judge(with_host(rows(*STANDING), host)).kind == "wedged"


def test_an_engine_that_compiles_before_it_takes_note_of_its_first_request_is_not_idle() -> None:
    host = HostSample(8, workers=(Worker(1, "w", 1.0),), compilers=2)
    assert judge(with_host(rows(*[(0.0, 0.0, 5.0, 9.0)] * 5), host)).kind == "jit"


def test_compiling_that_is_over_excuses_no_standing_still() -> None:
    compiling, resting = HostSample(8, workers=(Worker(1, "w", 1.0),), compilers=1), HostSample(8, compilers=0)
    before = with_host(rows((1, 0, 5, 9), (1, 0, 5, 9), (1, 0, 6, 9)), compiling)
    after = [
        replace(sample, time_s=sample.time_s + 15) for sample in with_host(rows(*[(1.0, 0.0, 7.0, 9.0)] * 8), resting)
    ]
    assert judge(before + after).kind == "wedged"


def test_a_limit_of_requests_that_is_known_decides_whether_the_queue_is_for_seats() -> None:
    told: list[Row] = [(5 + place % 2, 9, 100.0 * place, 9) for place in range(9)]
    assert judge(with_host(rows(*told), HostSample(8, max_num_seqs=6))).kind == "queue"
    assert judge(with_host(rows(*told), HostSample(8, max_num_seqs=64))).kind != "queue"


def test_an_engine_on_the_processor_alone_is_limited_by_it() -> None:
    told: list[Row] = [(2, 0, 10.0 * place, 9) for place in range(9)]
    host = HostSample(4, busy=0.97, workers=(Worker(1, "engine", 3.8, 1.0, serves=True),))
    verdict = judge(with_host(rows(*told), host))
    assert verdict.kind == "cpu"
    assert "3.8 of 4 cores" in texts(verdict).replace("of the 4", "of 4")


def test_what_could_not_be_seen_is_told_and_nothing_is_called_fine_without_it() -> None:
    told: list[Row] = [(2, 0, 10.0 * place, 9) for place in range(9)]
    blind = [replace(sample, cards_error="Insufficient Permissions") for sample in rows(*told)]
    verdict = judge(blind)
    assert (verdict.kind, verdict.found) == ("unknown", False)
    assert verdict.partial == ("cards: Insufficient Permissions",)


def llamacpp(*told: Row, every_s: float = 5.0) -> list[Sample]:
    return [
        replace(sample, engine=replace(sample.engine, kind="llamacpp") if sample.engine else None)
        for sample in rows(*told, every_s=every_s)
    ]


def test_requests_that_run_where_neither_card_nor_process_is_seen_are_not_called_light() -> None:
    verdict = judge(rows(*[(2.0, 0.0, 10.0 * place, 9.0) for place in range(9)]))
    assert (verdict.kind, verdict.suspects, verdict.found) == ("unknown", (), False)
    assert "none of its processes is the engine" in verdict.partial[0]


def test_an_engine_on_the_processor_is_called_light_only_if_tokens_move_and_the_processor_was_seen_to_have_room() -> (
    None
):
    def told(busy: float | None, *window: Row) -> Verdict:
        resting = HostSample(8, busy=busy, workers=(Worker(1, "llama-server", 0.3, 0.3, serves=True),))
        return judge(with_host(llamacpp(*window), resting))

    moving: list[Row] = [(2, 0, 10.0 * place, 9) for place in range(9)]
    verdict = told(0.1, *moving)
    assert (verdict.kind, verdict.found) == ("light", False)
    assert "10 % of it" in texts(verdict)
    assert told(None, *moving).kind == "unknown"
    assert told(0.99, *moving).kind == "cpu"
    assert (
        told(
            0.1,
            *[(2.0, 0.0, 5.0, 9.0)] * 3,
        ).kind
        != "light"
    )


def test_an_idle_engine_needs_no_card_to_be_called_idle() -> None:
    verdict = judge(rows(*[(0.0, 0.0, 5.0, 9.0)] * 9))
    assert (verdict.kind, verdict.partial) == ("idle", ())


@pytest.mark.parametrize(("cores", "taken"), [(4, 3.9), (64, 8.0)], ids=["every core", "as many as it was given"])
def test_an_engine_on_the_processor_that_computes_without_a_token_is_busy_and_not_wedged(
    cores: int, taken: float
) -> None:
    host = HostSample(cores, workers=(Worker(1, "llama-server", taken, 0.99, serves=True),), faults_per_s=9000.0)
    verdict = judge(with_host(llamacpp(*STANDING * 2), host))
    assert verdict.kind == "cpu"
    assert "py-spy" not in verdict.advice


def test_an_engine_on_the_processor_that_others_crowd_out_is_slow_and_not_wedged() -> None:
    host = HostSample(2, busy=1.0, workers=(Worker(1, "llama-server", 0.6, 0.6, serves=True),), faults_per_s=3.0)
    verdict = judge(with_host(llamacpp(*STANDING * 2), host))
    assert verdict.kind == "cpu"
    assert "all that runs on the host takes 100 %" in texts(verdict)


def test_an_engine_on_the_processor_that_rests_without_a_token_is_wedged_and_a_debugger_for_its_kind_is_named() -> None:
    host = HostSample(8, workers=(Worker(1, "llama-server", 0.0, 0.0, serves=True),), faults_per_s=0.0)
    verdict = judge(with_host(llamacpp(*STANDING), host))
    assert verdict.kind == "wedged"
    assert "gdb" in verdict.advice
    assert "py-spy" not in verdict.advice


def test_a_queue_is_answered_with_the_option_that_the_engine_has() -> None:
    told: list[Row] = [(4, 9, 100.0 * place, 9) for place in range(9)]
    seats = HostSample(8, max_num_seqs=4, workers=(Worker(1, "engine", 0.1, 0.1),))
    for window, option, other in ((llamacpp(*told), "--parallel", "seqs"), (rows(*told), "--max-num-seqs", "parallel")):
        verdict = judge(with_host(window, seats))
        assert verdict.kind == "queue"
        assert option in verdict.advice
        assert other not in verdict.advice


def test_no_window_at_all_is_unknown() -> None:
    assert judge([]).kind == "unknown"


def test_everything_that_can_be_said_has_advice() -> None:
    assert all(ADVICE.values())
    assert len(ADVICE) == 15
