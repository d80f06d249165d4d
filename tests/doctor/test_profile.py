"""Profiles of the three forms, made small: the stage that costs most is named, and the kernels under it."""

from __future__ import annotations

import io
import json

import pytest

from casemate.doctor.log.profile import Profile, ProfileForm, read, recognise, stage_of
from casemate.errors import UsageError

NSYS = """
 ** CUDA API Summary (cuda_api_sum):

 Time (%)  Total Time (ns)  Num Calls   Avg (ns)   Med (ns)   Min (ns)  Max (ns)  StdDev (ns)          Name
 --------  ---------------  ---------  ---------  ---------  ---------  --------  -----------  ----------------
     91.0    9,000,000,000     10,000  900000.0   900000.0       1,000   900,000      10000.0  cudaLaunchKernel

 ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):

 Time (%)  Total Time (ns)  Instances  Avg (ns)  Med (ns)  Min (ns)  Max (ns)  StdDev (ns)                    Name
 --------  ---------------  ---------  --------  --------  --------  --------  -----------  -------------------------
     60.0      600,000,000        100  6000000   6000000       1000     90000       1000.0  fused_moe_gemm<f, (int)4>
     30.0      300,000,000        100  3000000   3000000       1000     90000       1000.0  ncclDevKernel_AllReduce
      9.0       90,000,000        100   900000    900000       1000     90000       1000.0  flash_splitkv_mla<Traits>

 ** CUDA GPU MemOps Summary (by Time) (cuda_gpu_mem_time_sum):

 Time (%)  Total Time (ns)  Count  Avg (ns)  Med (ns)  Min (ns)  Max (ns)  StdDev (ns)           Operation
 --------  ---------------  -----  --------  --------  --------  --------  -----------  ----------------------------
    100.0       10,000,000    500   20000.0   20000.0      1000     90000       1000.0  [CUDA memcpy Host-to-Device]
"""
CSV = """Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
55.0,550000000,20,1.0,1.0,1,1,1.0,"void flash_fwd_kernel<Traits, true, (int)8>(Flash_fwd_params)"
45.0,450000000,10,1.0,1.0,1,1,1.0,nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT
"""
_RULE = "-" * 40 + "  " + "  ".join(["-" * 12] * 8)
_TITLES = ("Self CPU %", "Self CPU", "CPU total %", "CPU total", "Self CUDA", "Self CUDA %", "CUDA total", "# of Calls")


def row(name: str, *cells: str) -> str:
    return name.rjust(40) + "  " + "  ".join(cell.rjust(12) for cell in cells)


TORCH = "\n".join(
    (
        _RULE,
        row("Name", *_TITLES),
        _RULE,
        row("aten::mm", "5.0%", "10.000ms", "9.0%", "20.000ms", "400.000ms", "40.0%", "400.000ms", "100"),
        row("nvjet_hsh_128x256", "0.0%", "0.000us", "0.0%", "0.000us", "400.000ms", "40.0%", "400.000ms", "100"),
        row("top_k_top_p_sampling_from_probs", "0.0%", "0.000us", "0.0%", "0.000us", "0.600s", "60.0%", "0.600s", "7"),
        _RULE,
        "Self CPU time total: 1.200s",
        "Self CUDA time total: 1.000s",
    )
)


def of(text: str, form: ProfileForm) -> Profile:
    data = text.encode()
    assert recognise(data[:65536]) == form
    return read(io.BytesIO(data), form)


def traced(*kernels: tuple[str, float, float], card: int = 0) -> list[dict[str, object]]:
    return [
        {
            "ph": "X",
            "cat": "kernel",
            "name": name,
            "pid": card,
            "tid": 7,
            "ts": start,
            "dur": length,
            "args": {"a": [1]},
        }
        for name, start, length in kernels
    ]


def test_a_table_of_nsys_is_summed_without_the_calls_of_the_processor() -> None:
    told = of(NSYS, "nsys")
    assert told.costliest == "experts"
    assert [(one.stage, one.ms, one.calls) for one in told.stages] == [
        ("experts", 600.0, 100), ("all-reduce", 300.0, 100), ("decode attention", 90.0, 100), ("copies", 10.0, 500),
    ]  # fmt: skip
    assert told.stages[0].share == pytest.approx(0.6)
    assert told.gaps_ms is None


def test_a_table_of_nsys_in_csv_keeps_names_with_commas_whole() -> None:
    told = of(CSV, "nsys")
    assert told.costliest == "prefill attention"
    assert told.stages[0].kernels == ("void flash_fwd_kernel<Traits, true, (int)8>(Flash_fwd_params)",)


def test_the_table_of_torch_counts_kernels_and_not_the_operations_above_them() -> None:
    told = of(TORCH, "torch")
    assert told.device_ms == pytest.approx(1000.0)
    assert [(one.stage, one.calls) for one in told.stages] == [("sampling", 7), ("matrices", 100)]


def test_a_trace_shows_the_gaps_in_which_no_kernel_ran() -> None:
    events = traced(("ncclDevKernel_AllReduce", 0, 1000), ("nvjet_a", 500, 1000), ("nvjet_a", 6500, 500))
    noise = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 0, "dur": 9_000_000}, {"ph": "M", "name": "x"}]
    told = of(json.dumps({"schemaVersion": 1, "traceEvents": [*noise, *events]}), "trace")
    assert told.gaps_ms == pytest.approx(5.0)
    assert told.costliest == "gaps"
    assert [(one.stage, one.ms) for one in told.stages] == [("matrices", 1.5), ("all-reduce", 1.0)]


def test_a_trace_in_pieces_and_as_a_bare_list_is_read_to_its_end() -> None:
    events = [event for number in range(3000) for event in traced(("nvjet_a", number * 10.0, 10.0))]
    text = json.dumps(events, indent=1)
    whole = of(text, "trace")

    class Drips(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(977)

    assert read(Drips(text.encode()), "trace") == whole
    assert (whole.stages[0].calls, whole.gaps_ms) == (3000, 0.0)


@pytest.mark.parametrize(
    "text", ["", "INFO 06-01 10:00:00 [a.py:1] x", '{"error": {"message": "no"}}', "Time (%) of my life"]
)
def test_anything_else_is_no_profile(text: str) -> None:
    assert recognise(text.encode()) is None


@pytest.mark.parametrize("text", ['{"traceEvents": [', '{"traceEvents": []}', '{"traceEvents": [{"ph": "X"]', "[{"])
def test_a_trace_without_time_on_a_card_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        read(io.BytesIO(text.encode()), "trace")


@pytest.mark.parametrize(
    ("kernel", "stage"),
    [
        ("_ZN7cutlass13device_kernelIN5flash17FlashAttnFwdSm90", "other attention"),
        ("BatchPrefillWithPagedKVCacheKernel", "prefill attention"),
        ("void vllm::cross_device_reduce_1stage<bf16, 2>", "all-reduce"),
        ("void vllm::moe::topkGatingSoftmax<8>", "experts"),
        ("sm90_fp8_paged_mqa_logits", "decode attention"),
        ("deep_gemm::sm90_fp8_gemm_1d2d_impl", "matrices"),
        ("void at::native::radixSortKVInPlace", "sampling"),
        ("void vllm::rms_norm_kernel", "norms and activations"),
        ("Memcpy HtoD (Pinned -> Device)", "copies"),
        ("quux", "other"),
    ],
)
def test_a_kernel_is_told_by_its_name(kernel: str, stage: str) -> None:
    assert stage_of(kernel) == stage
