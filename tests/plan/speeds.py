"""Measured speeds (`speeds.tsv`), and what the planner predicts for the same engine, cards and load."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from casemate.checkpoint.config import checkpoint_from_config
from casemate.checkpoint.facts import Checkpoint
from casemate.plan.catalogue import chips, machine_of
from casemate.plan.decision import Speed
from casemate.plan.launch import Launch, Layout
from casemate.plan.rates import rates
from casemate.plan.roofline import Workload, speed

TUNING = Path(__file__).parent / "speeds.tsv"
CHIPS = chips((resources.files("casemate.plan") / "cards.tsv").read_text(encoding="utf-8"))
_CONTEXT, _SEQUENCES, _CAPTURE = 1 << 18, 256, 512


@dataclass(frozen=True, slots=True)
class Measured:
    """One public figure: `figure` is ttft, tpot or request (ms), or tokens (a second, all streams)."""

    source: str
    engine: str
    gpus: str
    checkpoint: Checkpoint
    launch: Launch
    workload: Workload
    figure: str
    value: float
    meaning: str

    @property
    def name(self) -> str:
        """The case in one line."""
        layout, work = self.launch.layout, self.workload
        cut = f"tp{layout.tensor}" + ("" if layout.pipeline == 1 else f" pp{layout.pipeline}")
        cut += (" ep" if layout.expert else "") + ("" if self.launch.capture else " eager")
        load = f"{work.prompt_tokens}/{work.output_tokens} x{work.concurrency}"
        other = "" if self.engine == "vllm" else f" ({self.engine})"
        return f"{Path(self.checkpoint.path).name} {self.gpus} {cut} {load} {self.figure}{other}"


@dataclass(frozen=True, slots=True)
class Compared:
    """A measured figure beside the predicted one and its band (a share of the predicted)."""

    measured: Measured
    predicted: float
    band: float

    @property
    def error(self) -> float:
        """How far the prediction is off, as a share of what was measured."""
        return self.predicted / self.measured.value - 1

    @property
    def is_within(self) -> bool:
        """Whether the measured figure lies in the band."""
        return abs(self.measured.value - self.predicted) <= self.band * self.predicted


def load(path: Path = TUNING) -> tuple[Measured, ...]:
    """The figures of a file of that format."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    models = {
        name: checkpoint_from_config(json.loads(config), Path(f"/models/{name}"))
        for name, config in (line.split("\t")[1:] for line in lines if line.startswith("model\t"))
    }
    rows = csv.DictReader((line for line in lines if not line.startswith("model\t")), delimiter="\t")
    return tuple(_measured(rows, models))


def compared(measured: Measured) -> Compared:
    """Predict one figure, cold: nothing is known of the engine but how it was started."""
    machine = machine_of(measured.gpus, CHIPS)
    known = rates(machine, tuple(range(measured.launch.layout.cards)), known=CHIPS)
    assert known is not None, measured.gpus
    found = speed(measured.checkpoint, measured.launch, rates=known, workload=measured.workload)
    return Compared(measured, _figure(measured, found), found.ttft_error if measured.figure == "ttft" else found.error)


def _figure(measured: Measured, found: Speed) -> float:
    tpot_s = found.tpot_loaded_s if "closed loop" in measured.meaning else found.tpot_s
    match measured.figure:
        case "ttft":
            return found.ttft_s * 1e3
        case "tpot":
            return tpot_s * 1e3
        case "request":
            return (found.ttft_s + (measured.workload.output_tokens - 1) * tpot_s) * 1e3
        case "tokens":
            return found.sustained_tokens_per_s
        case other:
            raise AssertionError(other)


def _measured(rows: csv.DictReader[str], models: dict[str, Checkpoint]) -> Iterator[Measured]:
    for row in rows:
        layout = Layout(int(row["tensor"]), int(row["pipeline"]), expert=row["expert"] == "1")
        capture = 0 if row["eager"] == "1" else _CAPTURE
        launch = Launch(layout, _CONTEXT, int(row["batched"]), _SEQUENCES, 0.9, kv_dtype=row["kv"], capture=capture)
        work = Workload(int(row["prompt"]), int(row["output"]), int(row["streams"]))
        yield Measured(
            row["source"], row["engine"], row["gpus"], models[row["model"]], launch, work, row["figure"],
            float(row["value"]), row["meaning"],
        )  # fmt: skip
