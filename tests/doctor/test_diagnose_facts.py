"""The facts that an engine prints, in the forms of its versions, and what follows from them."""

from __future__ import annotations

import io
from itertools import pairwise

import pytest

from casemate.doctor.diagnose import diagnose
from casemate.doctor.log import sentences
from casemate.doctor.log.facts import EngineLog, Shortage
from casemate.doctor.log.gathering import MAX_SAMPLES, Facts
from casemate.doctor.log.lines import parse
from casemate.doctor.log.signatures import Sieve
from conftest import Optional
from house.source import ROOT

RECORDINGS = ROOT.parent / "shared" / "gpu" / "recordings"
REFUSAL = (
    "ValueError: To serve at least one request with the model's max seq len (30000), (6.66 GiB KV cache is needed, "
    "which is larger than the available KV cache memory (5.44 GiB). Based on the available memory, the estimated "
    "maximum model length is 13528. Try increasing `gpu_memory_utilization` or decreasing `max_model_len`."
)


def read(*lines: str) -> EngineLog:
    return diagnose(io.BytesIO("\n".join(lines).encode())).facts


def test_the_recorded_run_on_two_cards_tells_every_figure(optional: Optional) -> None:
    log = _recorded(optional, "tp2-ep.log")
    assert (log.engine, log.engine_version, log.architecture) == ("vllm", "0.26.0", "DeepseekV4ForCausalLM")
    assert [gib for _, gib in log.weights_gib] == [73.88, 73.88]
    assert [name for name, _ in log.weights_gib] == ["Worker_TP0_EP0 pid=1540", "Worker_TP1_EP1 pid=1541"]
    assert (log.kv_gib[0][1], log.kv_tokens, log.full_length_requests) == (14.7, (991_366,), (7.56,))
    assert (log.max_model_len, log.max_num_batched_tokens, log.utilization) == (131_072, 2048, 0.65)
    assert (log.graphs_estimated_gib, log.graphs_actual_gib, log.activation_gib, log.non_torch_gib) == (
        1.09, 0.39, 1.05, 0.16,
    )  # fmt: skip
    assert (log.device_total_gib, log.device_free_gib, log.requested_gib) == (139.8, 137.86, 90.87)
    assert (log.init_s, log.tensor_parallel, log.pipeline_parallel, log.kv_dtype) == (847.8, 2, 1, "fp8")
    assert log.argument("max_num_seqs") == 32
    assert log.ready
    assert len(log.samples) == 22
    assert max(sample.generation_tokens_per_s for sample in log.samples) == 409.0


def test_the_recorded_run_with_two_stages_tells_both_caches(optional: Optional) -> None:
    log = _recorded(optional, "pp2-eager.log")
    assert log.weights_gib == (("Worker_PP0 pid=8889", 74.85),)
    assert (log.kv_gib[0][1], log.kv_tokens, log.full_length_requests) == (14.38, (312_056, 321_667), (9.52, 9.82))
    assert (log.pipeline_parallel, log.eager, log.ready) == (2, True, False)


def test_version_0_6_is_read() -> None:
    log = read(
        "INFO 04-08 10:00:00 api_server.py:528] vLLM API server version 0.6.3",
        "INFO 04-08 10:00:00 api_server.py:529] args: Namespace(host=None, port=8000, model='/m', max_model_len=4096, "
        "gpu_memory_utilization=0.9, api_key='very-secret-key')",
        "INFO 04-08 10:00:01 llm_engine.py:237] Initializing an LLM engine (v0.6.3) with config: model='/m', "
        "tokenizer='/m', dtype=torch.float16, max_seq_len=4096, tensor_parallel_size=1, quantization=fp8",
        "INFO 04-08 10:00:09 model_runner.py:1067] Loading model weights took 14.9595 GB",
        "INFO 04-08 10:00:12 gpu_executor.py:122] # GPU blocks: 27998, # CPU blocks: 2048",
        "INFO 04-08 10:00:12 gpu_executor.py:126] Maximum concurrency for 4096 tokens per request: 109.37x",
        "INFO 04-08 10:00:30 model_runner.py:1523] Graph capturing finished in 12 secs.",
        "INFO 04-08 10:01:30 metrics.py:345] Avg prompt throughput: 10.5 tokens/s, Avg generation throughput: 90.1 "
        "tokens/s, Running: 3 reqs, Swapped: 0 reqs, Pending: 2 reqs, GPU KV cache usage: 1.5%, CPU KV cache "
        "usage: 0.0%.",
    )
    assert (log.engine_version, log.weights_gib, log.gpu_blocks) == ("0.6.3", (("", 14.9595),), 27_998)
    assert (log.full_length_requests, log.max_model_len, log.quantization) == ((109.37,), 4096, "fp8")
    assert (log.samples[0].waiting, log.samples[0].kv_usage) == (2, 0.015)
    assert (log.graphs_s, log.dtype) == (12.0, "float16")
    assert "very-secret-key" not in repr(log)


