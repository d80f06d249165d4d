"""The launch values that memory and speed depend on: how the model is spread, and how much it takes at once. Values."""

from __future__ import annotations

from dataclasses import dataclass

from casemate.plan.decision import Speculation


@dataclass(frozen=True, slots=True)
class Layout:
    """How ranks share a model: `tensor` × `pipeline` cards hold one copy, `data` copies of the attention run beside it.

    With `expert` the routed experts are dealt out whole, otherwise each of them is cut; both over tensor × data ranks.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: bool = False

    @property
    def cards(self) -> int:
        """Cards that it takes."""
        return self.tensor * self.pipeline * self.data


@dataclass(frozen=True, slots=True)
class Launch:
    """What an engine is started with, as far as memory depends on it.

    `context` is the longest request in tokens, `batched_tokens` the most tokens of one step, `sequences` the most
    requests of one step, `capture` the largest batch with a CUDA graph (0: none), `utilization` the share of a card's
    memory. `kv_dtype` is the engine's word (`auto`, `fp8`); `block_size` None leaves it to the engine.
    """

    layout: Layout
    context: int
    batched_tokens: int
    sequences: int
    utilization: float
    kv_dtype: str = "auto"
    block_size: int | None = None
    capture: int = 0
    speculation: Speculation | None = None

    @property
    def decode_tokens(self) -> int:
        """Tokens that one request adds to a decode step: one, and what speculation proposes."""
        return 1 + (self.speculation.tokens if self.speculation else 0)


def ceil_div(dividend: int, divisor: int) -> int:
    """The quotient rounded up."""
    return -(-dividend // divisor)


def round_up(value: int, step: int) -> int:
    """The next multiple of `step`, `value` itself where it is one."""
    return ceil_div(value, step) * step


def stages(layers: int, pipeline: int) -> tuple[range, ...]:
    """The layers of each pipeline stage by vLLM's rule (`get_pp_indices`): left-overs go to the stages before the last.

    43 layers in two stages are 22 and 21; 61 in four are 15, 15, 16, 15.
    """
    sizes = [layers // pipeline] * pipeline
    for index in range(2, layers % pipeline + 2):
        sizes[-index] += 1
    starts = [sum(sizes[:stage]) for stage in range(pipeline)]
    return tuple(range(start, start + size) for start, size in zip(starts, sizes, strict=True))


def capture_sizes(largest: int) -> tuple[int, ...]:
    """Batch sizes that vLLM captures a CUDA graph for: 1, 2, 4, every 8th below 256, every 16th from there on."""
    small = [size for size in (1, 2, 4) if size <= largest]
    return tuple(small + list(range(8, min(largest + 1, 256), 8)) + list(range(256, largest + 1, 16)))


def default_capture(sequences: int, decode_tokens: int, *, blackwell: bool = False) -> int:
    """Largest batch that vLLM captures by itself: twice the widest decode step, at most 512 (1024 on sm_100)."""
    return min(sequences * decode_tokens * 2, 1024 if blackwell else 512)
