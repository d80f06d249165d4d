"""Start-ups that somebody saw, one a line of `reports.jsonl`, and what the planner's memory model says of each.

A line has the facts alone: where it was seen, cards, release, flags that were set, numbers of the model's config, and
what the engine printed (GiB; `requests`: its maximum concurrency; `start_gib`: what it demanded; `failed`: it refused).
Flags that a line leaves out are the release's defaults on that card.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from casemate.checkpoint.config import checkpoint_from_config
from casemate.checkpoint.facts import Checkpoint
from casemate.doctor.machine import Card
from casemate.plan.accounting import Accounting, accounting
from casemate.plan.catalogue import chips, machine_of
from casemate.plan.decision import GIB
from casemate.plan.launch import Launch, Layout, default_capture
from casemate.plan.memory import Budget, budget
from casemate.plan.overhead import engine_total_bytes

REPORTS = Path(__file__).with_name("reports.jsonl")
_CHIPS = chips(files("casemate.plan").joinpath("cards.tsv").read_text(encoding="utf-8"))
_BIG, _BIGGEST = 70 * GIB, 160 * GIB
_WEIGHTS_SHARE, _WEIGHTS_GIB, _KV_GIB, _REQUESTS_SHARE = 0.03, 0.3, 1.5, 0.01


@dataclass(frozen=True, slots=True)
class Report:
    """One start-up. `usage` is `serve` or `llm`, whose defaults differ; cards of several `nodes` have no link."""

    id: str
    source: str
    card: str
    count: int
    vllm: str
    usage: str
    flags: dict[str, Any]
    measured: dict[str, Any]
    config: dict[str, Any]
    nodes: int = 1


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a report as predicted and as printed, with what it may be off by."""

    name: str
    predicted: float
    measured: float
    within: float

    @property
    def error(self) -> float:
        """Predicted less measured."""
        return self.predicted - self.measured

    @property
    def misses(self) -> bool:
        """Whether it lies outside its tolerance."""
        return abs(self.error) > self.within


@dataclass(frozen=True, slots=True)
class Comparison:
    """A report beside its prediction."""

    report: Report
    budget: Budget
    figures: tuple[Figure, ...]

    @property
    def wrongly_fits(self) -> bool:
        """Whether a start-up that failed is predicted to come up."""
        return bool(self.report.measured.get("failed")) and self.budget.spare_bytes >= 0


def read(path: Path = REPORTS) -> tuple[Report, ...]:
    """Every report of a file."""
    return tuple(Report(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines())


def compared(report: Report) -> Comparison:
    """A report with what is predicted for it."""
    checkpoint = checkpoint_from_config(report.config, Path(report.id) / "config.json")
    machine = machine_of(f"{report.count}x{report.card}", _CHIPS)
    card, chip = machine.cards[0], next(chip for chip in _CHIPS if chip.name == report.card)
    engine = replace(accounting(report.vllm), capability=card.compute_capability)
    found = budget(
        checkpoint,
        launch_of(report, checkpoint, card=card, engine=engine),
        card_bytes=engine_total_bytes(card) or 0,
        engine=engine,
        multicast=chip.nvswitch and report.count > 1 and report.nodes == 1,
    )
    return Comparison(report, found, tuple(_figures(report.measured, found)))


def launch_of(report: Report, checkpoint: Checkpoint, *, card: Card, engine: Accounting) -> Launch:
    """The values that the engine started with."""
    flags = report.flags
    batched, sequences = _defaults(report, card=card, engine=engine)
    sequences = flags.get("max_num_seqs", sequences)
    capture = flags.get("cudagraph_max_capture_size", default_capture(sequences, 1))
    return Launch(
        layout=Layout(
            tensor=flags.get("tensor_parallel_size", 1),
            pipeline=flags.get("pipeline_parallel_size", 1),
            data=flags.get("data_parallel_size", 1),
            expert=flags.get("enable_expert_parallel", False),
        ),
        context=flags.get("max_model_len", checkpoint.context_length),
        batched_tokens=flags.get("max_num_batched_tokens", batched),
        sequences=sequences,
        utilization=flags.get("gpu_memory_utilization", engine.utilization),
        kv_dtype=flags.get("kv_cache_dtype", "auto"),
        capture=0 if flags.get("enforce_eager") else capture,
    )


def _defaults(report: Report, *, card: Card, engine: Accounting) -> tuple[int, int]:
    """Batched tokens and sequences by the rule of `get_batch_defaults` (`engine/arg_utils.py`): by memory, not A100."""
    offline, total = report.usage == "llm", card.memory_total_bytes or 0
    if engine.default_in_big_cards and total >= _BIGGEST:
        return 16384, 1024
    if total >= _BIG and "a100" not in report.card.lower():
        return (16384 if offline else 8192), 1024
    return (8192 if offline else 2048), 256


def _figures(measured: dict[str, Any], found: Budget) -> list[Figure]:
    figures = []
    if weights := measured.get("weights_gib"):
        within = max(_WEIGHTS_SHARE * weights, _WEIGHTS_GIB)
        figures.append(Figure("weights", found.weights_bytes / GIB, weights, within))
    kv = measured.get("kv_gib")
    if kv is not None:
        figures.append(Figure("kv", found.kv_bytes / GIB, kv, _KV_GIB))
    if kv and (requests := measured.get("requests")):
        # By the printed cache, so that this tells of the layout of the cache alone.
        given = replace(found, kv_bytes=int(kv * GIB)).full_length_requests
        figures.append(Figure("requests", given, requests, _REQUESTS_SHARE * requests))
    if start := measured.get("start_gib"):
        figures.append(Figure("start", found.start_bytes / GIB, start, _REQUESTS_SHARE * start))
    return figures
