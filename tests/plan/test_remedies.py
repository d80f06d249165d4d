"""What a refusal names as enough is enough."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import resources
from typing import Any

import pytest

from casemate.plan.catalogue import chips, machine_of
from casemate.plan.decision import CardsPlan, Intent, Refusal
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
