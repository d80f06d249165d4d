"""What a plan is about and what comes out of it: Intent in, a plan or a Refusal out."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

GIB = 1 << 30


class Purpose(StrEnum):
    """What the model is for; it moves the balance between latency and throughput, never the answer."""

    CHAT = "chat"
    AUDIT = "audit"
    BATCH = "batch"


@dataclass(frozen=True, slots=True)
class Intent:
    """What the user wants: context in tokens per request, requests at once, threads (0: all cores).

    `context` 0 lets a plan for cards choose the longest that serves `concurrency` requests. `memory_cap_bytes` plans as
    if each card had no more than that. `nodes` counts hosts alike, joined by Ray.
    """

    context: int = 4096
    concurrency: int = 2
    threads: int = 0
    purpose: Purpose = Purpose.CHAT
    memory_cap_bytes: int | None = None
    nodes: int = 1


@dataclass(frozen=True, slots=True)
class CpuPlan:
    """A launch decision for llama.cpp on the CPU. `reasons` explains each value by its own field name."""

    engine: str
    model: str
    path: str
    context: int
    slots: int
    threads: int
    memory_bytes: int
    reasons: tuple[tuple[str, str], ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Speculation:
    """Speculative decoding: the engine's method and how many tokens it proposes at once."""

    method: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Speed:
    """Predicted speed. A figure may be off by `error` (0.25: a quarter) in either direction, the TTFT by `ttft_error`.

    `ttft_s` for a prompt of `prompt_tokens` alone on the engine, `tpot_s` between two tokens of one stream when
    `concurrency` streams run, `output_tokens_per_s` all streams together. `calibrated` names the measurement behind it.
    Of the `asked` streams `concurrency` run at once; `limited_by` names what holds others (`max_num_seqs`, `cache`).
    `tpot_loaded_s` and `sustained_tokens_per_s` are those of a closed loop, in which a new prompt follows each answer.
    `tokens_per_step` is what a step yields a stream: above one with speculation, by an assumption.
    """

    prompt_tokens: int
    concurrency: int
    ttft_s: float
    tpot_s: float
    output_tokens_per_s: float
    error: float
    calibrated: str = ""
    terms: tuple[tuple[str, float], ...] = ()
    ttft_error: float = 0.0
    asked: int = 0
    limited_by: str = ""
    tpot_loaded_s: float = 0.0
    sustained_tokens_per_s: float = 0.0
    tokens_per_step: float = 1.0


@dataclass(frozen=True, slots=True)
class CardsPlan:
    """A launch decision for vLLM on cards. Flat values; `reasons` explains each by its own field name.

    GiB are per card (2**30 bytes): `weights_gib` of the fullest rank, `kv_gib` what is left for the cache,
    `need_gib` what one request of `max_model_len` tokens takes of it as the engine prints it; `full_length_requests` is
    their ratio. `start_gib` is what start-up demands of the cache for one such request.
    `cards` are the indices to use, in order. `notes` are warnings that belong to no single value.
    """

    engine: str
    engine_version: str
    model: str
    path: str
    cards: tuple[int, ...]
    nodes: int
    tensor_parallel: int
    pipeline_parallel: int
    data_parallel: int
    expert_parallel: bool
    max_model_len: int
    max_num_batched_tokens: int
    max_num_seqs: int
    gpu_memory_utilization: float
    kv_cache_dtype: str
    block_size: int | None
    max_cudagraph_capture_size: int
    enforce_eager: bool
    moe_backend: str
    speculation: Speculation | None
    weights_gib: float
    activation_gib: float
    graphs_gib: float
    other_gib: float
    kv_gib: float
    need_gib: float
    full_length_requests: float
    start_gib: float = 0.0
    speed: Speed | None = None
    reasons: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


Plan = CpuPlan | CardsPlan


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why it cannot run here, every reason, and what would make it fit."""

    model: str
    reasons: tuple[str, ...]
    remedy: str
