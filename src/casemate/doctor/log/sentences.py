"""The sentences in which an engine tells facts: each a few cheap words, an expression, and what its groups mean.

Where a form changed between versions (vLLM 0.6 to 0.33, llama.cpp), the entry or its neighbour names both.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from casemate.doctor.log.gathering import Facts
from casemate.doctor.log.lines import Line

WORDS = (
    "default args", "args namespace", "llm engine with config", "version", "resolved architecture",
    "using max model len", "batched tokens", "loading took", "loading model weights took", "model weights take",
    "reserved for cache", "cache size", "torch peak memory", "available cache memory", "gpu blocks", "cuda blocks",
    "maximum concurrency", "cuda graph memory", "graph pool memory", "capturing finished", "free memory device",
    "init engine", "torch compile took", "max seq len", "avg throughput", "attention backend", "moe backend",
    "all reduce backends", "using nccl", "buffer size", "llama cache", "self size", "memory recurrent", "build",
    "startup complete", "uvicorn running", "server listening", "capturing cuda graph", "capturing cuda graphs",
    "starting load model", "capturing cudagraphs", "capturing model for cuda graphs", "loading checkpoint shards",
    "llama model loader", "memory profiling results", "enforce eager set", "disabled under eager mode",
    "log server request post",
)  # fmt: skip
"""Groups of words of which a line has to hold one, for it to tell a fact; words as the sieve counts them."""

_RATES = re.compile(
    r"Avg prompt throughput: (?P<prompt>[\d.]+) tokens/s, Avg generation throughput: (?P<generation>[\d.]+) tokens/s, "
    r"Running: (?P<running>\d+) reqs"
)
_ANSWERED = re.compile(r"log_server_r: (?:done )?request: POST \S{1,300} \S{1,80} 200\b")
_READY = re.compile(r"Application startup complete|Uvicorn running on|server is listening on")


class Told(NamedTuple):
    """A sentence that was found, and the line it stands in."""

    line: Line
    found: re.Match[str]


_Keep = Callable[[Facts, Told], None]


def take(facts: Facts, line: Line) -> None:
    """Read what one line tells; most tell nothing."""
    for words, expression, keep in _SENTENCES:
        if words in line.text and (found := expression.search(line.text)):
            keep(facts, Told(line, found))


def alive(line: Line) -> bool:
    """Whether the line shows an engine at work, or one that just became ready."""
    if found := _RATES.search(line.text):
        return float(found["generation"]) > 0 or float(found["prompt"]) > 0
    return bool(_READY.search(line.text) or _ANSWERED.search(line.text))


def _fields(**types: Callable[[str], object]) -> _Keep:
    return lambda facts, told: facts.plain(told.found, **types)


def _llama(*names: str) -> _Keep:
    def keep(facts: Facts, told: Told) -> None:
        facts.llama(**{name: float(told.found[name]) for name in names if told.found[name]})

    return keep


def _weights(facts: Facts, told: Told) -> None:
    facts.weights(told.line, float(told.found["gib"]))


def _cache(facts: Facts, told: Told) -> None:
    facts.kv(told.line, float(told.found["gib"]))


def _arguments(facts: Facts, told: Told) -> None:
    facts.arguments(told.found["all"])


def _config(facts: Facts, told: Told) -> None:
    facts.config(told.found["all"])


def _pool(facts: Facts, told: Told) -> None:
    groups = told.found.groupdict()
    facts.pool(groups.get("tokens"), groups.get("many"), length=groups.get("length"))


def _shortage(facts: Facts, told: Told) -> None:
    facts.shortage(told.found)


def _buffer(facts: Facts, told: Told) -> None:
    facts.buffer(told.found)


def _eager(facts: Facts, told: Told) -> None:
    facts.eager(told.line)


def _ready(facts: Facts, _told: Told) -> None:
    facts.ready()


_NUMBERS = _fields()

_TABLE: tuple[tuple[str, str, _Keep], ...] = (
    ("non-default args:", r"non-default args: (?P<all>\{.+)", _arguments),
    ("args: Namespace(", r"args: Namespace(?P<all>\(.+)", _arguments),
    ("LLM engine (v", r"LLM engine \(v(?P<engine_version>[\w.+-]{1,60})\)", _fields(engine_version=str)),
    ("with config:", r"LLM engine .{0,80}with config: (?P<all>.+)", _config),
    (
        " version ",
        r"(?:vLLM API server|█) {1,4}version (?P<engine_version>\d[\w.+-]{1,60})",
        _fields(engine_version=str),
    ),
    ("Resolved architecture", r"Resolved architecture: (?P<architecture>\w{1,120})", _fields(architecture=str)),
    ("Using max model len", r"Using max model len (?P<max_model_len>\d+)", _fields(max_model_len=int)),
    (
        "max_num_batched_tokens=",
        r"prefill is enabled with max_num_batched_tokens=(?P<max_num_batched_tokens>\d+)",
        _fields(max_num_batched_tokens=int),
    ),
    ("oad", r"(?:Model loading|Loading model weights) took (?P<gib>[\d.]+) Gi?B", _weights),
    ("Model loading took", r"GiB(?: memory)? and (?P<load_s>[\d.]+) s", _NUMBERS),
    ("model weights take", r"model weights take (?P<gib>[\d.]+)GiB", _weights),
    (
        "non_torch_memory takes",
        (
            r"non_torch_memory takes (?P<non_torch_gib>[\d.]+)GiB; "
            r"PyTorch activation peak memory takes (?P<activation_gib>[\d.]+)GiB"
        ),
        _NUMBERS,
    ),
    ("reserved for KV Cache is", r"reserved for KV Cache is (?P<gib>[\d.]+)GiB", _cache),
    ("kv_cache_size=", r"kv_cache_size=(?P<gib>[\d.]+)GiB", _cache),
    (
        "torch peak memory increase",
        (
            r"torch peak memory increase: (?P<activation_gib>[\d.]+)GiB; "
            r"non-torch forward increase memory: (?P<non_torch_gib>[\d.]+)GiB"
        ),
        _NUMBERS,
    ),
    ("Available KV cache memory", r"Available KV cache memory: (?P<gib>-?[\d.]+) GiB", _cache),
    ("# GPU blocks", r"# GPU blocks: (?P<gpu_blocks>\d+)", _fields(gpu_blocks=int)),
    ("# cuda blocks", r"# cuda blocks: (?P<gpu_blocks>\d+)", _fields(gpu_blocks=int)),
    (
        "KV cache size:",
        (
            r"KV cache size: (?P<tokens>[\d,]+) tokens"
            r"(?:, Maximum concurrency for (?P<length>[\d,]+) tokens per request: (?P<many>[\d.]+)x)?"
        ),
        _pool,
    ),
    (
        "Maximum concurrency for",
        r"(?<!tokens, )Maximum concurrency for (?P<length>[\d,]+) tokens per request: (?P<many>[\d.]+)x",
        _pool,
    ),
    (
        "Estimated CUDA graph memory",
        r"Estimated CUDA graph memory: (?P<graphs_estimated_gib>[\d.]+) GiB total",
        _NUMBERS,
    ),
    (
        "CUDA graph pool memory",
        r"CUDA graph pool memory: (?P<graphs_actual_gib>[\d.]+) GiB \(actual\), (?P<graphs_estimated_gib>[\d.]+) GiB",
        _NUMBERS,
    ),
    (
        "Graph capturing finished",
        r"finished in (?P<graphs_s>\d[\d.]*) secs?(?:, took (?P<graphs_actual_gib>\d[\d.]*) GiB)?",
        _NUMBERS,
    ),
    (
        "Free memory on device",
        (
            r"Free memory on device \S{0,20} ?\((?P<device_free_gib>[\d.]+)/(?P<device_total_gib>[\d.]+) GiB\) on start"
            r"up\D{1,60}\((?P<utilization>[\d.]+), (?P<requested_gib>[\d.]+) GiB\)"
        ),
        _NUMBERS,
    ),
    ("GiB for weight", r"Actual usage is (?P<gib>[\d.]+) GiB for weight", _weights),
    ("for peak activation", r"(?P<activation_gib>[\d.]+) GiB for peak activation", _NUMBERS),
    ("for non-torch memory", r"(?P<non_torch_gib>[\d.]+) GiB for non-torch memory", _NUMBERS),
    ("for consumed memory", r"(?P<consumed_gib>[\d.]+) GiB for consumed memory", _NUMBERS),
    ("for CUDAGraph memory", r"(?P<graphs_actual_gib>[\d.]+) GiB for CUDAGraph memory", _NUMBERS),
    (
        "init engine",
        r"init engine \(.{1,80}\) took (?P<init_s>[\d.]+) s(?:econds)?(?: \(compilation: (?P<compile_s>[\d.]+) s)?",
        _NUMBERS,
    ),
    ("torch.compile took", r"torch\.compile took (?P<compile_s>[\d.]+) s in total", _NUMBERS),
    (
        "max seq len",
        (
            r"max seq len \((?P<len>\d+)\), \(?(?P<need>[\d.]+) G(?:i)?B KV cache is needed, which is larger than the "
            r"available KV cache memory \((?P<have>[\d.]+) Gi?B\)(?:.{0,120}?maximum model length is (?P<fits>\d+))?"
        ),
        _shortage,
    ),
    ("Avg prompt throughput", _RATES.pattern, lambda facts, told: facts.rates(told.line, told.found)),
    (
        "attention backend",
        r"Using (?P<attention_backend>[A-Z][A-Z0-9_]{2,60}) attention backend",
        _fields(attention_backend=str),
    ),
    (
        "MoE backend",
        r"Using '?(?P<moe_backend>[A-Za-z0-9_]{2,60})'? [\w() ]{0,40}MoE backend",
        _fields(moe_backend=str),
    ),
    (
        "all-reduce backends",
        r"Using \[(?P<all_reduce>[^\]]{1,120})\] all-reduce backends .{0,60}group 'tp",
        _fields(all_reduce=str),
    ),
    ("vLLM is using nccl", r"using nccl==(?P<nccl_version>[\d.]+)", _fields(nccl_version=str)),
    (
        "buffer size",
        r"\s(?P<device>[A-Za-z][\w.-]{1,40}) (?P<kind>model|compute) buffer size = {1,8}(?P<mib>[\d.]+) MiB",
        _buffer,
    ),
    (
        "llama_kv_cache",
        r"llama_kv_cache\w{0,20}: +size = +(?P<kv_mib>[\d.]+) MiB \( *(?P<kv_cells>\d+) cells, +(?P<kv_layers>\d+) lay",
        _llama("kv_mib", "kv_cells", "kv_layers"),
    ),
    ("KV self size", r"KV self size += +(?P<kv_mib>[\d.]+) MiB", _llama("kv_mib")),
    (
        "llama_memory_recurrent",
        r"llama_memory_recurrent: +size = +(?P<recurrent_mib>[\d.]+) MiB",
        _llama("recurrent_mib"),
    ),
    ("build: ", r"\bbuild: (?P<engine_version>\d{3,6} \([0-9a-f]{6,12}\))", _fields(engine_version=str)),
    ("eager", r"Enforce eager set, disabling|[Cc]uda ?graph is disabled under eager mode", _eager),
    ("", _READY.pattern, _ready),
)
_SENTENCES = tuple((words, re.compile(expression), keep) for words, expression, keep in _TABLE)
