"""A plan or a refusal as JSON values: flat, and beside them `reasons` keyed by the same names. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from casemate.plan.decision import GIB, CardsPlan, CpuPlan, Refusal, Speed

DEFINITIONS = (
    (
        "ttft_s",
        "from sending a prompt of prompt_tokens to the first token of any kind, that request alone on the engine",
    ),
    ("tpot_s", "(last token - first token) / (tokens - 1) of one stream while `concurrency` streams decode"),
    ("output_tokens_per_s", "concurrency / tpot_s: output tokens of all streams while they decode"),
    ("tpot_loaded_s", "as tpot_s, in a closed loop: a new prompt follows each answer and is read between the tokens"),
    ("sustained_tokens_per_s", "output tokens of all streams in that closed loop, prompts included in the time"),
)
"""What each predicted figure means; they are measured by the same definitions."""
_METHOD = (
    "roofline (Williams et al., CACM 2009): the slower of bytes / bandwidth and operations / rate, and beside it"
    " all-reduces, kernel launches and scheduling"
)


@dataclass(frozen=True, slots=True)
class Start:
    """How a plan for cards is started.

    `words` is the command, `variables` its environment, `checked` the release whose flags it was held against, and
    `problems` what the linter said of it (nothing, unless the two disagree).
    """

    words: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]
    checked: str
    problems: tuple[str, ...] = ()


def of_cards(plan: CardsPlan, start: Start) -> dict[str, Any]:
    """A plan for cards."""
    value: dict[str, Any] = {"refused": False, **asdict(plan)}
    for name, number in value.items():
        if name.endswith("_gib") or name == "full_length_requests":
            value[name] = round(number, 3)
    last = {name: value.pop(name) for name in ("speed", "reasons", "notes")}
    return value | {
        "argv": list(start.words),
        "environment": dict(start.variables),
        "checked_against": start.checked,
        "problems": list(start.problems),
        "speed": _speed(plan.speed) if plan.speed else None,
        "reasons": dict(last["reasons"]),
        "notes": list(last["notes"]),
    }


def of_cpu(plan: CpuPlan) -> dict[str, Any]:
    """A plan for the CPU."""
    value = {"refused": False, **asdict(plan), "memory_gib": round(plan.memory_bytes / GIB, 3)}
    return value | {"reasons": dict(plan.reasons)}


def of_refusal(refusal: Refusal) -> dict[str, Any]:
    """A refusal: every reason, and what would help."""
    return {
        "refused": True,
        "model": refusal.model,
        "reasons": list(refusal.reasons),
        "remedy": refusal.remedy,
    }


def _speed(speed: Speed) -> dict[str, Any]:
    """The figures, each with its band and its definition."""
    figures = {name: getattr(speed, name) for name, _ in DEFINITIONS}
    return {
        "prompt_tokens": speed.prompt_tokens,
        "concurrency": speed.concurrency,
        **{name: _figure(value) for name, value in figures.items()},
        "asked": speed.asked,
        "limited_by": speed.limited_by,
        "tokens_per_step": _figure(speed.tokens_per_step),
        "error": speed.error,
        "ttft_error": speed.ttft_error,
        "bands": {
            name: [_figure(end) for end in band(value, error_of(speed, name))] for name, value in figures.items()
        },
        "calibrated": speed.calibrated,
        "terms": {name: _figure(value) for name, value in speed.terms},
        "definitions": dict(DEFINITIONS),
        "method": _METHOD,
    }


def error_of(speed: Speed, name: str) -> float:
    """The share that one of its figures may be off by."""
    return speed.ttft_error if name == "ttft_s" else speed.error


def band(value: float, error: float) -> tuple[float, float]:
    """The least and the most that a predicted figure may turn out as."""
    return value * (1 - error), value * (1 + error)


def _figure(value: float) -> float:
    """Three figures are more than a prediction knows."""
    return float(f"{value:.4g}")
