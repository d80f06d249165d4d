"""What a rank holds of the weights, for any layout. Pure.

vLLM cuts attention and feed-forward weights over the tensor-parallel ranks, keeps small ones whole on each, and deals
routed experts over tensor × data ranks, cut or whole. The embedding lies on the first pipeline stage and the head on
the last, both cut by vocabulary. A drafting module is loaded only where speculation is on, on the last stage.
"""

from __future__ import annotations

from dataclasses import replace

from casemate.checkpoint.facts import Block, Checkpoint, Compressed, Grouped, Latent
from casemate.plan.accounting import Accounting
from casemate.plan.launch import Launch, Layout, ceil_div, round_up, stages

_SM_90, _SM_100 = 9, 10
_MARLIN_STEPS = (256, 128)
_TRITON_STEPS = (1, 64)
_TRTLLM_STEPS = (256, 256)
"""What kernels round hidden and inner side of MXFP4 experts up to (`quantization/mxfp4.py`, now `oracle/mxfp4.py`)."""
_TRITON_FIRST, _TRTLLM_FIRST = (0, 26), (0, 12)
"""Wheels have Triton's kernels since 0.12, but a 120B model on 0.14.1 held 2.2 GiB more than they lay out (vllm#33155);
0.26 holds what they do (20B: 13.03 GiB measured)."""
_WHOLE_TOWERS = frozenset({"pixtral", "mistral3"})
_TIED = 32
_ROPE_NUMBER_BYTES = 2
_ABSORBED_HEAD = 2 * 128
"""Numbers of key and value that each head of a latent unfolds to; kept once more in bf16 for decoding."""
_V4_ROPE_NUMBER_BYTES = 4
_V4_STREAMS = 4
_V4_TOP_K = 512
_V4_LOADED_BYTES = 64 << 20
"""Sinks, padding and allocator rounding of DeepSeek-V4, from the recorded 73.88 (TP2) and 74.85 GiB (PP2)."""


def stage_bytes(checkpoint: Checkpoint, launch: Launch, *, engine: Accounting | None = None) -> tuple[int, ...]:
    """Weights of one rank in each pipeline stage, with the buffers that the model allocates as it loads.

    `engine` tells which kernels MXFP4 experts are laid out for; without it, those that pad them most.
    """
    layout = launch.layout
    ranges = stages(len(checkpoint.layers), layout.pipeline)
    found = []
    for stage in ranges:
        blocks = [checkpoint.layers[index] for index in stage]
        blocks.append(_tower(checkpoint))
        if stage is ranges[0]:
            blocks.append(checkpoint.embedding)
        if stage is ranges[-1]:
            blocks.append(checkpoint.head)
            # A tied head (a norm is all it has) is the embedding once more where the two lie on different stages.
            if layout.pipeline > 1 and checkpoint.head.total_bytes * _TIED < checkpoint.embedding.total_bytes:
                blocks.append(checkpoint.embedding)
            if launch.speculation and checkpoint.draft:
                blocks.extend(checkpoint.draft.blocks)
        padding = _expert_padding(checkpoint, layout, engine=engine)
        held = sum(rank_bytes(block, layout, experts=checkpoint.experts, padding=padding) for block in blocks)
        found.append(held + _buffers(checkpoint, launch, last=stage is ranges[-1]))
    return tuple(found)


def rank_bytes(block: Block, layout: Layout, *, experts: int, padding: float = 1.0) -> int:
    """What one rank holds of a block; of experts the rank that got one more than others."""
    ranks = layout.tensor * layout.data
    if layout.expert and experts:
        share = block.expert_bytes * ceil_div(experts, ranks) / experts
    else:
        share = block.expert_bytes / ranks
    return int(ceil_div(block.sharded_bytes, layout.tensor) + block.replicated_bytes + share * padding)


def expert_side(checkpoint: Checkpoint) -> int:
    """Width of the activation inside one routed expert, from what its three matrices hold; 0 without experts.

    `intermediate_size` will not do: models with a few dense layers have wider ones there.
    """
    numbers = max((block.expert_parameters for block in checkpoint.layers), default=0)
    if not checkpoint.experts:
        return 0
    return round(numbers / (checkpoint.experts * 3 * checkpoint.hidden_size)) or checkpoint.intermediate_size


def _tower(checkpoint: Checkpoint) -> Block:
    """The towers, which every rank has a slice of (`mm_encoder_tp_mode`: weights); until 0.25 Pixtral's is whole."""
    tower = checkpoint.vision
    if checkpoint.model_type in _WHOLE_TOWERS:
        return tower
    return replace(tower, sharded_bytes=tower.sharded_bytes + tower.replicated_bytes, replicated_bytes=0)


def _expert_padding(checkpoint: Checkpoint, layout: Layout, *, engine: Accounting | None) -> float:
    """How much larger MXFP4 experts get in the kernels' own layout: for Marlin 2880 becomes 3072 × 2944."""
    if "fp4" not in (checkpoint.expert_dtype or checkpoint.quantization) or not checkpoint.experts:
        return 1.0
    hidden_step, inner_step = _fp4_steps(engine)
    cut = 1 if layout.expert else layout.tensor * layout.data
    side = expert_side(checkpoint)
    wide = round_up(checkpoint.hidden_size, hidden_step) / checkpoint.hidden_size
    return wide * round_up(ceil_div(side, cut), inner_step) * cut / max(side, 1)


def _fp4_steps(engine: Accounting | None) -> tuple[int, int]:
    """By the backend that the engine picks itself: Triton on sm_90, FlashInfer's TRTLLM on sm_100, else Marlin."""
    major = engine.capability[0] if engine is not None and engine.capability is not None else 0
    if engine is not None and major == _SM_90 and engine.version >= _TRITON_FIRST:
        return _TRITON_STEPS
    if engine is not None and major == _SM_100 and engine.version >= _TRTLLM_FIRST:
        return _TRTLLM_STEPS
    return _MARLIN_STEPS


def _buffers(checkpoint: Checkpoint, launch: Launch, *, last: bool) -> int:
    """Tables that loading fills beside the weights: rotary angles by position, DeepSeek-V4's index and hidden rows."""
    rope = absorbed = 0
    for cache in checkpoint.caches:
        match cache:
            case Compressed():
                # Two tables in float32: layers of the window alone turn by another base.
                table = 2 * checkpoint.context_length * cache.rope_size * _V4_ROPE_NUMBER_BYTES
                rows = launch.batched_tokens * _V4_TOP_K * 4
                if last:
                    rows += launch.batched_tokens * _V4_STREAMS * checkpoint.hidden_size * 2
                return table + rows + _V4_LOADED_BYTES
            case Latent():
                rope = max(rope, cache.rope_size)
                heads = ceil_div(checkpoint.attention_heads, launch.layout.tensor)
                absorbed += len(cache.layers) // launch.layout.pipeline * heads * _ABSORBED_HEAD * cache.latent_size * 2
            case Grouped():
                rope = max(rope, cache.key_size)
            case _:
                pass
    return checkpoint.context_length * rope * _ROPE_NUMBER_BYTES + absorbed
