"""What an engine said about itself while it started and ran, as one value. Pure: text in, `EngineLog` out.

The sentences are those that vLLM 0.6 to 0.33 and llama.cpp print; they changed over time, and each form is read.
GiB is 2^30 bytes; vLLM up to 0.8 wrote "GB" for the same unit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_GIB = 1 << 30
_PRINTED_GIB = 0.005
"""Half of the last decimal in which the engine prints GiB."""
_SMALL_PART = 0.05


@dataclass(frozen=True, slots=True)
class Shortage:
    """The engine's refusal of a context: it needs more KV cache than there is.

    `estimated_max_len` is the longest context that it says would fit; None where it names none.
    """

    max_model_len: int
    need_gib: float
    available_gib: float
    estimated_max_len: int | None = None

    @property
    def slope_bytes_per_token(self) -> float | None:
        """Bytes that one more token of context costs, from the two lengths in the sentence; None without the second.

        The need of a model with windows or compressed layers is affine in the context, never proportional to it.
        """
        if self.estimated_max_len is None or self.estimated_max_len >= self.max_model_len:
            return None
        return (self.need_gib - self.available_gib) * _GIB / (self.max_model_len - self.estimated_max_len)

    @property
    def fixed_gib(self) -> float | None:
        """What the first token costs: the part of the need that no shorter context lowers; at least 0."""
        slope = self.slope_bytes_per_token
        return None if slope is None else max(0.0, self.need_gib - slope * self.max_model_len / _GIB)

    @property
    def is_proportional(self) -> bool | None:
        """Whether the need is in proportion to the context, as far as the printed figures (two decimals) can tell."""
        fixed, grows = self.fixed_gib, self.need_gib - self.available_gib
        if fixed is None or grows <= 0:
            return None
        unsure = 2 * _PRINTED_GIB / grows * self.need_gib
        return fixed <= _SMALL_PART * self.need_gib + unsure

    def need_at_gib(self, tokens: int) -> float | None:
        """The need for a context of `tokens`, by the same line."""
        slope = self.slope_bytes_per_token
        return None if slope is None else self.need_gib - slope * (self.max_model_len - tokens) / _GIB


@dataclass(frozen=True, slots=True)
class Throughput:
    """One of the lines that a running engine prints every ten seconds. Shares are 0 to 1; None: not printed."""

    line: int
    prompt_tokens_per_s: float
    generation_tokens_per_s: float
    running: int
    waiting: int
    kv_usage: float | None = None
    prefix_hit_rate: float | None = None
    preemptions: int = 0


@dataclass(frozen=True, slots=True)
class LlamaMemory:
    """Memory that llama.cpp reported, in MiB: per device or kind; `kv` and `recurrent` are sums over devices.

    `kv_mib` grows with the context; `recurrent_mib` (state of linear-attention layers) does not.
    """

    model_mib: tuple[tuple[str, float], ...] = ()
    kv_mib: float | None = None
    kv_cells: int | None = None
    kv_layers: int | None = None
    recurrent_mib: float | None = None
    compute_mib: tuple[tuple[str, float], ...] = ()

    @property
    def cache_mib(self) -> float | None:
        """Growing and fixed part together; None where neither was printed."""
        parts = [part for part in (self.kv_mib, self.recurrent_mib) if part is not None]
        return sum(parts) if parts else None


@dataclass(frozen=True, slots=True)
class EngineLog:
    """The facts of the last launch in a log. None, or an empty tuple: not printed.

    Attributes:
        engine: `vllm`, `llama.cpp`, or empty.
        engine_version: as printed (`0.26.0`).
        arguments: what differs from the engine's defaults, secrets masked.
        architecture: the class the engine resolved the model to.
        quantization, dtype, kv_dtype: as the engine resolved them.
        tensor_parallel, pipeline_parallel, data_parallel: as the engine resolved them.
        weights_gib: process and GiB of weights on it.
        kv_gib: process and GiB it has for the KV cache.
        kv_tokens: tokens that the engine says the cache holds. One per pipeline stage.
        full_length_requests: requests of `max_model_len` that fit, by stage. This, not `kv_tokens`, is the capacity.
        shortages: refusals of the context.
        device_total_gib, device_free_gib: of a card, when the engine started.
        requested_gib: the card's memory times `utilization`.
        init_s: seconds from profiling to the end of the warm-up; `load_s`: of loading the weights.
        eager_line: where the engine says that graphs and compilation are off; 0: it does not.
        samples: throughput lines while something ran, thinned evenly when there are many.
        idle_samples: such lines while nothing ran.
        ready: the server said that it takes requests.
    """

    engine: str = ""
    engine_version: str = ""
    model: str = ""
    arguments: tuple[tuple[str, Any], ...] = ()
    architecture: str = ""
    quantization: str = ""
    dtype: str = ""
    kv_dtype: str = ""
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    data_parallel: int | None = None
    max_model_len: int | None = None
    max_num_batched_tokens: int | None = None
    utilization: float | None = None
    eager: bool | None = None
    eager_line: int = 0
    weights_gib: tuple[tuple[str, float], ...] = ()
    kv_gib: tuple[tuple[str, float], ...] = ()
    kv_tokens: tuple[int, ...] = ()
    full_length_requests: tuple[float, ...] = ()
    gpu_blocks: int | None = None
    graphs_estimated_gib: float | None = None
    graphs_actual_gib: float | None = None
    graphs_s: float | None = None
    activation_gib: float | None = None
    non_torch_gib: float | None = None
    consumed_gib: float | None = None
    device_total_gib: float | None = None
    device_free_gib: float | None = None
    requested_gib: float | None = None
    init_s: float | None = None
    load_s: float | None = None
    compile_s: float | None = None
    shortages: tuple[Shortage, ...] = ()
    attention_backend: str = ""
    moe_backend: str = ""
    all_reduce: str = ""
    nccl_version: str = ""
    samples: tuple[Throughput, ...] = ()
    idle_samples: int = 0
    llama: LlamaMemory = field(default_factory=LlamaMemory)
    ready: bool = False

    @property
    def need_gib(self) -> float | None:
        """What the last refused context needs."""
        return self.shortages[-1].need_gib if self.shortages else None

    @property
    def available_gib(self) -> float | None:
        """What there was for it."""
        return self.shortages[-1].available_gib if self.shortages else None

    @property
    def estimated_max_len(self) -> int | None:
        """The longest context that the engine says would fit."""
        return self.shortages[-1].estimated_max_len if self.shortages else None

    def argument(self, name: str) -> Any:
        """A non-default argument's value; None where it was not given."""
        return dict(self.arguments).get(name)
