"""What a rank needs beside weights and cache: the peak of a step, CUDA graphs, memory outside the allocator. Pure.

The engine measures its peak with one step of `batched_tokens` tokens and a sampler run of `sequences` rows, one after
the other, so the largest counts (`profile_run` in `v1/worker/gpu_model_runner.py`). Constants are fitted to logs that
print "Actual usage is … for peak activation, … for non-torch memory, and … for CUDAGraph memory"; each names its logs.
"""

from __future__ import annotations

from casemate.checkpoint.facts import Checkpoint, Compressed, Latent
from casemate.doctor.machine import Card
from casemate.plan.accounting import Accounting
from casemate.plan.decision import GIB
from casemate.plan.launch import Launch, capture_sizes
from casemate.plan.pages import is_packed
from casemate.plan.weights import expert_side

_RESERVED_BYTES = int(0.45 * GIB)
_RESERVED_SHARE = 0.0011
"""What the driver keeps of a card: nvidia-smi's total less the engine's (recorded H200 140.40 / 139.80 GiB; public logs
print 79.19 for H100's 79.65, 44.42 for L40S' 44.99, 95.01 for RTX PRO 6000's 95.59)."""
_CONTEXT_BYTES = int(0.6 * GIB)
_LINKED_BYTES = int(2.0 * GIB)
"""Used before the engine measures: a CUDA context, and NCCL over NVLink (recorded: 1.94 GiB of 139.8)."""
_ALONE_OTHER_BYTES = int(0.15 * GIB)
_RANKS_OTHER_BYTES = int(0.25 * GIB)
_MULTICAST_BYTES = int(1.8 * GIB)
_CONSUMED_BYTES = int(0.5 * GIB)
"""Outside the allocator after the step: 0.07 to 0.26 GiB in the logs, recorded 0.16 with two ranks and multicast off.

With NVSwitch multicast NCCL takes buffers in that step (logs of four and eight H200 or B200, 0.18 to 0.20: 1.7 to 2.2
GiB more than the same models alone). Since 0.27 all that the step leaves behind counts (0.5 GiB on four PCIe cards).
"""

_SM_90, _SM_100 = 9, 10
_STREAMS = 5
"""Rows of hidden size alive at the peak of a dense layer: residual, input, norm, output and its sum."""
_V4_STREAMS = 4
_V4_PEAK_ROWS = 4
_V4_LOGITS_BYTES = 512 << 20
"""The indexer's scores (`VLLM_SPARSE_INDEXER_MAX_LOGITS_MB`)."""
_V4_GATHERS = 4
_V4_INDEX_ROWS = 40
_V4_SMALL_BYTES = 44 << 10
_PICTURES_BYTES = int(2.2 * GIB)
"""The largest picture or film through the encoder of a model that takes them: 1.9 to 3.5 GiB in logs of four models."""
_UNFOLDED_TOKENS = 1 << 16
_UNFOLDED_BYTES = 256 * 2
"""Latents are unfolded to keys and values of whole heads for prompts, so many tokens at once."""
_SAMPLER_BYTES = 16
_SAMPLER_BYTES_SORTED = 38
"""One logit at the sampler's peak: in the model's dtype, in float32, as probabilities; where it is sorted also its
index and the sorting's own buffers. 0.26: 3.9 GiB for 1,024 rows of 262,144; sorted 0.31: 1.2 GiB for 256 rows of
128,256, 0.10 to 0.13: 1.4 GiB for 256 rows of 151,936, 7.4 GiB for 1,024 rows of 201,088. Until 0.11.0 FlashInfer's
sampler spares the sorting where that package is installed, as in images; a plan cannot know, and counts it."""

