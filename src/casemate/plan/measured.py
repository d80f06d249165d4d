"""A start-up as its log tells it, in the plan's words: the launch values, and the bytes of each part. Pure.

vLLM prints the same figures in two ways. Until 0.26 activation and memory outside the allocator stand beside the
weights; since 0.27 both weights and the latter are "consumed memory", and the printed activation holds the estimate of
the CUDA graphs too (`determine_available_memory` in `v1/worker/gpu_worker.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from casemate.checkpoint.facts import Checkpoint
from casemate.doctor.log.facts import EngineLog
from casemate.plan.accounting import Accounting
from casemate.plan.decision import GIB, Speculation
from casemate.plan.fitting import Place, default_batched_tokens
from casemate.plan.launch import Launch, Layout, default_capture
from casemate.plan.pages import is_packed

_MANY_SEQUENCES, _SEQUENCES = 1024, 256
"""Requests of a step by default: on cards whose default of batched tokens is a large one, and on others."""
_SMALL_BATCH = 2048
_V4_BLOCK = 256
"""Tokens of a block of DeepSeek-V4, whatever is asked for: its kernels take no other."""
_LARGEST = 1 << 30
_LARGEST_CAPTURE = 1 << 14
_MOST_GIB = 1 << 14
_UNKNOWN = (
    ("cpu_offload_gb", "weights were kept in the host's memory"),
    ("enable_lora", "adapters took memory"),
    ("hf_overrides", "the model's config was overridden"),
    ("enable_sleep_mode", "sleep mode takes another allocator"),
    ("enable_dbo", "batches overlapped"),
    ("enable_eplb", "experts were copied"),
    ("kv_cache_memory_bytes", "the cache's size was given, so it tells nothing of the rest"),
)
_MORE_THAN_ONE = (
    ("decode_context_parallel_size", "the cache was cut by context"),
    ("prefill_context_parallel_size", "prompts were cut by context"),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a start-up printed of one rank, in bytes; None: not printed.

    Attributes:
        stage: pipeline stage whose cache is the smallest that was printed.
        weights: stage and bytes, for each stage that printed them.
        kv_bytes: of the cache in that stage; negative where nothing was left.
        peak_bytes: at the peak of a step.
        graphs_estimate_bytes, graphs_bytes: estimate of the CUDA graphs, and what they took.
        other_bytes: memory outside the allocator.
        card_bytes: a card's memory.
    """

    stage: int
    weights: tuple[tuple[int, int], ...]
    kv_bytes: int
    peak_bytes: int | None
    graphs_estimate_bytes: int | None
    graphs_bytes: int | None
    other_bytes: int | None
    card_bytes: int | None


def missing(log: EngineLog) -> Iterator[str]:
    """What a log lacks to correct anything, one line each."""
    if log.engine != "vllm":
        yield "there is no start-up of vLLM in it" + (f", only of {log.engine}" if log.engine else "")
        return
    if not re.match(r"v?\d+\.\d+", log.engine_version):
        yield "the engine's version is not in it"
    if not log.weights_gib:
        yield "no line says how much memory loading the model took"
    if not log.kv_gib:
        yield "no line says how much is available for the cache: the start-up ended before, or was given its size"


def impossible(log: EngineLog, checkpoint: Checkpoint) -> Iterator[str]:
    """Values that no engine was started with, and figures that no card has, one line each."""
    context = log.max_model_len or _count(log, "max_model_len") or checkpoint.context_length
    if not 0 < context < _LARGEST:
        yield "its context cannot be" if context else "its context is not known"
    if log.max_num_batched_tokens is not None and not 0 < log.max_num_batched_tokens < _LARGEST:
        yield "its batched tokens cannot be"
    if log.utilization is not None and not 0 < log.utilization <= 1:
        yield f"a share of {log.utilization:g} of a card cannot be"
    told = (log.activation_gib, log.non_torch_gib, log.consumed_gib, log.graphs_estimated_gib, log.graphs_actual_gib)
    held = (gib for _, gib in (*log.weights_gib, *log.kv_gib))
    if not all(gib is None or abs(gib) < _MOST_GIB for gib in (*told, *held, log.device_total_gib)):
        yield "it prints more memory than a card can have"


def unknown_to_the_plan(log: EngineLog, checkpoint: Checkpoint) -> Iterator[str]:
    """What the start-up was told to do that a plan's arithmetic does not know of, one line each."""
    for name, why in _UNKNOWN:
        if log.argument(name):
            yield f"--{name.replace('_', '-')}: {why}"
    for name, why in _MORE_THAN_ONE:
        if (_count(log, name) or 1) > 1:
            yield f"--{name.replace('_', '-')}: {why}"
    told = log.argument("speculative_config")
    if told and _speculation(told, checkpoint) is None:
        yield "--speculative-config: it is not the draft that this checkpoint brings"


