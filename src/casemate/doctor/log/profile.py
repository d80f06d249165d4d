"""A profile of an engine, read for the stage that costs most: attention, experts, matrices, all-reduce, sampling, gaps.

Three forms are read: tables of `nsys stats` (cuda_gpu_kern_sum and cuda_gpu_mem_time_sum, text or CSV), the table that
torch's `key_averages().table()` prints, and a Chrome trace (torch's export), streamed. Kernels are told by their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from casemate.doctor.log import trace
from casemate.doctor.log.reading import Readable, pieces, text_of
from casemate.errors import UsageError

ProfileForm = Literal["nsys", "torch", "trace"]

_STAGES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        ("copies", r"^\[?(?:CUDA )?mem(?:cpy|set)"),
        (
            "all-reduce",
            (r"nccl|all_?reduce|cross_device_reduce|all_?gather|reduce_?scatter|multimem|one_?shot|two_?shot|nvshmem"
            r"|deep_?ep|all2all|all_to_all|quick_reduce"),
        ),
        (
            "experts",
            (r"moe|expert|grouped_?gemm|group_?gemm|m_grouped|humming|topk_?(?:softmax|sigmoid|gating)|permute_tokens"
            r"|count_and_sort|silu_mul_.{0,20}masked"),
        ),
        (
            "prefill attention",
            r"prefill|flash_fwd_kernel|fmha.{0,40}(?:context|fwd|varlen)|sparse_attn_fwd|sparse_fwd|ragged",
        ),
        (
            "decode attention",
            r"decode|splitkv|split_kv|flash_?mla|paged_attention|mla_(?:combine|dec)|paged_mqa|kernel_unified_attention",
        ),
        (
            "other attention",
            r"attention|attn|fmha|flash|mqa_logits|indexer|reshape_and_cache|concat_and_cache|rope|rotary|kv_?cache|compress",
        ),
        (
            "sampling",
            r"sampl|top_?k|top_?p|softmax|arg_?max|gumbel|rejection|penalt|radix_?sort|bitonic|cumsum|logits|multinomial",
        ),
        ("matrices", r"gemm|gemv|nvjet|cutlass|cublas|matmul|xmma|marlin|splitk|machete|\bmm_|linear|wmma|tgv"),
        (
            "norms and activations",
            r"norm|silu|gelu|act_and_mul|elementwise|quant|vectorized|triton_(?:red|poi|per)|mhc|hc_|copy|fill|cat|reduce",
        ),
    )
)  # fmt: skip
_ADVICE = {
    "prefill attention": "long prompts cost most: prefix caching, fewer or shorter prompts, more tensor parallelism",
    "decode attention": "reading the KV cache costs most: FP8 cache, a shorter context, fewer requests at once",
    "other attention": "attention costs most: see that the backend is the one for this card",
    "experts": "the experts cost most: expert parallelism, another MoE backend, a tuned configuration for this card",
    "matrices": "dense matrices cost most: a smaller quantization, larger batches in decode",
    "all-reduce": "the link between cards costs most: direct access, or pipeline stages instead of tensor parallelism",
    "sampling": "sampling costs most: FlashInfer's sampler, fewer log-probabilities and penalties",
    "copies": "copies between host and card cost most: no CPU offload, pinned buffers",
    "norms and activations": "many small kernels cost most: torch.compile fusions, CUDA graphs",
    "gaps": "the card waits for the processor: CUDA graphs (no eager mode), faster cores, fewer API servers on them",
    "other": "kernels that no class knows cost most: their names are listed",
}
_NAMES_KEPT = 20_000
_TOP_KERNELS = 3


@dataclass(frozen=True, slots=True)
class StageCost:
    """Time of one stage on the card: milliseconds, share (0 to 1) of all, calls, and its costliest kernels."""

    stage: str
    ms: float
    share: float
    calls: int
    kernels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile, summed by stage, costliest first.

    `gaps_ms` is time in which no kernel ran (None: the form does not tell); where it is told, shares are of the whole
    span, else of the time on the card.
    """

    form: ProfileForm
    stages: tuple[StageCost, ...]
    device_ms: float
    gaps_ms: float | None = None
    span_ms: float | None = None

    @property
    def costliest(self) -> str:
        """The stage that costs most; `gaps` when the card waited longer than any stage took."""
        first = self.stages[0]
        return "gaps" if self.gaps_ms is not None and self.gaps_ms > first.ms else first.stage

    @property
    def advice(self) -> str:
        """What to look at first."""
        return _ADVICE[self.costliest]


def stage_of(kernel: str) -> str:
    """The stage that a kernel's name tells; `other` where it tells none."""
    return next((stage for stage, form in _STAGES if form.search(kernel)), "other")


def recognise(head: bytes) -> ProfileForm | None:
    """The form of a profile, by its first bytes; None for anything else."""
    text = head.replace(b"\0", b"").decode(errors="replace")
    if text.lstrip("\ufeff \r\n\t").startswith(("{", "[")) and re.search(r'"(?:traceEvents|ph)"\s*:', text):
        return "trace"
    if re.search(r"Self CUDA %|Self CUDA time avg|Self XPU %", text) and "---" in text:
        return "torch"
    return "nsys" if re.search(r"Time ?\(%\).{0,8}Total Time \((?:ns|us|ms|s)\)", text) else None


