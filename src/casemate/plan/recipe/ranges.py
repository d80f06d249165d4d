"""Judgements on values that the parser takes and the engine's configuration then refuses: numbers and names."""

from __future__ import annotations

from collections.abc import Iterator

from casemate.finding import Severity
from casemate.plan.recipe.problem import Kind, Problem
from casemate.plan.recipe.situation import Situation

_PARALLEL = "vllm 0.33.0 wheel, vllm/config/parallel.py"
_SCHEDULER = "vllm 0.33.0 wheel, vllm/config/scheduler.py"
_CACHE = "vllm 0.33.0 wheel, vllm/config/cache.py"
_MODEL = "vllm 0.33.0 wheel, vllm/config/model.py"
_SOCKET = "vllm 0.33.0 wheel, vllm/entrypoints/common/cli_args.py"
_REGISTRY = "vllm 0.13.0 to 0.33.0 wheels, attention/backends/registry.py"
_OLD_SCHEDULER = "vllm 0.6.3 wheel, vllm/core/scheduler.py"
_PORTS = 65_535
_LEAST = {
    "tensor-parallel-size": (1, _PARALLEL),
    "pipeline-parallel-size": (1, _PARALLEL),
    "data-parallel-size": (1, _PARALLEL),
    "data-parallel-size-local": (0, _PARALLEL),
    "data-parallel-rank": (0, _PARALLEL),
    "decode-context-parallel-size": (1, _PARALLEL),
    "prefill-context-parallel-size": (1, _PARALLEL),
    "nnodes": (1, _PARALLEL),
    "node-rank": (0, _PARALLEL),
    "max-num-seqs": (1, _SCHEDULER),
    "max-num-batched-tokens": (1, _SCHEDULER),
    "max-model-len": (1, _MODEL),
    "block-size": (1, _CACHE),
    "kv-cache-memory-bytes": (1, _CACHE),
    "swap-space": (0, _CACHE),
    "cpu-offload-gb": (0, _CACHE),
    "port": (0, _SOCKET),
    "data-parallel-rpc-port": (1, _PARALLEL),
    "master-port": (1, _PARALLEL),
}
"""The smallest number that the configuration accepts."""
_BACKENDS = {
    "AMX_MLA", "B12X", "CPU_ATTN", "CPU_MLA", "CUSTOM", "CUTLASS_MLA", "CUTLASS_MSA", "FLASHINFER",
    "FLASHINFER_MLA", "FLASHINFER_MLA_SPARSE", "FLASHINFER_MLA_SPARSE_DSV4", "FLASHINFER_MLA_SPARSE_DSV41",
    "FLASHINFER_MLA_SPARSE_SM120", "FLASHINFER_MLA_SPARSE_SM90", "FLASHMLA", "FLASHMLA_MEGA_ATTN_DSV41",
    "FLASHMLA_SPARSE", "FLASHMLA_SPARSE_DSV4", "FLASHMLA_SPARSE_DSV41", "FLASH_ATTN", "FLASH_ATTN_DIFFKV",
    "FLASH_ATTN_MLA", "FLASH_ATTN_MLA_SPARSE", "FLASH_ATTN_MLA_SPARSE_FA4", "FLEX_ATTENTION", "HPC_ATTN", "IPEX",
    "MINIMAX_M3_SPARSE", "NO_ATTENTION", "PALLAS", "ROCM_AITER_FA", "ROCM_AITER_MLA", "ROCM_AITER_MLA_SPARSE",
    "ROCM_AITER_TRITON_MLA", "ROCM_AITER_UNIFIED_ATTN", "ROCM_ATTN", "ROCM_FLASHMLA_SPARSE_DSV4",
    "ROCM_FLASHMLA_SPARSE_DSV41", "ROCM_OCTAVE", "ROCM_SEGMENTED_ATTN", "STEP5_DSA", "TOKENSPEED_MLA",
    "TORCH_SDPA", "TREE_ATTN", "TRITON_ATTN", "TRITON_ATTN_DIFFKV", "TRITON_FLASHINFER", "TRITON_FLASH_ATTN",
    "TRITON_MLA", "TRITON_MSA", "TURBOQUANT", "ULTRAQUANT", "XPU_MLA_SPARSE",
}  # fmt: skip
"""Every name that a recorded registry has had."""
_OLD_SUFFIX = "_VLLM_V1"


def ranges(situation: Situation) -> Iterator[Problem]:
    """Everything about numbers out of range and names that only the engine's code checks."""
    yield from _numbers(situation)
    yield from _backend(situation)
    yield from _preemption(situation)


def _numbers(situation: Situation) -> Iterator[Problem]:
    for name, (least, source) in _LEAST.items():
        number = situation.number(name)
        flag = situation.table.get(name)
        if number is None or (flag and flag.closed):
            continue
        if number < least and not (number == -1 and flag and flag.form == "length"):
            says = f"It must be at least {least}; the engine stops at {number:g}."
            yield from situation.told(name, Problem(Kind.INVALID, Severity.HIGH, says, source))
        elif name.endswith("port") and number > _PORTS:
            says = f"Ports end at {_PORTS:,}."
            yield from situation.told(name, Problem(Kind.INVALID, Severity.HIGH, says, source))


def _backend(situation: Situation) -> Iterator[Problem]:
    """The value of --attention-backend: any text for the parser, a name of the registry for the engine."""
    name, value = "attention-backend", situation.value("attention-backend")
    if not value or value.upper() in _BACKENDS or value.lower() in ("auto", "none"):
        return
    plain = value.upper().replace("-", "_").removesuffix(_OLD_SUFFIX)
    mend = (f"--{name}", plain) if plain in _BACKENDS else ()
    says = (
        "No recorded registry has an attention back end of this name; the engine stops with: Unknown attention backend."
    )
    yield from situation.told(name, Problem(Kind.INVALID, Severity.HIGH, says, _REGISTRY, mend))


def _preemption(situation: Situation) -> Iterator[Problem]:
    """Versions whose parser takes any text compare it with `swap` and take all else for recomputing."""
    name, value = "preemption-mode", situation.value("preemption-mode")
    flag = situation.table.get(name)
    if value and flag and not flag.values and value not in ("recompute", "swap"):
        says = "It is no value: recompute and swap are. This version checks nothing and recomputes."
        mend = (f"--{name}", "recompute")
        yield from situation.told(name, Problem(Kind.INVALID, Severity.MEDIUM, says, _OLD_SCHEDULER, mend))