def layout_of(log: EngineLog) -> Layout:
    """How the start-up spread the model."""
    return Layout(
        tensor=log.tensor_parallel or _count(log, "tensor_parallel_size") or 1,
        pipeline=log.pipeline_parallel or _count(log, "pipeline_parallel_size") or 1,
        data=log.data_parallel or _count(log, "data_parallel_size") or 1,
        expert=log.argument("enable_expert_parallel") is True,
    )


def launch_of(log: EngineLog, checkpoint: Checkpoint, *, where: Place, engine: Accounting) -> Launch:
    """The values that the start-up was given or took by default."""
    batched = log.max_num_batched_tokens or default_batched_tokens(where, engine=engine)
    large = default_batched_tokens(where, engine=engine) > _SMALL_BATCH
    sequences = _count(log, "max_num_seqs") or (_MANY_SEQUENCES if large else _SEQUENCES)
    speculation = _speculation(log.argument("speculative_config"), checkpoint)
    packed = is_packed(checkpoint)
    return Launch(
        layout=where.layout,
        context=log.max_model_len or _count(log, "max_model_len") or checkpoint.context_length,
        batched_tokens=batched,
        sequences=sequences,
        utilization=log.utilization or engine.utilization,
        kv_dtype="fp8" if packed else str(log.argument("kv_cache_dtype") or log.kv_dtype or "auto"),
        block_size=_V4_BLOCK if packed else _count(log, "block_size"),
        capture=_capture(log, sequences, speculation=speculation, blackwell=where.capability[0] == 10),
        speculation=speculation,
    )


def measured(log: EngineLog, layout: Layout) -> Measured:
    """The figures of a log that lacks none of what `missing` asks for."""
    caches = [(_stage(name, layout), gib) for name, gib in log.kv_gib]
    stage, kv_gib = min(caches, key=lambda item: item[1])
    weights: dict[int, float] = {}
    for name, gib in log.weights_gib:
        where = _stage(name, layout)
        weights[where] = max(weights.get(where, 0.0), gib)
    peak, other, estimate = log.activation_gib, log.non_torch_gib, log.graphs_estimated_gib or None
    if log.consumed_gib is not None:
        other = log.consumed_gib - weights.get(stage, max(weights.values()))
        peak = None if peak is None else peak - (estimate or 0.0) if peak >= (estimate or 0.0) else peak
    return Measured(
        stage=stage,
        weights=tuple((where, _bytes(gib)) for where, gib in sorted(weights.items())),
        kv_bytes=_bytes(kv_gib),
        peak_bytes=_optional(peak),
        graphs_estimate_bytes=_optional(estimate),
        graphs_bytes=_optional(log.graphs_actual_gib or None),
        other_bytes=_optional(other),
        card_bytes=_optional(log.device_total_gib),
    )


def _stage(process: str, layout: Layout) -> int:
    """The pipeline stage of a process, from the name that it prints (`Worker_PP1_TP0`, `VllmWorker rank=3`)."""
    if layout.pipeline == 1:
        return 0
    if named := re.search(r"PP(\d{1,4})", process):
        return min(int(named[1]), layout.pipeline - 1)
    ranked = re.search(r"rank[= ]?(\d{1,5})", process)
    return int(ranked[1]) // layout.tensor % layout.pipeline if ranked else 0


def _capture(log: EngineLog, sequences: int, *, speculation: Speculation | None, blackwell: bool) -> int:
    """The largest batch with a CUDA graph."""
    if log.eager or log.argument("enforce_eager") is True:
        return 0
    config = log.argument("compilation_config")
    settings = config if isinstance(config, dict) else {}
    mode = settings.get("cudagraph_mode", log.argument("cudagraph_mode"))
    if isinstance(mode, str) and re.search(r"\bNONE\b", mode.upper()):
        return 0
    for name in ("max_cudagraph_capture_size", "cudagraph_capture_sizes", "cuda_graph_sizes"):
        for given in (settings.get(name), log.argument(name)):
            sizes = [size for item in (given if isinstance(given, list) else [given]) if (size := _counted(item))]
            if sizes:
                return min(max(sizes), _LARGEST_CAPTURE)
    return default_capture(sequences, 1 + (speculation.tokens if speculation else 0), blackwell=blackwell)


def _speculation(told: object, checkpoint: Checkpoint) -> Speculation | None:
    """The checkpoint's own draft, if that is what was asked for."""
    if not isinstance(told, dict) or checkpoint.draft is None:
        return None
    tokens = _counted(told.get("num_speculative_tokens", 1))
    own = str(told.get("method", "")).endswith(checkpoint.draft.method)
    return Speculation(checkpoint.draft.method, tokens) if own and tokens else None


def _count(log: EngineLog, name: str) -> int | None:
    return _counted(log.argument(name))


def _counted(value: object) -> int | None:
    plausible = isinstance(value, int) and not isinstance(value, bool) and 0 < value < _LARGEST
    return value if plausible and isinstance(value, int) else None


def _bytes(gib: float) -> int:
    return round(gib * GIB)


def _optional(gib: float | None) -> int | None:
    return None if gib is None else _bytes(gib)
