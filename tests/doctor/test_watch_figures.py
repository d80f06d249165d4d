from __future__ import annotations

import math
from typing import Any

import pytest

from casemate.doctor.watch.figures import Figures, figures
from casemate.doctor.watch.sample import CardSample, EngineSample, HostSample, Sample, Use, Worker


def engines(*told: dict[str, Any] | None, every_s: float = 1.0) -> Figures:
    return figures(
        [
            Sample(
                place * every_s,
                "answered" if one is not None else "silent",
                EngineSample("vllm", **one) if one is not None else None,
            )
            for place, one in enumerate(told)
        ]
    )


def cards(*rows: list[CardSample], hosts: HostSample | None = None) -> Figures:
    return figures([Sample(float(place), cards=tuple(row), host=hosts) for place, row in enumerate(rows)])


def test_a_rate_is_the_growth_of_a_counter_over_the_time_between_answers() -> None:
    found = engines({"running": 1, "generation_tokens": 100.0}, None, {"running": 1, "generation_tokens": 160.0})
    assert found.engine.generated_per_s == 30
    assert found.engine.prompt_per_s is None, "it was not told"


def test_a_counter_that_began_anew_counts_from_zero_and_the_restart_is_told() -> None:
    found = engines(
        {"running": 1, "generation_tokens": 1000.0}, {"running": 1, "generation_tokens": 1010.0},
        {"running": 1, "generation_tokens": 20.0}, {"running": 1, "generation_tokens": 30.0},
    )  # fmt: skip
    assert found.engine.generated_per_s == pytest.approx((10 + 20 + 10) / 3)
    assert found.engine.restarts == 1


def test_another_process_is_a_restart_even_if_its_counters_are_already_higher() -> None:
    found = engines(
        {"running": 1, "generation_tokens": 10.0, "started_s": 5.0},
        {"running": 1, "generation_tokens": 30.0, "started_s": 9.0},
    )
    assert (found.engine.generated_per_s, found.engine.restarts) == (30, 1)


def test_the_time_before_the_first_request_thins_no_rate() -> None:
    found = engines(
        *({"running": 0, "generation_tokens": 0.0} for _ in range(5)),
        {"running": 2, "generation_tokens": 50.0}, {"running": 2, "generation_tokens": 100.0},
    )  # fmt: skip
    assert found.engine.generated_per_s == 50
    assert found.engine.loaded == pytest.approx(2 / 7)
    assert found.engine.engaged == 1


def test_nothing_can_be_said_of_a_single_sample_or_of_none() -> None:
    assert engines({"running": 1, "generation_tokens": 7.0}).engine.generated_per_s is None
    assert figures([]).engine.loaded is None


def test_an_engine_that_fills_its_cache_is_not_standing_still() -> None:
    still = [{"running": 1, "kv_usage": 0.1, "generation_tokens": 5.0, "prompt_tokens": 9.0}] * 9
    assert engines(*still, every_s=5).engine.still_s == 40
    filling = [one | {"kv_usage": place / 10} for place, one in enumerate(still)]
    assert engines(*filling, every_s=5).engine.still_s == 0


def test_an_engine_that_counts_no_tokens_is_never_said_to_stand_still() -> None:
    assert engines(*[{"running": 3}] * 9, every_s=5).engine.still_s == 0


def test_who_waits_for_an_adapter_does_not_wait_for_room() -> None:
    found = engines(*[{"running": 1, "waiting": 2, "waiting_deferred": 2}] * 3)
    assert (found.engine.waiting, found.engine.waited) == (2, 0)


def test_cards_are_compared_only_if_the_engine_is_on_them() -> None:
    rows = [[used(0, 0.9, pid=4), used(1, 0.5, pid=5), used(2, 1.0, pid=99), used(3, 0.0, memory=0.01)]] * 3
    by_memory = cards(*rows)
    assert [card.index for card in by_memory.cards if card.in_use] == [0, 1, 2]
    by_process = cards(*rows, hosts=HostSample(8, workers=(Worker(4, "w", 1.0), Worker(5, "w", 1.0))))
    assert [card.index for card in by_process.cards if card.in_use] == [0, 1]
    (spread,) = by_process.spreads
    assert (spread.most, spread.least, spread.steady) == (0, 1, 1)
    assert spread.gain == pytest.approx(1 - 0.7 / 0.9)


def test_a_card_that_tells_nothing_is_unknown_and_compared_with_nobody() -> None:
    found = cards([CardSample(0, busy=0.5), CardSample(1)], [CardSample(0, busy=0.5), CardSample(1)])
    assert found.cards[1].busy is None
    assert found.spreads == ()


def test_links_are_measured_in_their_busier_direction_and_a_reset_counter_is_left_out() -> None:
    def card(sent: int, received: int) -> CardSample:
        return CardSample(
            0, nvlink_sent_bytes=sent, nvlink_received_bytes=received, nvlink_bound_bytes_per_s=100.0,
            pcie_sent_bytes_per_s=1.0, pcie_received_bytes_per_s=4.0, pcie_bound_bytes_per_s=8.0,
        )  # fmt: skip

    (found,) = cards([card(0, 0)], [card(50, 20)], [card(7, 40)]).cards
    assert (found.nvlink_bytes_per_s, found.nvlink, found.pcie) == (50, 0.5, 0.5)


def test_no_figure_is_infinite_or_no_number() -> None:
    found = cards(
        [CardSample(0, power_w=5.0, power_limit_w=0.0, sm_clock_hz=1.0, sm_clock_max_hz=0, memory_total_bytes=0)]
    )
    (card,) = found.cards
    assert (card.power, card.clock, card.memory_used) == (None, None, None)
    assert all(math.isfinite(value) for name in card.__slots__ if isinstance(value := getattr(card, name), float))


def used(index: int, busy: float, *, pid: int = 0, memory: float = 0.9) -> CardSample:
    processes = (Use(pid),) if pid else ()
    total = 80_000_000_000
    return CardSample(
        index, busy=busy, memory_used_bytes=int(memory * total), memory_total_bytes=total, processes=processes
    )


def test_more_hits_than_queries_are_a_mistake_and_no_share() -> None:
    wrong = [{"running": 1, "prefix_queries": 10.0 * place, "prefix_hits": 15.0 * place} for place in range(4)]
    assert engines(*wrong).engine.prefix_hits is None
    right = [one | {"prefix_hits": 5.0 * place} for place, one in enumerate(wrong)]
    assert engines(*right).engine.prefix_hits == 0.5