def read(stream: Readable, form: ProfileForm, *, name: str = "") -> Profile:
    """Sum a profile by stage.

    Raises:
        UsageError: it is damaged, compressed, or holds no time on a card.
    """
    if form == "trace":
        traced = trace.read(stream, name)
        return _summed(form, traced.kernels, gaps_ms=traced.gaps_ms, name=name)
    lines = (text_of(piece) for _, piece in pieces(stream, name))
    rows = _nsys(lines) if form == "nsys" else _torch(lines)
    held: dict[str, tuple[float, int]] = {}
    for kernel, ms, calls in rows:
        if kernel in held or len(held) < _NAMES_KEPT:
            before = held.get(kernel, (0.0, 0))
            held[kernel] = (before[0] + ms, before[1] + calls)
    return _summed(form, held, gaps_ms=None, name=name)


def _summed(form: ProfileForm, kernels: dict[str, tuple[float, int]], *, gaps_ms: float | None, name: str) -> Profile:
    device = sum(ms for ms, _ in kernels.values())
    if device <= 0:
        raise UsageError("the profile holds no time on a card", where=name, remedy="profile with CUDA activities on")
    span = device if gaps_ms is None else device + gaps_ms
    by_stage: dict[str, list[tuple[float, int, str]]] = {}
    for kernel, (ms, calls) in kernels.items():
        by_stage.setdefault(stage_of(kernel), []).append((ms, calls, kernel))
    stages = [
        StageCost(
            stage=stage,
            ms=(cost := sum(ms for ms, _, _ in held)),
            share=cost / span,
            calls=sum(calls for _, calls, _ in held),
            kernels=tuple(kernel[:120] for _, _, kernel in sorted(held, reverse=True)[:_TOP_KERNELS]),
        )
        for stage, held in by_stage.items()
    ]
    stages.sort(key=lambda one: -one.ms)
    return Profile(form, tuple(stages), device, gaps_ms, None if gaps_ms is None else span)


def _nsys(lines: Iterable[str]) -> Iterator[tuple[str, float, int]]:
    """Rows of the tables about the card; tables of API calls (`Num Calls`) are the processor's and left out."""
    factor, comma, width = 0.0, False, 0
    for line in lines:
        if head := re.search(r"Time ?\(%\).{0,8}Total Time \((ns|us|ms|s)\)", line):
            comma = "%)," in line or '%)",' in line
            wanted = re.search(r"\b(?:Instances|Count)\b", line) and "Num Calls" not in line
            factor = _MS[head[1]] if wanted else 0.0
            width = len(line.split(",")) if comma else len(re.split(r" {2,}", line.strip()))
        elif factor and (row := _cells(line, width, comma=comma)) is not None:
            yield row[-1], _number(row[1]) * factor, int(_number(row[2]))


_MS = {"s": 1000.0, "ms": 1.0, "us": 1e-3, "μs": 1e-3, "ns": 1e-6}


def _cells(line: str, width: int, *, comma: bool) -> list[str] | None:
    """A table's row as `width` cells, the name last; None for another line."""
    if comma:
        found = re.findall(r'"((?:[^"]|"")*)"|([^,]+)', line)
        cells = [quoted.replace('""', '"') or bare for quoted, bare in found]
        cells = [*cells[: width - 1], ",".join(cells[width - 1 :])] if len(cells) >= width else cells
    else:
        cells = line.strip().split(None, width - 1)
    good = len(cells) == width and all(re.fullmatch(r"[\d.,]+%?", cell.strip()) for cell in cells[:3])
    return [cell.strip() for cell in cells] if good else None


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _torch(lines: Iterable[str]) -> Iterator[tuple[str, float, int]]:
    """Rows of torch's table that are kernels: time of their own on the card, none on the processor."""
    spans: list[tuple[int, int]] = []
    columns: dict[str, int] = {}
    for line in lines:
        if re.fullmatch(r"[- ]*-{5,}[- ]*", line):
            spans = spans or [match.span() for match in re.finditer(r"-+", line)]
            continue
        cells = [line[begin:end].strip() for begin, end in spans]
        if "Self CUDA" in cells or "Self XPU" in cells:
            columns = {cell: index for index, cell in enumerate(cells)}
        elif columns and len(cells) == len(columns) and cells[0]:
            device = _time_ms(cells[columns.get("Self CUDA", columns.get("Self XPU", 0))])
            if device > 0 and _time_ms(cells[columns["Self CPU"]]) == 0 and not cells[0].startswith("ProfilerStep"):
                calls = cells[columns["# of Calls"]] if "# of Calls" in columns else "0"
                yield cells[0], device, int(calls) if calls.isdigit() else 0


def _time_ms(text: str) -> float:
    found = re.fullmatch(r"([\d.]+)(s|ms|us|μs|ns)", text)
    return float(found[1]) * _MS[found[2]] if found else 0.0
