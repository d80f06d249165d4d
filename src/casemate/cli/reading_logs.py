"""`casemate doctor --log` and `--profile`: opens what is to be read, and tells what was found in it."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from io import BufferedReader, FileIO
from typing import Any

import typer

from casemate.cli.output import print_json, width
from casemate.doctor import diagnose as diagnosis
from casemate.doctor.log import profile as profiles
from casemate.doctor.log.facts import EngineLog
from casemate.doctor.log.ranking import LogFinding
from casemate.errors import UsageError
from casemate.report.visible import visible

_DONE, _FOUND, _INCOMPLETE = 0, 1, 2
_EXIT = {"healthy": _DONE, "failed": _FOUND, "unfinished": _INCOMPLETE, "unknown": _INCOMPLETE}
_HEAD_BYTES = 1 << 16
_TOLD = {
    "failed": "the engine failed",
    "healthy": "healthy: the engine became ready, and nothing ended it",
    "unfinished": "nothing went wrong so far; the log ends before the engine was ready",
    "unknown": "no line of an engine in it",
}
_LABELS = {
    "cause": "cause",
    "unrecognised": "unrecognised",
    "symptom": "symptom",
    "survived": "survived",
    "degraded": "slower than it could be",
    "request": "failed requests",
    "notice": "notice",
    "consequence": "consequence",
}


def diagnose(path: str, *, json: bool) -> int:
    """Judge a log (or a profile that was given as one) and print it.

    Args:
        path: a file, or `-` for standard input.
        json: print JSON instead of text.

    Returns:
        The exit code: 0 healthy, 1 the engine failed, 2 the log does not tell.

    Raises:
        UsageError: there is no such file, or it is compressed.
    """
    with opened(path) as stream:
        form = profiles.recognise(stream.peek(_HEAD_BYTES)[:_HEAD_BYTES])
        if form is not None:
            return _profiled(profiles.read(stream, form, name=path), path, json=json)
        told = diagnosis.diagnose(stream, path)
    if json:
        print_json(as_json(told, path))
    else:
        for line in _lines(told, path):
            typer.echo(visible(line))
    return _EXIT[told.verdict]


def profile(path: str, *, json: bool) -> int:
    """Read a profile for the stage that costs most and print it; returns 0.

    Raises:
        UsageError: there is no such file, or it is no profile in a form that is read.
    """
    with opened(path) as stream:
        form = profiles.recognise(stream.peek(_HEAD_BYTES)[:_HEAD_BYTES])
        if form is None:
            remedy = "give a table of nsys stats or of torch's profiler, or a Chrome trace"
            raise UsageError("no profile in a form that is read", where=path, remedy=remedy)
        return _profiled(profiles.read(stream, form, name=path), path, json=json)


def facts(path: str) -> EngineLog:
    """The facts of the last launch in a log.

    Raises:
        UsageError: there is no such file, or it is compressed.
    """
    with opened(path) as stream:
        return diagnosis.diagnose(stream, path).facts


@contextmanager
def opened(path: str) -> Iterator[BufferedReader[FileIO]]:
    """The bytes of a file, or of standard input for `-`.

    Raises:
        UsageError: there is no such file.
    """
    if path == "-":
        with BufferedReader(FileIO(sys.stdin.fileno(), closefd=False), _HEAD_BYTES) as stream:
            yield stream
        return
    try:
        raw = FileIO(path)
    except OSError as error:
        raise UsageError(f"cannot read the log: {error.strerror}", where=path, remedy="name a file, or -") from error
    with BufferedReader(raw, _HEAD_BYTES) as stream:
        yield stream


def as_json(told: diagnosis.Diagnosis, path: str) -> dict[str, Any]:
    """A diagnosis as JSON values."""
    log = asdict(told.facts) | {"arguments": dict(told.facts.arguments)}
    log["shortages"] = [
        asdict(one) | {"slope_bytes_per_token": one.slope_bytes_per_token, "fixed_gib": one.fixed_gib}
        for one in told.facts.shortages
    ]
    for name in ("weights_gib", "kv_gib"):
        log[name] = dict(log[name])
    return {
        "log": path,
        "verdict": told.verdict,
        "note": told.note,
        "lines": told.lines,
        "launches": told.launches,
        "root": asdict(told.root) if told.root else None,
        "findings": [asdict(one) for one in told.findings],
        "earlier": [asdict(one) for one in told.earlier],
        "facts": log,
    }


def _lines(told: diagnosis.Diagnosis, path: str) -> Iterator[str]:
    launches = f", {told.launches} launches" if told.launches > 1 else ""
    yield f"{path}: {_TOLD[told.verdict]} ({told.lines} lines{launches})"
    if told.note:
        yield f"  {told.note}"
    for finding in told.findings:
        yield ""
        yield from _finding(finding)
    for one in told.earlier:
        yield ""
        yield f"earlier launch from line {one.line}: {one.id or 'nothing found'}" + (
            f", line {one.cause_line}: {one.quote}" if one.quote else ""
        )
    shown = list(_facts(told.facts))
    if shown:
        yield ""
        yield "facts"
        yield from (f"  {name:<22} {value}" for name, value in shown)


def _finding(one: LogFinding) -> Iterator[str]:
    yield f"{_LABELS[one.standing]}: {one.id} ({one.component})"
    place = [f"line {one.line}"] if one.line else []
    place += [one.process] if one.process else []
    place += [f"{one.count} lines alike"] if one.count > 1 else []
    place += [f"from {one.processes} processes"] if one.processes > 1 else []
    if place:
        yield "  " + ", ".join(place)
    if one.quote:
        yield f"  > {one.quote}"
    if one.code:
        yield f"  > line {one.code_line}: {one.code}"
    if one.standing == "consequence":
        return
    told = (("figures", one.detail), ("why", one.root_cause), ("do", one.fix), ("check", one.verify))
    for label, text in (*told, ("source", ", ".join(one.source)), ("confidence", one.confidence)):
        if text:
            hang = " " * (len(label) + 4)
            yield textwrap.fill(
                f"  {label}: {text}", width(), subsequent_indent=hang, break_long_words=False, break_on_hyphens=False
            )


def _facts(log: EngineLog) -> Iterator[tuple[str, str]]:
    gib = "GiB"
    plain = (
        ("engine", " ".join(filter(None, (log.engine, log.engine_version)))),
        ("model", log.model),
        ("architecture", log.architecture),
        ("arguments", ", ".join(f"{name}={value}" for name, value in log.arguments)[:400]),
        (
            "weights",
            ", ".join(f"{value} {gib} ({name})" if name else f"{value} {gib}" for name, value in log.weights_gib),
        ),
        ("cache", ", ".join(f"{value} {gib} ({name})" if name else f"{value} {gib}" for name, value in log.kv_gib)),
        ("cache, printed tokens", ", ".join(f"{tokens:,}" for tokens in log.kv_tokens)),
        ("full-length requests", ", ".join(f"{many}x" for many in log.full_length_requests)),
    )
    yield from ((name, value) for name, value in plain if value)
    figures = (
        ("context", log.max_model_len, "tokens"),
        ("batched tokens", log.max_num_batched_tokens, "tokens"),
        ("activation peak", log.activation_gib, gib),
        ("outside torch", log.non_torch_gib, gib),
        ("CUDA graphs, estimate", log.graphs_estimated_gib, gib),
        ("CUDA graphs", log.graphs_actual_gib, gib),
        ("start", log.init_s, "s"),
        ("llama.cpp cache", log.llama.kv_mib, "MiB"),
        ("llama.cpp fixed state", log.llama.recurrent_mib, "MiB"),
    )
    yield from ((name, f"{value:,} {unit}") for name, value, unit in figures if value is not None)
    busy = [one for one in log.samples if one.generation_tokens_per_s]
    if busy:
        best = max(busy, key=lambda one: one.generation_tokens_per_s)
        yield "generation, best", f"{best.generation_tokens_per_s} tokens/s with {best.running} running"


def _profiled(read: profiles.Profile, path: str, *, json: bool) -> int:
    if json:
        value = {"profile": path, "costliest": read.costliest, "advice": read.advice, **asdict(read)}
        print_json(value)
        return _DONE
    typer.echo(visible(f"{path}: {read.costliest} costs most ({read.device_ms:,.1f} ms on the card)"))
    typer.echo(f"  {read.advice}")
    for one in read.stages:
        typer.echo(visible(f"  {one.share:6.1%}  {one.ms:12,.2f} ms  {one.stage:<22} {'; '.join(one.kernels)[:120]}"))
    if read.gaps_ms is not None and read.span_ms:
        typer.echo(f"  {read.gaps_ms / read.span_ms:6.1%}  {read.gaps_ms:12,.2f} ms  gaps (no kernel ran)")
    return _DONE
