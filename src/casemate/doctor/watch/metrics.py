"""Reads the metrics that an engine publishes as Prometheus text (exposition format 0.0.4). Pure.

Names moved between releases; each fact has its names from newest to oldest, and the first that is there counts. What is
not there is None. vLLM's names are those of 0.6.3 to 0.33.0, llama.cpp's those of its server.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from casemate.doctor.watch.sample import EngineSample
from casemate.errors import UsageError

MOST_BYTES = 16 << 20
"""A page of metrics has some hundred kilobytes; what is longer is none."""

_LINE = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)\s*(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+-?\d+)?\s*", re.ASCII)
_LABEL = re.compile(r'\s*(?P<name>\w+)\s*=\s*"(?P<value>(?:[^"\\]|\\.)*)"\s*(?:,|$)', re.ASCII)
_ESCAPE = re.compile(r"\\(.)")
_IMPLAUSIBLE = 1e30
"""No counter of an engine comes near it, operations in years included; below it sums and rates stay finite."""
_ROUNDING = 1e-6
_LARGE_STEP = 256.0
"""More tokens in a step than cards of today need to be bound by arithmetic (peak rate over bandwidth is 150 to 300)."""


@dataclass(frozen=True, slots=True)
class Series:
    """One line: its labels and its value, which may be infinite but is a number."""

    labels: Mapping[str, str]
    value: float


Page = Mapping[str, tuple[Series, ...]]


def page(text: str) -> Page:
    """Every series by its name. Comments, lines of another form and NaN are left out: they tell nothing."""
    found: dict[str, list[Series]] = {}
    for line in text.split("\n"):
        if line.startswith("#") or not (match := _LINE.fullmatch(line)):
            continue
        value = _number(match["value"])
        labels = _labels(match["labels"] or "")
        if value is not None and labels is not None:
            found.setdefault(match["name"], []).append(Series(labels, value))
    return {name: tuple(series) for name, series in found.items()}


def engine(text: str) -> EngineSample:
    """What an engine's page says.

    Raises:
        UsageError: there is no metric of an engine that we know on it.
    """
    told = page(text)
    if any(name.startswith("vllm:") for name in told):
        return _vllm(told)
    if any(name.startswith("llamacpp:") for name in told):
        return _llamacpp(told)
    what = "the page holds no metrics of vLLM or llama.cpp"
    raise UsageError(
        what, remedy="is this the engine's address? llama.cpp needs --metrics, vLLM no --disable-log-stats"
    )


def _vllm(told: Page) -> EngineSample:
    running = _by_engine(told, "vllm:num_requests_running")
    swapped = _sum(told, "vllm:num_requests_swapped") or 0.0
    waiting = _sum(told, "vllm:num_requests_waiting")
    return EngineSample(
        kind="vllm",
        running=sum(running.values()) if running else None,
        waiting=None if waiting is None else waiting + swapped,
        waiting_deferred=_sum(told, "vllm:num_requests_waiting_by_reason", reason="deferred"),
        kv_usage=_fullest(told, "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        prompt_tokens=_sum(told, "vllm:prompt_tokens_total"),
        generation_tokens=_sum(told, "vllm:generation_tokens_total"),
        prefix_queries=_sum(told, "vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
        prefix_hits=_sum(told, "vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
        preemptions=_sum(told, "vllm:num_preemptions_total"),
        draft_tokens=_sum(told, "vllm:spec_decode_num_draft_tokens_total"),
        accepted_tokens=_sum(told, "vllm:spec_decode_num_accepted_tokens_total"),
        iterations=_sum(told, "vllm:iteration_tokens_total_count"),
        iteration_tokens=_sum(told, "vllm:iteration_tokens_total_sum"),
        small_step_tokens=_below(told, "vllm:iteration_tokens_total", bound=_LARGE_STEP),
        queue_s=_sum(told, "vllm:request_queue_time_seconds_sum"),
        queued=_sum(told, "vllm:request_queue_time_seconds_count"),
        first_token_s=_sum(told, "vllm:time_to_first_token_seconds_sum"),
        first_tokens=_sum(told, "vllm:time_to_first_token_seconds_count"),
        between_tokens_s=_sum(told, "vllm:inter_token_latency_seconds_sum", "vllm:time_per_output_token_seconds_sum"),
        between_tokens=_sum(told, "vllm:inter_token_latency_seconds_count", "vllm:time_per_output_token_seconds_count"),
        finished=_sum(told, "vllm:request_success_total"),
        flops=_sum(told, "vllm:estimated_flops_per_gpu_total"),
        memory_bytes=_both(
            told, one="vllm:estimated_read_bytes_per_gpu_total", other="vllm:estimated_write_bytes_per_gpu_total"
        ),
        cpu_s=_sum(told, "process_cpu_seconds_total"),
        started_s=_sum(told, "process_start_time_seconds"),
        running_by_engine=tuple(sorted(running.items())) if len(running) > 1 else (),
    )


def _llamacpp(told: Page) -> EngineSample:
    return EngineSample(
        kind="llamacpp",
        running=_sum(told, "llamacpp:requests_processing"),
        waiting=_sum(told, "llamacpp:requests_deferred"),
        kv_usage=_fullest(told, "llamacpp:kv_cache_usage_ratio"),
        prompt_tokens=_sum(told, "llamacpp:prompt_tokens_total"),
        generation_tokens=_sum(told, "llamacpp:tokens_predicted_total"),
        iterations=_sum(told, "llamacpp:n_decode_total"),
    )


def _by_engine(told: Page, name: str) -> dict[str, float]:
    """A gauge of each engine behind the address."""
    found: dict[str, float] = {}
    for series in told.get(name, ()):
        if not _plausible(series.value):
            continue
        engine_ = series.labels.get("engine", "0")
        found[engine_] = found.get(engine_, 0.0) + series.value
    return found


def _sum(told: Page, *names: str, **labels: str) -> float | None:
    """All series of the first name that is there, with these labels; a total may come without its `_total`."""
    for name in names:
        for spelled in (name, name.removesuffix("_total")):
            values = [series.value for series in told.get(spelled, ()) if labels.items() <= series.labels.items()]
            if values and all(map(_plausible, values)):
                return sum(values)
    return None


def _fullest(told: Page, *names: str) -> float | None:
    """The largest of the shares under the first name that is there; what is no share of 1 tells nothing."""
    for name in names:
        values = [series.value for series in told.get(name, ()) if 0 <= series.value <= 1 + _ROUNDING]
        if values:
            return min(1.0, max(values))
    return None


def _plausible(value: float) -> bool:
    return 0 <= value <= _IMPLAUSIBLE


def _both(told: Page, *, one: str, other: str) -> float | None:
    first, second = _sum(told, one), _sum(told, other)
    return None if first is None or second is None else first + second


def _below(told: Page, name: str, *, bound: float) -> float | None:
    """Of a histogram's sum, about what its classes up to a bound hold: their counts times their middles."""
    counts: dict[float, float] = {}
    for series in told.get(f"{name}_bucket", ()):
        edge = _number(series.labels.get("le", ""))
        if edge is not None and edge <= bound and _plausible(series.value):
            counts[edge] = counts.get(edge, 0.0) + series.value
    edges = [0.0, *sorted(counts)]
    cumulated = [0.0, *(counts[edge] for edge in edges[1:])]
    middles = [(low + high) / 2 for low, high in pairwise(edges)]
    return sum((high - low) * middle for (low, high), middle in zip(pairwise(cumulated), middles, strict=True)) or None


def _labels(text: str) -> dict[str, str] | None:
    found: dict[str, str] = {}
    place = 0
    for match in _in_a_row(text):
        found[match["name"]] = _ESCAPE.sub(lambda escape: "\n" if escape[1] == "n" else escape[1], match["value"])
        place = match.end()
    return found if not text[place:].strip() else None


def _in_a_row(text: str) -> Iterator[re.Match[str]]:
    place = 0
    while place < len(text) and (match := _LABEL.match(text, place)):
        yield match
        place = match.end()


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return None if math.isnan(value) or "_" in text else value
