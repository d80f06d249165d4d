"""What the engine's kernels ask of a card: which models run on which architecture, and in what way. Pure.

From vLLM's own checks (`models/deepseek_v4/nvidia/model.py`, `sparse_mla.py`, `fused_moe/oracle/mxfp4.py`,
`quantization/fp8.py`; wheels 0.20 to 0.33) and the reports named beside each rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from casemate.checkpoint.facts import Checkpoint, Latent
from casemate.plan.accounting import Accounting
from casemate.plan.pages import is_packed

Capability = tuple[int, int]

AMPERE: Capability = (8, 0)
ADA: Capability = (8, 9)
HOPPER: Capability = (9, 0)
_OLDEST: Capability = (7, 5)
_OLDEST_BEFORE_CUDA_13: Capability = (7, 0)
_BLACKWELL_DESK = 12
_V4_FIRST = (0, 20)
_V4_STAGES = (0, 22)
_V4_DESK = (0, 26)
_DSPARK_FIRST = (0, 25)
_HUMMING = (0, 32)
_STAGED_DRAFTS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "glm4_moe_lite": (0, 26),
        "nemotron_h": (0, 26),
        "deepseek_v3": (0, 33),
        "deepseek_v32": (0, 33),
        "glm_moe_dsa": (0, 33),
        "qwen3_5": (0, 33),
        "qwen3_5_moe": (0, 33),
    }
)
"""Model types whose draft class has SupportsPP, and the first release seen with it (wheels 0.26 and 0.33); all others
are refused with pipeline stages (vllm#52069, #49355)."""
_NO_FLOAT16 = frozenset({"gemma2", "gemma3", "gemma3_text", "glm4"})
"""`_FLOAT16_NOT_SUPPORTED_MODELS` in vLLM's `config/model.py` (0.26 and 0.33)."""
_UNIFIED: frozenset[Capability] = frozenset({(8, 7), (11, 0), (12, 1)})
"""Chips whose memory is the host's: Orin, Thor, GB10."""
_GB10: Capability = (12, 1)
_NEVER = (1 << 16, 0)


def obstacle(checkpoint: Checkpoint, capability: Capability, *, engine: Accounting) -> str:
    """Why this model cannot run on a card of this capability; empty where it can."""
    shown = f"sm_{capability[0]}{capability[1]}"
    oldest = _OLDEST if engine.version >= _V4_FIRST else _OLDEST_BEFORE_CUDA_13
    if capability < oldest:
        return f"{shown} is older than sm_{oldest[0]}{oldest[1]}, the oldest that this vLLM has kernels for"
    if is_packed(checkpoint):
        return _v4_obstacle(capability, shown, engine=engine)
    if _is_sparse(checkpoint) and capability[0] not in (9, 10):
        return f"the sparse latent attention has no code for {shown}: it needs sm_90 or sm_100"
    if _stores_fp4(checkpoint) and capability < AMPERE:
        return f"FP4 weights need sm_80 or newer, this is {shown}"
    if half_dtype(checkpoint, capability) and checkpoint.model_type in _NO_FLOAT16:
        return f"{shown} has no bfloat16, and vLLM runs no {checkpoint.model_type} in float16"
    return ""


def half_dtype(checkpoint: Checkpoint, capability: Capability) -> str:
    """What `--dtype` must say on such a card: `half` for a bfloat16 model where there is none, else empty."""
    return "half" if checkpoint.dtype == "bfloat16" and capability < AMPERE else ""


def remarks(checkpoint: Checkpoint, capability: Capability, *, engine: Accounting) -> Iterator[str]:
    """What is worth knowing about this model on this architecture, one line each."""
    if checkpoint.quantization.startswith("fp8") and capability < ADA:
        yield "no FP8 arithmetic before sm_89: FP8 weights run as W8A16 (Marlin), correct but without FP8's speed"
    if _stores_fp4(checkpoint) and capability[0] < 10:
        yield "no FP4 arithmetic before Blackwell: FP4 experts are computed as W4A16 or W4A8"
    if half_dtype(checkpoint, capability):
        yield "no bfloat16 before sm_80: start with --dtype half, which some models do not survive"
    if not checkpoint.context_length:
        yield "the config tells no longest context: a length that was not asked for is a guess, the engine's may differ"
    if capability in _UNIFIED:
        yield (
            "card and host share this memory: the engine gets at most 0.85 of what is free, above which public recipes"
            " fail and hosts hang (vllm#46307)"
        )
    if capability == _GB10:
        yield (
            "each GB10 is a host of its own: a plan for several spreads its ranks over hosts, which Ray joins over"
            " their network ports, and needs --distributed-executor-backend ray"
        )
    if is_packed(checkpoint) and capability[0] >= _BLACKWELL_DESK:
        since = "" if engine.version >= _V4_DESK else ", and vLLM has none for it before 0.26"
        yield f"the public runs of DeepSeek-V4 on sm_120 used a fork{since}"


def moe_backend(checkpoint: Checkpoint, capability: Capability, *, engine: Accounting) -> str:
    """Why the engine is left to pick its kernels for routed experts."""
    if not checkpoint.experts:
        return "auto: no routed experts"
    if is_packed(checkpoint) and capability[0] == HOPPER[0]:
        if engine.version >= _HUMMING:
            return "auto: vLLM takes Humming on sm_90 by itself, about 20 % faster than Marlin (vllm#52318)"
        return "auto: vLLM takes Marlin on sm_90; 0.32 or newer has the faster Humming (vllm#52318)"
    return "auto: the engine picks its kernel by card and weights"


def draft_obstacle(checkpoint: Checkpoint, *, engine: Accounting, pipeline: int) -> str:
    """Why the checkpoint's own draft cannot be used; empty where it can, or where there is none."""
    if checkpoint.draft is None:
        return ""
    if checkpoint.draft.method == "dspark":
        if engine.version < _DSPARK_FIRST:
            return "DSpark needs vLLM 0.25 or newer"
        if pipeline > 1:
            return "DSpark refuses pipeline stages (vllm#52761)"
    elif pipeline > 1 and engine.version < _STAGED_DRAFTS.get(checkpoint.model_type, _NEVER):
        return f"this model's {checkpoint.draft.method} draft refuses pipeline stages (vllm#52069)"
    return ""


def stages_obstacle(checkpoint: Checkpoint, *, engine: Accounting) -> str:
    """Why the model cannot be split into pipeline stages; empty where it can."""
    if is_packed(checkpoint) and engine.version < _V4_STAGES:
        return "DeepSeek-V4 has no pipeline stages before vLLM 0.22"
    return ""


def _v4_obstacle(capability: Capability, shown: str, *, engine: Accounting) -> str:
    if engine.version < _V4_FIRST:
        return "DeepSeek-V4 needs vLLM 0.20 or newer"
    if capability < HOPPER:
        return f"DeepSeek-V4's kernels have no code for {shown}: they need sm_90 or newer (a fork exists for sm_89)"
    return ""


def _is_sparse(checkpoint: Checkpoint) -> bool:
    return any(isinstance(cache, Latent) and cache.index_size for cache in checkpoint.caches)


def _stores_fp4(checkpoint: Checkpoint) -> bool:
    return checkpoint.fp4 or "fp4" in (checkpoint.expert_dtype or checkpoint.quantization)
