"""What no single line shows: findings from the facts of a launch, and figures that a finding's figures imply. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from casemate.doctor.log.facts import EngineLog, Throughput

_MANY_PROMPT_TOKENS = 20_000
_FEW_SAMPLES = 4
_STALLED_SAMPLES = 3
_FULL = 0.97
_SAMPLE_EVERY_S = 10
_GRAPHS_OFF_GIB = 0.5
_GIB = 1 << 30
_HIGH_UTILIZATION = 0.95
_PREVIEW_TOKENS = (8192, 32768, 65536, 131072)


@dataclass(frozen=True, slots=True)
class Shown:
    """A trend that holds: its id in the table, the line that shows it best (0: none), and the figures."""

    id: str
    line: int
    detail: str


def shown(log: EngineLog) -> Iterator[Shown]:
    """The trends that hold for this launch."""
    for test in (_prefix_cache, _preemptions, _stall, _queue, _graphs, _eager):
        if (found := test(log)) is not None:
            yield found


def implied(id_: str, log: EngineLog) -> str:
    """What follows from the figures of a finding; empty where nothing does."""
    make = _IMPLIED.get(id_)
    return make(log) if make else ""


def advised(id_: str, log: EngineLog) -> str:
    """What to do, where the figures of this log tell more than the table does; empty where they do not."""
    return _advised_cache(log) if id_ == "kv-too-small" else ""


def _prefix_cache(log: EngineLog) -> Shown | None:
    rated = [sample for sample in log.samples if sample.prefix_hit_rate is not None]
    read = sum(sample.prompt_tokens_per_s for sample in rated) * _SAMPLE_EVERY_S
    if len(rated) < _FEW_SAMPLES or read < _MANY_PROMPT_TOKENS or any(sample.prefix_hit_rate for sample in rated):
        return None
    return Shown("prefix-cache-zero", rated[-1].line, f"0 % over about {read:,.0f} prompt tokens")


def _preemptions(log: EngineLog) -> Shown | None:
    worst = max(log.samples, key=lambda sample: sample.preemptions, default=None)
    if worst is None or worst.preemptions == 0:
        return None
    return Shown("preemptions", worst.line, f"{worst.preemptions} in ten seconds at most")


def _stall(log: EngineLog) -> Shown | None:
    run: list[Throughput] = []
    longest: list[Throughput] = []
    for sample in log.samples:
        still = sample.running > 0 and sample.generation_tokens_per_s == 0 and sample.prompt_tokens_per_s == 0
        run = [*run, sample] if still else []
        longest = run if len(run) > len(longest) else longest
    if len(longest) < _STALLED_SAMPLES:
        return None
    detail = f"{longest[-1].running} requests running and no token for about {len(longest) * _SAMPLE_EVERY_S} s"
    return Shown("stalled", longest[0].line, detail)


def _queue(log: EngineLog) -> Shown | None:
    full = [sample for sample in log.samples if sample.waiting > 0 and (sample.kv_usage or 0) >= _FULL]
    if len(full) < _FEW_SAMPLES:
        return None
    most = max(sample.waiting for sample in full)
    return Shown("cache-full", full[0].line, f"{most} requests waited at most while the cache was full")


def _graphs(log: EngineLog) -> Shown | None:
    said, used = log.graphs_estimated_gib, log.graphs_actual_gib
    if said is None or used is None or said - used < _GRAPHS_OFF_GIB:
        return None
    return Shown("graph-estimate-off", 0, f"{said} GiB set aside for CUDA graphs, {used} GiB used")


def _eager(log: EngineLog) -> Shown | None:
    if not (log.eager or log.argument("enforce_eager") is True):
        return None
    return Shown("eager-mode", log.eager_line, "CUDA graphs and torch.compile are off")


def _kv(log: EngineLog) -> str:
    if not log.shortages:
        return ""
    last = log.shortages[-1]
    slope, fixed = last.slope_bytes_per_token, last.fixed_gib
    head = f"{last.max_model_len:,} tokens need {last.need_gib} GiB, there are {last.available_gib} GiB"
    if slope is None or fixed is None:
        return head
    told = [
        f"{tokens:,} tokens would need {need:.2f} GiB ({'fits' if need <= last.available_gib else 'does not fit'})"
        for tokens in _PREVIEW_TOKENS
        if tokens != last.max_model_len and (need := last.need_at_gib(tokens)) is not None
    ]
    per_token = f"need = {fixed:.2f} GiB + {slope / 1000:.1f} kB per token"
    if last.is_proportional:
        each = last.need_gib * _GIB / last.max_model_len / 1000
        per_token = f"the need is in proportion to the context, {each:.1f} kB per token"
    return f"{head}; {per_token}: " + ", ".join(told)


def _advised_cache(log: EngineLog) -> str:
    last = log.shortages[-1] if log.shortages else None
    if last is None or not last.is_proportional:
        return ""
    steps = [f"--max-model-len {last.estimated_max_len}, which the log says fits, if no request is longer"]
    if (log.utilization or 0) < _HIGH_UTILIZATION:
        steps.append(f"--gpu-memory-utilization higher (up to {_HIGH_UTILIZATION})")
    if not log.kv_dtype.startswith("fp8"):
        steps.append("--kv-cache-dtype fp8, which halves the cache of a 16-bit model")
    now = f" ({log.tensor_parallel} now)" if log.tensor_parallel else ""
    steps.append(f"more --tensor-parallel-size{now}, so that each card holds a part of the heads and of the weights")
    return (
        "In this order: " + "; ".join(steps) + ". Fewer --max-num-batched-tokens hardly help: the fixed part is small."
    )


def _cache_blocks(log: EngineLog) -> str:
    weights = max((gib for _, gib in log.weights_gib), default=None)
    parts = (
        ("weights", weights),
        ("activation peak", log.activation_gib),
        ("CUDA graphs (estimate)", log.graphs_estimated_gib),
        ("budget", log.requested_gib),
    )
    return ", ".join(f"{name} {gib} GiB" for name, gib in parts if gib is not None)


_IMPLIED: dict[str, Callable[[EngineLog], str]] = {
    "kv-too-small": _kv,
    "no-cache-blocks": _cache_blocks,
    "graph-estimate-too-high": _cache_blocks,
}
