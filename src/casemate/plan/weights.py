"""What a rank holds of the weights, for any layout. Pure.

vLLM cuts attention and feed-forward weights over the tensor-parallel ranks, keeps small ones whole on each, and deals
routed experts over tensor × data ranks, cut or whole. The embedding lies on the first pipeline stage and the head on
the last, both cut by vocabulary. A drafting module is loaded only where speculation is on, on the last stage.
"""

from __future__ import annotations

from casemate.checkpoint.facts import Block, Checkpoint, Compressed, Grouped, Latent
from casemate.plan.launch import Launch, Layout, ceil_div, round_up, stages

_FP4_HIDDEN_STEP = 256
_FP4_FEED_FORWARD_STEP = 128
"""What the Marlin and Humming kernels round the sides of MXFP4 experts up to (`oracle/mxfp4.py`)."""
_TIED = 32
_ROPE_NUMBER_BYTES = 2
_ABSORBED_HEAD = 2 * 128
"""Numbers of key and value that each head of a latent unfolds to; kept once more in bf16 for decoding."""
_V4_ROPE_NUMBER_BYTES = 4
_V4_STREAMS = 4
_V4_TOP_K = 512
_V4_LOADED_BYTES = 64 << 20
"""Sinks, padding and allocator rounding of DeepSeek-V4, from the recorded 73.88 (TP2) and 74.85 GiB (PP2)."""


def stage_bytes(checkpoint: Checkpoint, launch: Launch) -> tuple[int, ...]:
    """Weights of one rank in each pipeline stage, with the buffers that the model allocates as it loads."""
    layout = launch.layout
    ranges = stages(len(checkpoint.layers), layout.pipeline)
    found = []
    for stage in ranges:
        blocks = [checkpoint.layers[index] for index in stage]
        blocks.append(checkpoint.vision)
        if stage is ranges[0]:
            blocks.append(checkpoint.embedding)
        if stage is ranges[-1]:
            blocks.append(checkpoint.head)
            # A tied head (a norm is all it has) is the embedding once more where the two lie on different stages.
            if layout.pipeline > 1 and checkpoint.head.total_bytes * _TIED < checkpoint.embedding.total_bytes:
                blocks.append(checkpoint.embedding)
            if launch.speculation and checkpoint.draft:
                blocks.extend(checkpoint.draft.blocks)
        padding = _expert_padding(checkpoint, layout)
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


def _expert_padding(checkpoint: Checkpoint, layout: Layout) -> float:
    """How much larger MXFP4 experts get in the kernels' own layout: 2880 becomes 3072 × 2944."""
    if "fp4" not in (checkpoint.expert_dtype or checkpoint.quantization) or not checkpoint.experts:
        return 1.0
    cut = 1 if layout.expert else layout.tensor * layout.data
    side = expert_side(checkpoint)
    wide = round_up(checkpoint.hidden_size, _FP4_HIDDEN_STEP) / checkpoint.hidden_size
    return wide * round_up(ceil_div(side, cut), _FP4_FEED_FORWARD_STEP) * cut / max(side, 1)


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
