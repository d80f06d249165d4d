"""The judgement against engines that it does not know; `python bench/watch.py` prints the whole matrix."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from casemate.doctor.watch.bottleneck import judge
from doctor.scenarios.classes import SCENARIOS, held_back, tuned, variant

_VARIANTS = 10
_LEAST_OF_A_CLASS = 0.9
_LEAST_OF_ALL = 0.95


@pytest.mark.parametrize("seeds", [tuned(_VARIANTS), held_back(_VARIANTS)], ids=["tuned", "held back"])
def test_what_limits_a_simulated_engine_is_named_on_seeds_tuned_on_and_on_seeds_held_back(seeds: range) -> None:
    right: Counter[str] = Counter()
    wrong = []
    for name in SCENARIOS:
        for seed in seeds:
            verdict = judge(variant(name, seed).samples)
            right[name] += verdict.kind == name
            wrong += [] if verdict.kind == name else [f"{name} {seed} was called {verdict.kind}"]
    assert min(right[name] for name in SCENARIOS) >= _LEAST_OF_A_CLASS * len(seeds), wrong
    assert right.total() >= _LEAST_OF_ALL * len(seeds) * len(SCENARIOS), wrong


def test_every_verdict_on_a_fault_or_limit_brings_the_figures_that_decided() -> None:
    for name in SCENARIOS:
        verdict = judge(variant(name, 0).samples)
        assert verdict.suspects, name
        assert all(suspect.evidence for suspect in verdict.suspects), name
        assert verdict.found == (name not in ("light", "idle")), name


def test_a_seed_gives_the_same_samples_again() -> None:
    assert variant("kv", 3) == variant("kv", 3)
    assert variant("kv", 3) != variant("kv", 4)


def test_without_the_cards_nobody_claims_to_know_what_only_they_tell() -> None:
    for name in ("compute", "bandwidth", "throttling", "imbalance", "link"):
        blind = [replace(one, cards=(), cards_error="hidden") for one in variant(name, 2).samples]
        assert judge(blind).kind not in ("compute", "bandwidth", "throttling", "imbalance", "link"), name
    hidden = [replace(one, cards=(), cards_error="hidden") for one in variant("kv", 2).samples]
    assert judge(hidden).kind == "kv", "the engine tells of it"
