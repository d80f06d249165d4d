"""A Chrome trace (as torch's profiler exports it), streamed: time by kernel, and the gaps in which no kernel ran."""

from __future__ import annotations

import codecs
import json
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from casemate.doctor.log.reading import Readable, refuse_compressed
from casemate.errors import UsageError

_CHUNK_BYTES = 1 << 20
_LONGEST_EVENT = 4 << 20
_NAMES_KEPT = 20_000
_INTERVALS_KEPT = 4_000_000
_ON_CARD = ("kernel", "gpu_memcpy", "gpu_memset")
_BETWEEN = re.compile(r"[\s,]*")


@dataclass(frozen=True, slots=True)
class Traced:
    """Milliseconds and calls by kernel, and the milliseconds in which a card that worked had nothing to do.

    `gaps_ms` is the mean over cards; None when there were too many kernels to keep their times.
    """

    kernels: dict[str, tuple[float, int]]
    gaps_ms: float | None


def read(stream: Readable, name: str = "") -> Traced:
    """Sum a trace's kernels.

    Raises:
        UsageError: it is compressed, or no trace in JSON.
    """
    kernels: dict[str, tuple[float, int]] = {}
    times: dict[str, array[float]] = {}
    kept = 0
    for event in _events(stream, name):
        if event.get("cat") not in _ON_CARD or not isinstance(event.get("dur"), int | float):
            continue
        kernel, start, length = str(event.get("name", "")), event.get("ts"), float(event["dur"])
        if kernel in kernels or len(kernels) < _NAMES_KEPT:
            before = kernels.get(kernel, (0.0, 0))
            kernels[kernel] = (before[0] + length / 1000, before[1] + 1)
        if isinstance(start, int | float) and kept < _INTERVALS_KEPT:
            kept += 1
            times.setdefault(str(event.get("pid")), array("d")).extend((float(start), float(start) + length))
    gaps = [_gaps_ms(held) for held in times.values()]
    whole = kept < _INTERVALS_KEPT and gaps
    return Traced(kernels, sum(gaps) / len(gaps) if whole else None)


def _gaps_ms(times: array[float]) -> float:
    pairs = np.frombuffer(times, dtype=np.float64).reshape(-1, 2)
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    reached = np.maximum.accumulate(pairs[:, 1])
    return float(np.clip(pairs[1:, 0] - reached[:-1], 0, None).sum() / 1000)


def _events(stream: Readable, name: str) -> Iterator[dict[str, Any]]:
    """Each event of the trace; the text held at once is bounded."""
    decode, scan = codecs.getincrementaldecoder("utf-8-sig")(errors="replace"), json.JSONDecoder()
    chunk = stream.read(_CHUNK_BYTES)
    refuse_compressed(chunk, name)
    text, inside = "", False
    while chunk:
        text += decode.decode(chunk)
        if not inside:
            begin = re.search(r'"traceEvents"\s*:\s*\[|\A\s*\[', text)
            inside, text = begin is not None, text[begin.end() :] if begin else text[-64:]
        if inside:
            text, found, ended = _taken(text, scan)
            yield from found
            if ended:
                return
            if len(text) > _LONGEST_EVENT:
                raise UsageError("the trace is damaged", where=name, remedy="export it again")
        chunk = stream.read(_CHUNK_BYTES)
    if not inside:
        raise UsageError("no trace in JSON", where=name, remedy="give the file that export_chrome_trace wrote")


def _taken(text: str, scan: json.JSONDecoder) -> tuple[str, list[dict[str, Any]], bool]:
    """The whole events at the front of a text, what is left of it, and whether the list ended."""
    at, found = 0, list[dict[str, Any]]()
    while True:
        at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr] # it matches nothing, too
        if text.startswith("]", at):
            return "", found, True
        try:
            value, at = scan.raw_decode(text, at)
        except (json.JSONDecodeError, RecursionError):
            return text[at:], found, False
        if isinstance(value, dict):
            found.append(value)