def test_version_0_7_is_read() -> None:
    log = read(
        "INFO 03-27 10:29:01 [worker.py:267] Memory profiling takes 4.26 seconds",
        "INFO 03-27 10:29:01 [worker.py:267] model weights take 20.64GiB; non_torch_memory takes 0.28GiB; PyTorch "
        "activation peak memory takes 1.52GiB; the rest of the memory reserved for KV Cache is 21.20GiB.",
        "INFO 03-27 10:29:02 [executor_base.py:111] # cuda blocks: 28109, # CPU blocks: 2048",
        "INFO 03-27 10:29:40 [model_runner.py:1560] Graph capturing finished in 14 secs, took 0.24 GiB",
        "INFO 03-27 10:29:41 [llm_engine.py:447] init engine (profile, create kv cache, warmup model) took 21.48 "
        "seconds",
    )
    assert (log.weights_gib, log.kv_gib) == ((("", 20.64),), (("", 21.2),))
    assert (log.non_torch_gib, log.activation_gib, log.graphs_actual_gib) == (0.28, 1.52, 0.24)
    assert (log.init_s, log.gpu_blocks) == (21.48, 28_109)


def test_version_0_33_is_read() -> None:
    log = read(
        "(EngineCore pid=3) INFO 06-01 10:00:00 [core.py:116] Initializing a V1 LLM engine (v0.33.0) with config: "
        "model='/m'",
        "(Worker_TP0 pid=4) INFO 06-01 10:00:01 [gpu_model_runner.py:5089] Model loading took 77.94 GiB memory "
        "and 95.1 seconds",
        "(EngineCore pid=3) INFO 06-01 10:00:02 [kv_cache_utils.py:1148] GPU + host KV cache size: 912,128 "
        "tokens, Maximum "
        "concurrency for 131,072 tokens per request: 6.96x",
        "(Worker_TP0 pid=4) INFO 06-01 10:00:03 [gpu_worker.py:1060] Free memory on device (94.5/95.09 GiB) on "
        "startup. "
        "Desired GPU memory utilization is (0.95, 90.34 GiB). Actual usage is 79.01 GiB for consumed memory (weights + "
        "non-torch), 1.5 GiB for peak activation, and 0.9 GiB for CUDAGraph memory. Replace",
        "(EngineCore pid=3) INFO 06-01 10:00:04 [core.py:406] init engine (profile, create kv cache, warmup "
        "model) took "
        "120.50 s (compilation: 31.20 s)",
    )
    assert (log.engine_version, log.kv_tokens, log.full_length_requests) == ("0.33.0", (912_128,), (6.96,))
    assert (log.consumed_gib, log.activation_gib, log.graphs_actual_gib) == (79.01, 1.5, 0.9)
    assert (log.init_s, log.compile_s, log.load_s, log.device_total_gib) == (120.5, 31.2, 95.1, 95.09)


def test_growing_and_fixed_caches_of_a_hybrid_are_told_apart() -> None:
    log = read(
        "llama_kv_cache: size = 16384.00 MiB (262144 cells, 16 layers, 4/1 seqs), K (f16): 8192.00 MiB",
        "llama_memory_recurrent: size = 598.50 MiB (4 cells, 64 layers, 4 seqs)",
        "load_tensors:        CUDA0 model buffer size =  2513.00 MiB",
        "llama_context:      CUDA0 compute buffer size =   300.75 MiB",
    )
    assert (log.engine, log.llama.kv_mib, log.llama.kv_cells, log.llama.kv_layers) == (
        "llama.cpp",
        16384.0,
        262_144,
        16,
    )
    assert (log.llama.recurrent_mib, log.llama.cache_mib) == (598.5, 16982.5)
    assert (log.llama.model_mib, log.llama.compute_mib) == ((("CUDA0", 2513.0),), (("CUDA0", 300.75),))


def test_a_refused_context_gives_the_line_of_its_need() -> None:
    log = read("(EngineCore pid=3) ERROR 06-01 10:00:00 [core.py:1] " + REFUSAL)
    assert (log.need_gib, log.available_gib, log.estimated_max_len) == (6.66, 5.44, 13_528)
    refused = log.shortages[0]
    assert refused.slope_bytes_per_token == pytest.approx(79_500, rel=0.01)
    assert refused.fixed_gib == pytest.approx(4.44, abs=0.05)
    assert refused.need_at_gib(8192) == pytest.approx(5.04, abs=0.02)
    assert refused.need_at_gib(65_536) == pytest.approx(9.29, abs=0.02)