_GRAPH_BYTES = 120 << 10
_GRAPH_BYTES_EXPERTS = 210 << 10
_GRAPH_BYTES_LATENT = 330 << 10
_GRAPH_BYTES_V4 = 530 << 10
_GRAPH_ESTIMATE_V4 = 1470 << 10
"""One layer of one captured graph: kernel nodes and their parameters. Recorded for DeepSeek-V4: 18 graphs × 43 layers
take 0.39 GiB, estimated 1.09; dense models of 8B to 70B print 0.23 to 0.94, MoE models 0.87 to 1.93, DeepSeek-V3
1.6 to 2.5."""
_GRAPH_ESTIMATE = 1.1


def engine_total_bytes(card: Card) -> int | None:
    """The card's memory as the engine sees it: CUDA's own total, else worked out from the driver's; None: not known.

    Where the host shares the memory the driver keeps none of it apart.
    """
    if card.memory_cuda_bytes is not None:
        return card.memory_cuda_bytes
    if card.memory_total_bytes is None or card.unified:
        return card.memory_total_bytes
    return max(int(card.memory_total_bytes * (1 - _RESERVED_SHARE)) - _RESERVED_BYTES, 0)


def before_start_bytes(*, ranks: int, linked: bool) -> int:
    """Memory that an engine takes outside its share: the context, and with several ranks over NVLink NCCL's buffers."""
    return _LINKED_BYTES if linked and ranks > 1 else _CONTEXT_BYTES


def other_bytes(ranks: int, *, engine: Accounting, multicast: bool) -> int:
    """Memory outside the allocator that the engine takes off its share.

    Args:
        ranks: tensor-parallel ranks.
        engine: the release's rules.
        multicast: whether the ranks reach each other through NVSwitch, whose multicast NCCL then uses.
    """
    if ranks <= 1:
        return _ALONE_OTHER_BYTES
    left_behind = _CONSUMED_BYTES if engine.counts_leftovers else 0
    return _RANKS_OTHER_BYTES + left_behind + (_MULTICAST_BYTES if multicast else 0)


def activation_terms(checkpoint: Checkpoint, launch: Launch, *, engine: Accounting) -> tuple[int, int, int]:
    """The peaks of one full step, of sampling after it, and of the largest picture through its encoder."""
    kept = _workspace(checkpoint, launch, engine=engine)
    forward = _v4_step(checkpoint, launch) if is_packed(checkpoint) else _step(checkpoint, launch, kept=kept)
    rows = min(launch.sequences * launch.decode_tokens, launch.batched_tokens)
    logit = _SAMPLER_BYTES_SORTED if engine.sorts_logits else _SAMPLER_BYTES
    pictures = _PICTURES_BYTES if checkpoint.vision.total_bytes else 0
    return forward, rows * checkpoint.vocabulary * logit + kept, pictures


def _step(checkpoint: Checkpoint, launch: Launch, *, kept: int) -> int:
    """One step of a model without DeepSeek-V4's extras: the widest layer's rows for every token.

    `kept` is what routed experts compute in where that is known, else both their activations.
    """
    side = _expert_side(checkpoint, launch)
    routed = checkpoint.experts_per_token * (max(2 * side, checkpoint.hidden_size) + side) if side else 0
    dense = 3 * checkpoint.intermediate_size // launch.layout.tensor
    widest = max(kept, 2 * launch.batched_tokens * max(routed, dense))
    streams = 2 * launch.batched_tokens * _STREAMS * checkpoint.hidden_size
    return widest + streams + _gathered(checkpoint, launch)


def _expert_side(checkpoint: Checkpoint, launch: Launch) -> int:
    side = expert_side(checkpoint)
    return side if launch.layout.expert else side // launch.layout.tensor


