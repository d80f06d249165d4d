"""The gathering of an engine's facts, one sentence after the other, into an `EngineLog`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from casemate.doctor.log.facts import EngineLog, Shortage, Throughput
from casemate.doctor.log.lines import Line
from casemate.doctor.log.secrets import masked, masked_value

MAX_SAMPLES = 2048
"""Throughput lines kept; when there are more, every other one is dropped and only every second, fourth … is added."""

_MAX_PROCESSES = 256
_VALUE = r"('[^']{0,400}'|-?\d[\d.e+-]{0,30}|True|False|None|\[[^\[\]]{0,400}\]|\{[^{}]{0,400}\})"
_ARGUMENT = re.compile(r"'(\w{1,80})': " + _VALUE)
_OLD_ARGUMENT = re.compile(r"\b(\w{1,80})=('[^']{0,400}'|-?\d[\d.e+-]{0,30}|True|False|None)(?=[,)])")
_CONFIG = re.compile(r"\b(\w{1,60})=('[^']{0,400}'|[\w./:-]{1,200})(?=,|$)")
_LATER = {
    "waiting": re.compile(r"(?:Waiting|Pending): (\d+) reqs"),
    "kv_usage": re.compile(r"(?<!CPU )KV cache usage: ([\d.]+)%"),
    "prefix_hit_rate": re.compile(r"(?<!External )[Pp]refix cache hit rate: (?:GPU: )?([\d.]+)%"),
    "preemptions": re.compile(r"Preemptions: (\d+)"),
}


class Facts:
    """Gathers the facts of one launch, line by line; `result()` is the value so far."""

    def __init__(self) -> None:
        self._log = EngineLog()
        self._weights: dict[str, float] = {}
        self._kv: dict[str, float] = {}
        self._samples: list[Throughput] = []
        self._stride = 1
        self._seen = 0
        self._model: dict[str, float] = {}
        self._compute: dict[str, float] = {}

    def result(self) -> EngineLog:
        """Everything gathered so far, as a value."""
        llama = replace(self._log.llama, model_mib=tuple(self._model.items()), compute_mib=tuple(self._compute.items()))
        return replace(
            self._log,
            weights_gib=tuple(sorted(self._weights.items())),
            kv_gib=tuple(sorted(self._kv.items())),
            samples=tuple(self._samples),
            llama=llama,
        )

    def plain(self, found: re.Match[str], **types: Callable[[str], Any]) -> None:
        """Keep groups whose names are fields of `EngineLog`; the last one printed stands."""
        given = {name: text for name, text in found.groupdict().items() if text is not None}
        self._log = replace(self._log, **{name: types.get(name, float)(text) for name, text in given.items()})

    def weights(self, line: Line, gib: float) -> None:
        """Weights of one process."""
        if len(self._weights) < _MAX_PROCESSES or line.process in self._weights:
            self._weights[line.process] = gib

    def kv(self, line: Line, gib: float) -> None:
        """Memory that one process has for the cache."""
        if len(self._kv) < _MAX_PROCESSES or line.process in self._kv:
            self._kv[line.process] = gib

    def pool(self, tokens: str | None, requests: str | None, *, length: str | None) -> None:
        """Capacity of one pipeline stage's cache."""
        log = self._log
        if tokens is not None:
            log = replace(log, kv_tokens=(*log.kv_tokens, _whole(tokens))[-64:])
        if requests is not None and length is not None:
            many = (*log.full_length_requests, float(requests))[-64:]
            log = replace(log, full_length_requests=many, max_model_len=_whole(length))
        self._log = log

    def shortage(self, found: re.Match[str]) -> None:
        """A context that the engine refused."""
        fits = int(found["fits"]) if found["fits"] else None
        told = Shortage(int(found["len"]), float(found["need"]), float(found["have"]), fits)
        if told not in self._log.shortages:
            self._log = replace(self._log, shortages=(*self._log.shortages, told)[-16:])

    def rates(self, line: Line, found: re.Match[str]) -> None:
        """A throughput line; an idle one is only counted."""
        later = {name: match[1] for name, form in _LATER.items() if (match := form.search(line.text))}
        usage, hit = later.get("kv_usage"), later.get("prefix_hit_rate")
        sample = Throughput(
            line=line.number,
            prompt_tokens_per_s=float(found["prompt"]),
            generation_tokens_per_s=float(found["generation"]),
            running=int(found["running"]),
            waiting=int(later.get("waiting", 0)),
            kv_usage=None if usage is None else float(usage) / 100,
            prefix_hit_rate=None if hit is None else float(hit) / 100,
            preemptions=int(later.get("preemptions", 0)),
        )
        if not (sample.running or sample.waiting or sample.prompt_tokens_per_s or sample.generation_tokens_per_s):
            self._log = replace(self._log, idle_samples=self._log.idle_samples + 1)
            return
        self._seen += 1
        if self._seen % self._stride == 0:
            self._samples.append(sample)
        if len(self._samples) > MAX_SAMPLES:
            self._samples = self._samples[1::2]
            self._stride *= 2

    def arguments(self, text: str) -> None:
        """The printed dict or Namespace of arguments."""
        read = _read_arguments(text)
        wanted = {"gpu_memory_utilization": "utilization", "max_num_batched_tokens": "max_num_batched_tokens"}
        known: dict[str, Any] = {
            field: read[name] for name, field in wanted.items() if isinstance(read.get(name), int | float)
        }
        model = read.get("model_tag") or read.get("model") or self._log.model
        self._log = replace(self._log, engine="vllm", arguments=tuple(read.items()), model=str(model), **known)

    def config(self, text: str) -> None:
        """The engine's own summary (`Initializing a V1 LLM engine (v0.26.0) with config: model=…, …`)."""
        found = reversed(_CONFIG.findall(text[:LONGEST_CONFIG]))
        read = {name: masked(value.strip("'")) for name, value in found}
        sizes: dict[str, Any] = {
            field: int(read[name]) for name, field in _SIZES.items() if read.get(name, "").isdigit()
        }
        names: dict[str, Any] = {
            field: read[name] for name, field in _NAMES.items() if read.get(name, "None") != "None"
        }
        eager = {"True": True, "False": False}.get(read.get("enforce_eager", ""))
        names["dtype"] = names.get("dtype", "").removeprefix("torch.")
        self._log = replace(self._log, engine="vllm", eager=eager, **sizes, **names)

    def buffer(self, found: re.Match[str]) -> None:
        """One of llama.cpp's buffers."""
        held = self._compute if found["kind"] == "compute" else self._model
        if len(held) < _MAX_PROCESSES:
            held[found["device"]] = float(found["mib"])
        self._log = replace(self._log, engine="llama.cpp")

    def llama(self, **told: float | None) -> None:
        """Add to llama.cpp's memory: a model with a window prints one cache line for each of its two caches."""
        old, new = self._log.llama, {name: value for name, value in told.items() if value is not None}
        added: dict[str, Any] = {name: _sum(getattr(old, name), value) for name, value in new.items()}
        self._log = replace(self._log, engine="llama.cpp", llama=replace(old, **added))

    def eager(self, line: Line) -> None:
        """The engine says itself that graphs and compilation are off."""
        self._log = replace(self._log, eager=True, eager_line=self._log.eager_line or line.number)

    def ready(self) -> None:
        """The server takes requests."""
        self._log = replace(self._log, ready=True)


LONGEST_CONFIG = 8192
"""How much of the engine's summary of its configuration is read."""

_SIZES = {
    "tensor_parallel_size": "tensor_parallel",
    "pipeline_parallel_size": "pipeline_parallel",
    "data_parallel_size": "data_parallel",
    "max_seq_len": "max_model_len",
}
_NAMES = {"quantization": "quantization", "dtype": "dtype", "kv_cache_dtype": "kv_dtype", "model": "model"}


def _whole(text: str) -> int:
    return int(text.replace(",", ""))


def _sum(old: float | None, new: float) -> float:
    return new if old is None else old + new


def _read_arguments(text: str) -> Mapping[str, Any]:
    """The arguments of a printed dict or Namespace; what is no plain value is left out."""
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        form = _ARGUMENT if text.lstrip().startswith("{") else _OLD_ARGUMENT
        return {name: masked_value(_plain(raw), name) for name, raw in form.findall(text)}
    return masked_value(value) if isinstance(value, dict) else {}


def _plain(raw: str) -> Any:
    try:
        return ast.literal_eval(raw)
    except (ValueError, SyntaxError):
        return raw
