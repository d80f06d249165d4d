"""Judgements on formats of numbers: quantization, data type, the cache's data type and block size."""

from __future__ import annotations

from collections.abc import Iterator

from casemate.finding import Severity
from casemate.plan.recipe.problem import Kind, Problem
from casemate.plan.recipe.situation import Situation

_ONLINE = {"fp8", "bitsandbytes", "experts_int8", "online", "torchao", "rtn", "ptpc_fp8", "mxfp8", "tpu_int8", "int8"}
"""Methods that can start from 16 bits (`layers/quantization` of the wheels 0.9 to 0.33)."""
_STORED = "is a format in which checkpoints are stored; it makes nothing out of one in 16 bits"
_HALF = ("half", "float16")
_BLOCK = 256
_SPARSE = "vllm 0.33.0 wheel, vllm/models/deepseek_v4/sparse_mla.py"
_ATTENTION = "vllm 0.33.0 wheel, vllm/models/deepseek_v4/attention.py"
_MODELS = "vllm 0.33.0 wheel, vllm/config/model.py"
_AMPERE = (8, 0)


def weights(situation: Situation) -> Iterator[Problem]:
    """Everything about formats."""
    yield from _quantization(situation)
    yield from _dtype(situation)
    yield from _cache_dtype(situation)
    yield from _block_size(situation)


def _quantization(situation: Situation) -> Iterator[Problem]:
    method, checkpoint = situation.value("quantization"), situation.checkpoint
    if method is None:
        return
    if checkpoint is None:
        online = method.lower() in _ONLINE or method.lower().startswith(("fp8_per", "int8_per", "nvfp4_per"))
        does = "quantizes a checkpoint in 16 bits while it loads" if online else _STORED
        says = (
            f"{method} {does}. One that is quantized (its config.json "
            "has quantization_config) needs no such option: the engine reads the method there. --model tells which."
        )
        yield from situation.told("quantization", Problem(Kind.BELIEF, Severity.INFO, says, _MODELS, None))
    elif checkpoint.quantization:
        experts = f" with experts in {checkpoint.expert_dtype}" if checkpoint.expert_dtype else ""
        says = (
            f"The checkpoint is quantized already ({checkpoint.quantization}{experts}, its config.json says so); the "
            "engine finds the method by itself, and any other is refused or wrong. There is nothing to calibrate."
        )
        same = method == checkpoint.quantization and not checkpoint.expert_dtype
        kind, severity = (Kind.NEEDLESS, Severity.LOW) if same else (Kind.BELIEF, Severity.MEDIUM)
        yield from situation.told("quantization", Problem(kind, severity, says, _MODELS))


def _dtype(situation: Situation) -> Iterator[Problem]:
    dtype, checkpoint = situation.value("dtype"), situation.checkpoint
    if dtype not in _HALF:
        return
    if situation.compressed:
        says = "The attention kernels of this model compute in bfloat16 only and refuse float16; auto takes bfloat16."
        yield from situation.told("dtype", Problem(Kind.REFUSED, Severity.HIGH, says, _SPARSE))
    elif checkpoint and checkpoint.dtype == "bfloat16":
        old = situation.capability is not None and situation.capability < _AMPERE
        if not old:
            says = (
                "The checkpoint is in bfloat16. float16 ends at 65,504, so activations may overflow; it "
                "is needed on cards older than compute capability 8.0 alone."
            )
            yield from situation.told("dtype", Problem(Kind.HARMFUL, Severity.MEDIUM, says, _MODELS))
    elif checkpoint is None:
        says = (
            "float16 is for cards older than compute capability 8.0. Most checkpoints are in bfloat16; kernels such "
            "as DeepSeek-V4's refuse float16; auto takes what the checkpoint has."
        )
        yield from situation.told("dtype", Problem(Kind.BELIEF, Severity.INFO, says, _SPARSE, None))


def _cache_dtype(situation: Situation) -> Iterator[Problem]:
    dtype = situation.value("kv-cache-dtype")
    if situation.compressed and dtype in ("bfloat16", "float16"):
        says = "This model's cache exists in FP8 only (584 bytes an entry); the sparse attention refuses 16 bits."
        mend = ("--kv-cache-dtype", "fp8")
        yield from situation.told("kv-cache-dtype", Problem(Kind.REFUSED, Severity.HIGH, says, _ATTENTION, mend))


def _block_size(situation: Situation) -> Iterator[Problem]:
    size = situation.number("block-size")
    if situation.compressed and size is not None and size != _BLOCK:
        says = f"The kernels of this model work on blocks of {_BLOCK} tokens, and no other size is accepted."
        mend = ("--block-size", str(_BLOCK))
        yield from situation.told("block-size", Problem(Kind.REFUSED, Severity.HIGH, says, _SPARSE, mend))
    elif situation.checkpoint is None and size is not None and size < _BLOCK:
        says = "The engine chooses a size that fits the attention kernel; DeepSeek-V4, for one, takes 256 alone."
        yield from situation.told("block-size", Problem(Kind.BELIEF, Severity.INFO, says, _SPARSE, None))