def test_a_refusal_tells_which_contexts_would_fit() -> None:
    root = diagnose(io.BytesIO(REFUSAL.encode())).root
    assert root is not None
    assert root.id == "kv-too-small"
    assert "8,192 tokens would need 5.04 GiB (fits)" in root.detail
    assert "65,536 tokens would need 9.29 GiB (does not fit)" in root.detail


@pytest.mark.parametrize(("context", "observed", "requests"), [(50_000, 398_000, 7.8), (500_000, 2_450_000, 5.4)])
def test_a_shorter_limit_prints_a_smaller_pool_and_serves_more_requests(
    context: int, observed: int, requests: float
) -> None:
    """Two GB10 (issue 57 of the DGX Spark recipe): 3.2e9 bytes a request and 3,300 a token, 24.5 GiB for the cache."""
    need = [(3.2e9 + 3300 * tokens) / (1 << 30) for tokens in (1_000_000, 100_000)]
    need_gib = Shortage(1_000_000, need[0], need[1], estimated_max_len=100_000).need_at_gib(context)
    assert need_gib is not None
    assert 24.5 / need_gib == pytest.approx(requests, rel=0.02)
    assert 24.5 / need_gib * context == pytest.approx(observed, rel=0.15)


def test_a_refusal_without_a_second_length_gives_no_line() -> None:
    refused = Shortage(30_000, 6.66, 5.44)
    assert (refused.slope_bytes_per_token, refused.fixed_gib, refused.need_at_gib(8192)) == (None, None, None)


def test_an_estimate_of_graphs_that_is_far_too_high_is_the_cause_and_more_cards_are_not_the_remedy() -> None:
    told = diagnose(
        io.BytesIO(
            b"(Worker_TP0 pid=4) INFO 06-01 10:00:00 [r.py:1] Estimated CUDA graph memory: 118.65 GiB total\n"
            b"(EngineCore pid=3) ERROR 06-01 10:00:01 [core.py:1] ValueError: No available memory for the cache blocks."
        )
    )
    assert told.root is not None
    assert told.root.id == "graph-estimate-too-high"
    assert "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0" in told.root.fix
    assert "118.65" in told.root.detail


def test_out_of_memory_in_a_capture_is_told_from_a_model_that_is_too_big() -> None:
    line = (
        b"(Worker_TP0 pid=4) ERROR 06-01 10:00:01 [w.py:1] torch.cuda.graph(g) capture_end() CUDA error: out of memory"
    )
    root = diagnose(io.BytesIO(line)).root
    assert root is not None
    assert root.id == "graph-capture-oom"
    assert "not too big" in root.fix


def test_throughput_lines_are_thinned_evenly_when_there_are_many() -> None:
    facts = Facts()
    for number in range(10 * MAX_SAMPLES):
        text = (
            "Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 2.0 tokens/s, Running: 1 reqs, "
            "Waiting: 0 reqs, GPU KV cache usage: 4.3%, Prefix cache hit rate: 0.0%"
        )
        sentences.take(facts, parse(number, text))
    lines = [sample.line for sample in facts.result().samples]
    assert MAX_SAMPLES / 2 <= len(lines) <= MAX_SAMPLES
    assert {second - first for first, second in pairwise(lines)} == {16}


def test_every_sentence_of_the_recordings_passes_the_sieve(optional: Optional) -> None:
    _recorded(optional, "tp2-ep.log")
    sieve = Sieve(sentences.WORDS)
    for path in sorted(RECORDINGS.glob("*.log")):
        sieved, whole = Facts(), Facts()
        for number, raw in enumerate(path.read_bytes().split(b"\n"), start=1):
            line = parse(number, raw.decode())
            sentences.take(whole, line)
            if sieve(raw):
                sentences.take(sieved, line)
        assert sieved.result() == whole.result(), path.name


def test_arguments_that_are_no_literal_are_read_as_far_as_they_are_plain() -> None:
    log = read("INFO 06-01 10:00:00 [u.py:1] non-default args: {'model': '/m', 'x': <Enum.A: 1>, 'max_num_seqs': 16}")
    assert dict(log.arguments) == {"model": "/m", "max_num_seqs": 16}


def _recorded(optional: Optional, name: str) -> EngineLog:
    optional("the recordings of real runs are not beside this checkout", (RECORDINGS / name).is_file())
    with (RECORDINGS / name).open("rb") as stream:
        return diagnose(stream).facts
