"""What a refusal names as enough is enough."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casemate.plan.catalogue import chips, machine_of
from casemate.plan.decision import GIB, CardsPlan, Intent, Refusal
from casemate.plan.planner import plan
from plan import shapes

CHIPS = chips(resources.files("casemate.plan").joinpath("cards.tsv").read_text("utf-8"))
DENSE = shapes.dense(4096, 32, heads=(32, 8), feed_forward=14336, vocabulary=128256)
TIGHT = [
    ("2xH20-96GB", shapes.V4, Intent(context=32768, concurrency=60)),
    ("2xH20-96GB", shapes.V4, Intent(context=1048576, concurrency=8)),
    ("1xRTX-4090", DENSE, Intent(context=32768, concurrency=4)),
    ("1xA100-80GB", DENSE, Intent(context=16384, concurrency=200)),
]


def outcome(gpus: str, config: dict[str, Any], intent: Intent) -> CardsPlan | Refusal:
    return plan(machine_of(gpus, CHIPS), shapes.read(config), intent=intent, engine_version="0.33.0")


def remedy(gpus: str, config: dict[str, Any], intent: Intent) -> str:
    found = outcome(gpus, config, intent)
    assert isinstance(found, Refusal), found
    return found.remedy


def named(pattern: str, text: str) -> int:
    matched = re.search(pattern, text)
    assert matched, text
    return int(matched[1].replace(",", ""))


@pytest.mark.parametrize(("gpus", "config", "intent"), TIGHT)
def test_the_context_that_a_refusal_names_fits(gpus: str, config: dict[str, Any], intent: Intent) -> None:
    context = named(r"ask for ([\d,]+) tokens", remedy(gpus, config, intent))
    assert context < intent.context
    assert isinstance(outcome(gpus, config, replace(intent, context=context)), CardsPlan)


@pytest.mark.parametrize(("gpus", "config", "intent"), TIGHT)
def test_the_number_of_requests_that_a_refusal_names_fits(gpus: str, config: dict[str, Any], intent: Intent) -> None:
    requests = named(r"ask for (\d+) requests", remedy(gpus, config, intent))
    assert requests < intent.concurrency
    assert isinstance(outcome(gpus, config, replace(intent, concurrency=requests)), CardsPlan)


MODELS = [
    shapes.LLAMA_8B, shapes.QWEN2_7B, DENSE, shapes.GPTQ_70B, shapes.GPT_OSS_120B, shapes.QWEN3_NEXT, shapes.V4_DSPARK,
    {**shapes.LLAMA_8B, "max_position_embeddings": 512},
]  # fmt: skip
CARDS = ["T4", "L4", "3090", "4090", "A100-80GB", "H100", "H20-96GB"]


@given(
    kind=st.sampled_from(CARDS),
    count=st.integers(1, 4),
    config=st.sampled_from(MODELS),
    intent=st.builds(
        Intent,
        context=st.sampled_from([0, 0, 2048, 32768, 131072]),
        concurrency=st.sampled_from([1, 2, 8, 64, 500]),
        memory_cap_bytes=st.sampled_from([None, None, 12 * GIB, 20 * GIB]),
    ),
    held=st.sampled_from([0, 0, 6]),
)
@settings(max_examples=40, deadline=None)
def test_a_shortage_is_never_none_and_every_remedy_with_a_number_gives_a_plan(
    kind: str, count: int, config: dict[str, Any], intent: Intent, held: int
) -> None:
    def on(number: int, *, more: int = 0, wish: Intent = intent) -> CardsPlan | Refusal:
        named_cards = machine_of(f"{number}x{kind}", CHIPS)
        cards = tuple(
            replace(card, memory_total_bytes=(card.memory_total_bytes or 0) + more * GIB, memory_used_bytes=held * GIB)
            for card in named_cards.cards
        )
        return plan(replace(named_cards, cards=cards), shapes.read(config), intent=wish, engine_version="0.33.0")

    found = on(count)
    if isinstance(found, CardsPlan):
        return
    told = " ".join((*found.reasons, found.remedy))
    shortages = [float(text) for text in re.findall(r"(-?[\d.]+) GiB (?:are missing|more each)", told)]
    assert all(missing > 0 for missing in shortages), told
    trials: list[tuple[str, Callable[[int], CardsPlan | Refusal]]] = [
        (r"ask for ([\d,]+) tokens", lambda number: on(count, wish=replace(intent, context=number))),
        (r"ask for (\d+) requests", lambda number: on(count, wish=replace(intent, concurrency=number))),
        (r"a memory cap of (\d+) GiB", lambda number: on(count, wish=replace(intent, memory_cap_bytes=number * GIB))),
        (r"cards with (\d+) GiB more", lambda number: on(count, more=number)),
        (r"(\d+) such cards", on),
    ]
    for pattern, trial in trials:
        if re.search(pattern, found.remedy):
            assert isinstance(trial(named(pattern, found.remedy)), CardsPlan), (pattern, found)


def test_a_cap_that_is_too_low_is_told_and_no_larger_card() -> None:
    told = remedy("1xH200", DENSE, Intent(context=8192, memory_cap_bytes=12 * GIB))
    assert isinstance(
        outcome("1xH200", DENSE, Intent(8192, memory_cap_bytes=GIB * named(r"a memory cap of (\d+) GiB", told))),
        CardsPlan,
    )
    assert "more each" not in told


def test_larger_cards_are_no_remedy_where_a_cap_leaves_them_no_use() -> None:
    told = remedy("4xT4", DENSE, Intent(context=131072, concurrency=64, memory_cap_bytes=20 * GIB))
    assert "more each" not in told
