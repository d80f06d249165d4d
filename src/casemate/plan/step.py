"""The seconds of one engine step: bytes read, operations, all-reduces, launches of kernels. Pure arithmetic.

A step takes what its slowest resource takes (S. Williams et al., Roofline, CACM 2009), and beside it what nothing
hides: the all-reduces, the floor of small kernels, the scheduling. Constants were fitted to half of the public
measurements (`tests/plan/speeds.tsv`) and to a recorded run of DeepSeek-V4 on two H200, whose kernels are its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from casemate.checkpoint.facts import Block, Checkpoint, Compressed, Grouped, Latent, Recurrent
from casemate.plan.launch import Launch
from casemate.plan.pages import is_packed
from casemate.plan.rates import Rates
from casemate.plan.weights import rank_bytes

_DENSE_SHARE, _DENSE_SHARE_FP8, _ATTENTION_SHARE = 0.62, 0.5, 0.5
_EXPERT_SHARE, _EXPERT_SHARE_V4 = 0.3, 0.08
"""Of the nominal rate, what prompts reach: 0.62 dense bf16 on H100 and A100. FP4 experts of DeepSeek-V4 are computed in
bf16: recorded 2,048-token steps on two H200 took 0.195 s, 0.08 of the rate; eight H20 read a public 128K prompt at 0.1
of theirs (vllm#42284)."""
_UNPACKING_SHARE = 0.8
"""Of that, where 4-bit weights are widened to bf16 on the way (Marlin)."""
_NARROW, _FOUR_BIT = 1.5, 0.75
"""Bytes a number below which weights are 8 or 4 bits wide; scales are counted in."""
_WEIGHT_ONLY = ("gptq", "awq")
_LAYER_S, _LAYER_EXPERTS_S, _LAYER_V4_S = 25e-6, 70e-6, 95e-6
"""What one layer's small kernels take in a CUDA graph, each of 2 to 3 µs: about 10, 25 and (recorded) 40 of them."""
_LAYER_PRODUCTS_S = 40e-6
"""The least that one layer's matrix products take, however little they read: 0.6B on an H100 needs 2.4 ms a token."""
_UNPACKING_READ = 0.6
"""Of the reading rate, what 4-bit dense weights reach: on A100 (vLLM) and on H20 alike, 14B to 72B in public runs."""
_HOST_LAYER_S, _HOST_LAYER_EXPERTS_S, _HOST_LAYER_V4_S = 150e-6, 250e-6, 2.85e-3
_EAGER = 3.0
"""Without a graph the host starts each kernel: seconds a layer of compiled code; uncompiled, so much more."""
_STEP_S = 0.6e-3
"""Scheduling and sampling of a step, as far as asynchronous scheduling does not hide it."""
_ALL_REDUCES = 2
_UNFOLDED_HEAD = 160
"""Mean width of query and value heads that a latent unfolds to in a prompt (DeepSeek-V3: 192 and 128)."""
_V4_TOP_K = 512
"""Compressed entries that its sparse attention reads (`index_topk`)."""
_TIED = 32
"""A head so many times smaller than the embedding has no weight of its own."""


@dataclass(frozen=True, slots=True)
class Step:
    """One engine step: `tokens` in all, `sequences` with caches of `context` tokens, each token meeting `attended`.

    So many `replicas` of the attention (data parallel) take such a step together.
    """

    tokens: int
    sequences: int
    context: int
    attended: float
    captured: bool
    replicas: int = 1


@dataclass(frozen=True, slots=True)
class Engine:
    """What takes the steps: a model, how it was started, what its cards can do."""

    checkpoint: Checkpoint
    launch: Launch
    rates: Rates


def terms(engine: Engine, step: Step) -> dict[str, float]:
    """Seconds of a step by what takes them; their sum is the step's. Stages work one after the other on one batch."""
    memory_s, arithmetic_s = _read_s(engine, step), _arithmetic_s(engine, step)
    all_reduce_s = _link_s(engine, step)
    floor_s = len(engine.checkpoint.layers) * _floor_s(engine.checkpoint)
    busy_s = max(memory_s, arithmetic_s) + all_reduce_s + floor_s
    # The host starts kernels ahead of a busy card; only where the card waits for it does starting cost time.
    host_s = 0.0 if step.captured else _host_s(engine.checkpoint, engine.launch)
    return {
        "memory_s": memory_s if memory_s >= arithmetic_s else 0.0,
        "arithmetic_s": arithmetic_s if arithmetic_s > memory_s else 0.0,
        "all_reduce_s": all_reduce_s,
        "launch_s": floor_s + max(host_s - busy_s, 0.0),
        "step_s": _STEP_S,
    }


def draft_s(engine: Engine, *, streams: int) -> float:
    """Seconds that proposing tokens adds to a step: the draft's blocks and the head, once a token or once a block."""
    checkpoint, speculation = engine.checkpoint, engine.launch.speculation
    draft = checkpoint.draft
    if draft is None or speculation is None:
        return 0.0
    touched = _touched(checkpoint, engine.launch, tokens=streams)
    read_s = sum(_block_s(block, engine, touched=touched) for block in (*draft.blocks, _head(checkpoint)))
    floor_s = len(draft.blocks) * _floor_s(checkpoint)
    passes = speculation.tokens if speculation.method != "dspark" else 1
    return passes * (read_s + floor_s)


def _read_s(engine: Engine, step: Step) -> float:
    """Reading weights and cache on one rank; experts only as far as some token chose them."""
    checkpoint, launch = engine.checkpoint, engine.launch
    touched = _touched(checkpoint, launch, tokens=step.tokens * step.replicas)
    blocks = (*checkpoint.layers, _head(checkpoint))
    weights_s = sum(_block_s(block, engine, touched=touched) for block in blocks)
    cache = step.sequences * _cache_bytes(checkpoint, launch, context=step.context)
    return max(weights_s, len(checkpoint.layers) * _LAYER_PRODUCTS_S) + cache / engine.rates.reading_bytes_per_s


def _block_s(block: Block, engine: Engine, *, touched: float) -> float:
    layout, rates = engine.launch.layout, engine.rates
    dense = rank_bytes(replace(block, expert_bytes=0), layout, experts=0)
    experts = block.expert_bytes / (layout.tensor * layout.data) * touched
    rate = rates.reading_bytes_per_s * (_UNPACKING_READ if _is_four_bit(block) else 1.0)
    return dense / rate + experts / rates.reading_experts_bytes_per_s


def _is_four_bit(block: Block) -> bool:
    return block.sharded_bytes + block.replicated_bytes < block.parameters * _FOUR_BIT


def _head(checkpoint: Checkpoint) -> Block:
    """What the logits are computed from; a tied head is the embedding."""
    tied = checkpoint.head.total_bytes * _TIED < checkpoint.embedding.total_bytes
    return checkpoint.embedding if tied else checkpoint.head


def _touched(checkpoint: Checkpoint, launch: Launch, *, tokens: int) -> float:
    """Share of a rank's experts that a step reads. Whole experts fall on ranks unevenly; the fullest decides."""
    if not checkpoint.experts:
        return 1.0
    share = 1 - (1 - checkpoint.experts_per_token / checkpoint.experts) ** tokens
    ranks = launch.layout.tensor * launch.layout.data
    if not launch.layout.expert or ranks == 1:
        return share
    own = checkpoint.experts / ranks
    mean = share * own
    return min(mean + math.sqrt(mean * (1 - 1 / ranks) * (1 - share) * math.log(ranks)), own) / own


def _cache_bytes(checkpoint: Checkpoint, launch: Launch, *, context: int) -> float:
    """What one sequence's attention reads of its cache in one step, on one rank."""
    number = 1 if launch.kv_dtype.startswith("fp8") else 2
    tensor, read = launch.layout.tensor, 0.0
    for cache in checkpoint.caches:
        layers = len(cache.layers)
        match cache:
            case Grouped():
                seen = min(context, cache.window or context)
                heads = max(cache.kv_heads / tensor, 1)
                read += layers * seen * heads * (cache.key_size + cache.value_size) * number
            case Latent():
                read += layers * context * (cache.latent_size + cache.rope_size + cache.index_size) * number
            case Compressed():
                entries = context / cache.ratio if cache.ratio else 0
                kept = cache.window + min(entries, _V4_TOP_K)
                read += layers * (kept * cache.head_size + entries * cache.index_size)
            case Recurrent():
                read += layers * 2 * (cache.state_numbers + cache.convolution_numbers) * 2 / tensor
    return read


def _arithmetic_s(engine: Engine, step: Step) -> float:
    """Seconds of the matrix products and of attention on one rank. The head works for the last token of each alone."""
    checkpoint, rates, tensor = engine.checkpoint, engine.rates, engine.launch.layout.tensor
    blocks = checkpoint.layers
    dense = 2 * step.tokens * sum(block.parameters for block in blocks)
    dense += 2 * min(step.sequences, step.tokens) * _head(checkpoint).parameters
    chosen = checkpoint.experts_per_token / checkpoint.experts if checkpoint.experts else 0
    experts = 2 * step.tokens * step.replicas * sum(block.expert_parameters for block in blocks) * chosen
    ranks = tensor * engine.launch.layout.data
    attention = 4 * step.tokens * _attended(checkpoint, step.attended)
    return (
        dense / tensor / _dense_rate(checkpoint, rates)
        + experts / ranks / _expert_rate(checkpoint, rates)
        + attention / tensor / (rates.bf16_flops * _ATTENTION_SHARE)
    )


def _dense_rate(checkpoint: Checkpoint, rates: Rates) -> float:
    held = sum(block.sharded_bytes + block.replicated_bytes for block in checkpoint.layers)
    width = held / max(sum(block.parameters for block in checkpoint.layers), 1)
    if width < _FOUR_BIT:
        return rates.bf16_flops * _DENSE_SHARE * _UNPACKING_SHARE
    if width < _NARROW and rates.fp8_flops and checkpoint.quantization not in _WEIGHT_ONLY:
        return rates.fp8_flops * _DENSE_SHARE_FP8
    return rates.bf16_flops * _DENSE_SHARE


def _expert_rate(checkpoint: Checkpoint, rates: Rates) -> float:
    if is_packed(checkpoint):
        return rates.bf16_flops * _EXPERT_SHARE_V4
    held = sum(block.expert_bytes for block in checkpoint.layers)
    width = held / max(sum(block.expert_parameters for block in checkpoint.layers), 1)
    narrow = _FOUR_BIT <= width < _NARROW and rates.fp8_flops > 0
    return (rates.fp8_flops if narrow else rates.bf16_flops) * _EXPERT_SHARE


def _attended(checkpoint: Checkpoint, attended: float) -> float:
    """Numbers of all heads that a token meets in the tokens before it, summed over the layers."""
    numbers = 0.0
    for cache in checkpoint.caches:
        match cache:
            case Grouped():
                seen = min(attended, cache.window or attended)
                numbers += len(cache.layers) * seen * checkpoint.attention_heads * cache.key_size
            case Latent():
                numbers += len(cache.layers) * attended * checkpoint.attention_heads * _UNFOLDED_HEAD
            case Compressed(ratio=ratio, window=window):
                kept = min(window + (_V4_TOP_K if ratio else 0), attended)
                numbers += len(cache.layers) * kept * checkpoint.hidden_size / 2
            case Recurrent():
                pass
    return numbers


def _link_s(engine: Engine, step: Step) -> float:
    """Two all-reduces a layer over the ranks, and a hand-over between stages.

    Replicas that share experts gather all rows before and scatter the sums behind: as much as one all-reduce.
    """
    checkpoint, rates, layout = engine.checkpoint, engine.rates, engine.launch.layout
    row_bytes = step.tokens * checkpoint.hidden_size * 2
    handed_s = (layout.pipeline - 1) * (rates.link_s + row_bytes / rates.link_bytes_per_s)
    layers = len(checkpoint.layers)
    taken_s = _ALL_REDUCES * layers * _all_reduce_s(rates, ranks=layout.tensor, size_bytes=row_bytes)
    if layout.data > 1 and checkpoint.experts:
        ranks = layout.tensor * layout.data
        taken_s += layers * _all_reduce_s(rates, ranks=ranks, size_bytes=row_bytes * step.replicas)
    return handed_s + taken_s


def _all_reduce_s(rates: Rates, *, ranks: int, size_bytes: float) -> float:
    if ranks == 1:
        return 0.0
    moved_s = 2 * (ranks - 1) / ranks * size_bytes / rates.link_bytes_per_s
    return rates.link_s + (ranks - 2) * rates.link_rank_s + moved_s


def _host_s(checkpoint: Checkpoint, launch: Launch) -> float:
    layer_s = _by_kind(checkpoint, (_HOST_LAYER_S, _HOST_LAYER_EXPERTS_S, _HOST_LAYER_V4_S))
    eager = 1.0 if launch.capture or is_packed(checkpoint) else _EAGER
    return len(checkpoint.layers) * layer_s * eager


def _floor_s(checkpoint: Checkpoint) -> float:
    return _by_kind(checkpoint, (_LAYER_S, _LAYER_EXPERTS_S, _LAYER_V4_S))


def _by_kind(checkpoint: Checkpoint, figures: tuple[float, float, float]) -> float:
    """The one of three figures that holds: for dense models, for experts, for DeepSeek-V4."""
    dense, experts, packed = figures
    if is_packed(checkpoint):
        return packed
    return experts if checkpoint.experts else dense