def _workspace(checkpoint: Checkpoint, launch: Launch, *, engine: Accounting) -> int:
    """Two buffers of a row for each token and chosen expert, which the engine never gives back (`triton_moe.py`).

    Not with FlashInfer's kernels, which bring their own: on sm_100, and on sm_90 for FP8 experts dealt out whole; nor
    with the MXFP4 kernels, nor with DeepSeek-V4's, whose peak was recorded as a whole.
    """
    side, hidden = _expert_side(checkpoint, launch), checkpoint.hidden_size
    major = engine.capability[0] if engine.capability else 0
    dealt = launch.layout.expert and checkpoint.quantization == "fp8"
    flashinfer = major == _SM_100 or (major == _SM_90 and dealt)
    fp4 = "fp4" in (checkpoint.expert_dtype or checkpoint.quantization)
    if not side or not engine.keeps_workspaces or flashinfer or fp4 or is_packed(checkpoint):
        return 0
    row = max(side, hidden) + max(2 * side, hidden)
    return 2 * launch.batched_tokens * checkpoint.experts_per_token * row


def _gathered(checkpoint: Checkpoint, launch: Launch) -> int:
    """Latents are unfolded for prompts; sparse ones gather 40 rows of index key a token of the longest request."""
    latents = [cache for cache in checkpoint.caches if isinstance(cache, Latent)]
    if not latents:
        return 0
    heads = checkpoint.attention_heads // launch.layout.tensor
    index = max(cache.index_size for cache in latents)
    gathered = launch.context * _V4_INDEX_ROWS * (index + 4) if index else 0
    return max(gathered, _UNFOLDED_TOKENS * heads * _UNFOLDED_BYTES)


def _v4_step(checkpoint: Checkpoint, launch: Launch) -> int:
    """DeepSeek-V4: workspaces that grow with the context, then either the indexer's scores or the experts' rows.

    The attention peak reproduces the recorded 1.05 GiB (two ranks, 2,048 tokens, context 131,072) and 1.5 (two stages,
    4,096 tokens, context 32,768).
    """
    cache = next(item for item in checkpoint.caches if isinstance(item, Compressed))
    indexed = [item for item in checkpoint.caches if isinstance(item, Compressed) and item.index_size]
    tokens, streams = launch.batched_tokens, _V4_STREAMS * checkpoint.hidden_size * 2
    ratio = min((item.ratio for item in indexed), default=1)
    gather = _V4_GATHERS * (launch.context // ratio + cache.window + tokens) * cache.head_size * 2
    index = sum(launch.context // ratio * _V4_INDEX_ROWS * (item.index_size + 4) for item in indexed[:1])
    heads = checkpoint.attention_heads // launch.layout.tensor
    padded = 64 if heads <= 64 else 128
    attention = _V4_LOGITS_BYTES + tokens * (2 * streams + (heads + padded) * cache.head_size * 2 + _V4_SMALL_BYTES)
    routed = checkpoint.experts_per_token * (3 * expert_side(checkpoint) + checkpoint.hidden_size) * 2
    experts = tokens * (_V4_PEAK_ROWS * streams + routed)
    return max(gather, index) + max(attention, experts)


def graphs_bytes(checkpoint: Checkpoint, launch: Launch, *, engine: Accounting) -> tuple[int, int]:
    """CUDA graphs: what the engine takes off the cache for them (its estimate), and what they really take."""
    if launch.capture <= 0:
        return 0, 0
    mixed = len(capture_sizes(launch.capture))
    decode = len(capture_sizes(min(launch.capture, launch.sequences * launch.decode_tokens)))
    layers = len(checkpoint.layers) // launch.layout.pipeline
    count = (mixed + decode) * layers
    if is_packed(checkpoint):
        estimate, real = count * _GRAPH_ESTIMATE_V4, count * _GRAPH_BYTES_V4
    else:
        real = count * _graph_bytes(checkpoint)
        estimate = int(real * _GRAPH_ESTIMATE)
    return (estimate if engine.takes_off_graphs else 0), real


def _graph_bytes(checkpoint: Checkpoint) -> int:
    if any(isinstance(cache, Latent) for cache in checkpoint.caches):
        return _GRAPH_BYTES_LATENT
    return _GRAPH_BYTES_EXPERTS if checkpoint.experts else _GRAPH_BYTES
