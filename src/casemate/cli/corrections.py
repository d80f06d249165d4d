"""The stored corrections of the planner: a small file in the home folder, readable by its owner alone.

A plan rests on it, so what is in it is held against types and bounds, and refused by name where it does not fit.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from casemate.checkpoint.facts import Checkpoint
from casemate.doctor.machine import Machine
from casemate.errors import UsageError
from casemate.plan.calibration import BOUNDS, OTHER_MOST_SHARE, find
from casemate.plan.correction import NOTHING, Correction, Entry, Found, Host, Kind, Shape

FILE = "calibration.json"
SCHEMA_VERSION = 1

_MOST_BYTES = 1 << 20
_MOST_ENTRIES = 256
_REMEDY = "casemate calibrate --forget removes it"
_LINKS = ("", "host", "pcie", "nvlink", "nvswitch")
_MOST_KINDS, _MOST_COUNT, _MOST_SIZE = 16, 1 << 32, 1 << 52
_CARD_SLACK = 1.03
"""The engine may see a little more of a card than the driver told."""
_WORD = re.compile(r"[\w.+-]{0,128}", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_RELEASE = re.compile(r"\d{1,4}(?:\.\d{1,4}){1,3}", re.ASCII)


def of_plan(root: Path, machine: Machine, *, checkpoint: Checkpoint, version: str) -> Found:
    """What is stored in this home folder for a plan: its correction (`NOTHING` if none), and notes to print.

    A damaged file corrects nothing, and a note says so: a plan can do without.
    """
    try:
        entries = load(root / FILE)
    except UsageError as error:
        return Found(NOTHING, (f"planned without corrections: {error}",))
    return find(entries, machine, checkpoint=checkpoint, version=version)


def load(path: Path) -> tuple[Entry, ...]:
    """All that is stored, the oldest first; empty where there is no file.

    Raises:
        UsageError: it is no plain file, too large, no JSON, or holds what cannot be.
    """
    data = _read(path)
    if data is None:
        return ()
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _refused(path, "it is no JSON") from error
    try:
        return _entries(value)
    except (TypeError, ValueError, KeyError) as error:
        raise _refused(path, str(error)[:120]) from error


def save(path: Path, entries: tuple[Entry, ...]) -> None:
    """Store these, the newest last, in place of what was there; whole or not at all.

    Raises:
        UsageError: it cannot be written there, or is nothing that could be read again.
    """
    value = {"schema_version": SCHEMA_VERSION, "corrections": [asdict(entry) for entry in entries[-_MOST_ENTRIES:]]}
    written = json.dumps(value, indent=1)
    try:
        _entries(json.loads(written))
    except ValueError as error:  # a config's own words are among them
        raise UsageError(f"the correction cannot be stored: {error}", where=str(path)) from error
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(written + "\n")
                file.flush()
                os.fsync(descriptor)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"the correction cannot be stored: {error.strerror}", where=str(path)) from error


def forget(path: Path) -> None:
    """Remove the file, whatever it holds.

    Raises:
        UsageError: it cannot be removed.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"the corrections cannot be removed: {error.strerror}", where=str(path)) from error


def _read(path: Path) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        why = "it is a link" if error.errno == errno.ELOOP else f"it cannot be read: {error.strerror}"
        raise _refused(path, why) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _refused(path, "it is no plain file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(_MOST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > _MOST_BYTES:
        raise _refused(path, "it is too large")
    return data


def _refused(path: Path, why: str) -> UsageError:
    return UsageError(f"the stored corrections cannot be used: {why}", where=str(path), remedy=_REMEDY)


def _entries(value: object) -> tuple[Entry, ...]:
    whole = _mapping(value, "the file", names={"schema_version", "corrections"})
    if whole["schema_version"] != SCHEMA_VERSION:
        raise ValueError("its schema_version is not that of this Casemate")
    listed = _items(whole["corrections"], "corrections", most=_MOST_ENTRIES)
    return tuple(_entry(item) for item in listed)


def _entry(value: object) -> Entry:
    read = _mapping(value, "a correction", names=_names(Entry))
    host = _host(read["host"])
    most = max((kind.memory_bytes for kind in host.kinds), default=0) or _MOST_SIZE
    return Entry(
        host=host,
        shape=_shape(read["shape"]),
        release=_text(read["release"], "release", form=_RELEASE),
        correction=_correction(read["correction"], card_bytes=most),
        **{name: _count(read[name], name) for name in ("tensor", "pipeline", "batched_tokens", "context")},
    )


def _host(value: object) -> Host:
    read = _mapping(value, "host", names=_names(Host))
    if read["link"] not in _LINKS:
        raise ValueError("host.link is none that is known")
    return Host(tuple(_kind(item) for item in _items(read["kinds"], "host.kinds", most=_MOST_KINDS)), read["link"])


def _kind(value: object) -> Kind:
    read = _mapping(value, "host.kinds", names=_names(Kind))
    major, minor = _items(read["capability"], "capability", most=2)
    return Kind(
        count=_count(read["count"], "count"),
        capability=(_count(major, "capability"), _count(minor, "capability")),
        multiprocessors=_count(read["multiprocessors"], "multiprocessors"),
        memory_bytes=_count(read["memory_bytes"], "memory_bytes", most=_MOST_SIZE),
    )


def _shape(value: object) -> Shape:
    read = _mapping(value, "shape", names=_names(Shape))
    words = ("architecture", "dtype", "quantization", "expert_dtype")
    found: dict[str, Any] = {name: _text(read[name], name, form=_WORD) for name in words}
    found |= {name: _count(read[name], name, most=_MOST_SIZE) for name in read if name not in words}
    return Shape(**found)


def _correction(value: object, *, card_bytes: int) -> Correction:
    """The factors and bytes, no further off than a start-up is believed (`calibration.BOUNDS`)."""
    read = _mapping(value, "correction", names=_names(Correction))
    maybe = ("graphs", "graphs_estimate", "prefill", "decode")
    other = int(card_bytes * _CARD_SLACK * OTHER_MOST_SHARE)
    sizes = {"alone_bytes": other, "ranks_bytes": other, "card_bytes": int(card_bytes * _CARD_SLACK)}
    factors = [name for name in BOUNDS if name not in maybe or read[name] is not None]
    found: dict[str, Any] = {name: _factor(read[name], name) for name in factors}
    found |= {name: _count(read[name], name, most=most) for name, most in sizes.items() if read[name] is not None}
    return Correction(date=_text(read["date"], "date", form=_DATE), **found)


def _names(kind: type) -> set[str]:
    return {field.name for field in fields(kind)}


def _mapping(value: object, where: str, *, names: set[str]) -> Mapping[str, Any]:
    if not isinstance(value, dict) or set(value) != names:
        raise ValueError(f"{where} does not have the fields {', '.join(sorted(names))}")
    return value


def _items(value: object, where: str, *, most: int) -> list[object]:
    if not isinstance(value, list) or len(value) > most:
        raise ValueError(f"{where} is no list of at most {most}")
    return value


def _text(value: object, name: str, *, form: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not form.fullmatch(value):
        raise ValueError(f"{name} is not written as it should be")
    return value


def _count(value: object, name: str, *, most: int = _MOST_COUNT) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"{name} is no number that it can be")
    return value


def _factor(value: object, name: str) -> float:
    least, most = BOUNDS[name]
    plausible = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not plausible or not isinstance(value, int | float) or not least <= value <= most:
        raise ValueError(f"{name} is no factor between {least:g} and {most:g}")
    return float(value)
