"""What a calibration says to people and programs: each part before and after, and what is stored. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from casemate.plan.calibration import Calibration, Row, Unusable
from casemate.plan.correction import Correction, Entry
from casemate.plan.decision import GIB
from casemate.report import document as d

_HEADER = ("GiB of the fullest rank", "predicted", "measured", "off by", "corrected", "off by", "carries over as")


def of_calibration(found: Calibration, *, stored: bool) -> d.Document:
    """The parts side by side, with the error before and after; `stored`: it is kept, not only shown."""
    entry = found.entry
    cache = next(row for row in found.rows if row.name == "cache")
    before, after = (_miss(size, cache.measured_bytes) for size in (cache.predicted_bytes, cache.corrected_bytes))
    kept = "Stored" if stored else "Not stored (a dry run)"
    told = f"{kept}: the cache was predicted {before}; corrected it is {after}."
    rows = tuple(_cells(row) for row in found.rows)
    sections = [d.Section("Memory", (d.Table(_HEADER, rows),))]
    if found.notes:
        sections.append(d.Section("What the log does not tell", tuple(d.Verdict("note", note) for note in found.notes)))
    return d.Document(
        f"Calibration: {entry.shape.architecture} on vLLM {entry.release}",
        tuple(sections),
        lead=(d.Verdict("good", told), d.Paragraph(f"For {_machine(entry)}; measured with {_values(entry)}.")),
    )


def of_unusable(found: Unusable) -> d.Document:
    """Why nothing was corrected."""
    reasons = tuple(d.Verdict("note", reason) for reason in found.reasons)
    lead = (d.Verdict("bad", "This log corrects nothing."),)
    return d.Document("Calibration", (d.Section("Why not", reasons),), lead=lead)


def of_entries(entries: tuple[Entry, ...]) -> d.Document:
    """All that is stored, the newest last."""
    if not entries:
        return d.Document("Calibrations", lead=(d.Paragraph("None is stored."),))
    return d.Document("Calibrations", tuple(_section(entry) for entry in entries))


def value_of_calibration(found: Calibration, *, stored: bool) -> dict[str, Any]:
    """The same for programs, in GiB."""
    rows = [
        {
            "part": row.name,
            "predicted_gib": row.predicted_bytes / GIB,
            "measured_gib": None if row.measured_bytes is None else row.measured_bytes / GIB,
            "corrected_gib": row.corrected_bytes / GIB,
            "error_before_gib": _off(row.predicted_bytes, row.measured_bytes),
            "error_after_gib": _off(row.corrected_bytes, row.measured_bytes),
        }
        for row in found.rows
    ]
    return {"stored": stored, "reasons": [], "rows": rows, "notes": list(found.notes), **value_of_entry(found.entry)}


def value_of_unusable(found: Unusable) -> dict[str, Any]:
    """The same for programs."""
    return {"stored": False, "reasons": list(found.reasons), "rows": [], "notes": []}


def value_of_entry(entry: Entry) -> dict[str, Any]:
    """A stored correction as JSON values; its fields are those of `correction.Entry`."""
    return asdict(entry)


def _cells(row: Row) -> tuple[str, ...]:
    measured = "not printed" if row.measured_bytes is None else f"{row.measured_bytes / GIB:.2f}"
    return (
        row.name,
        f"{row.predicted_bytes / GIB:.2f}",
        measured,
        _signed(_off(row.predicted_bytes, row.measured_bytes)),
        f"{row.corrected_bytes / GIB:.2f}",
        _signed(_off(row.corrected_bytes, row.measured_bytes)),
        _carried(row),
    )


def _carried(row: Row) -> str:
    if row.name == "cache":
        return "what is left"
    if row.name == "outside the allocator":
        return "bytes"
    return f"factor {row.corrected_bytes / row.predicted_bytes:.4f}" if row.predicted_bytes else ""


def _off(size: int, measured: int | None) -> float | None:
    return None if measured is None else (size - measured) / GIB


def _signed(gib: float | None) -> str:
    return "" if gib is None else f"{round(gib, 2) + 0.0:+.2f}"


def _miss(size: int, measured: int | None) -> str:
    """How far a prediction was off: `1.92 GiB too small (-13.1 %)`."""
    off = round(_off(size, measured) or 0.0, 2)
    if not measured or not off:
        return "as measured"
    share = f" ({(size - measured) / measured:+.1%})" if measured > 0 else ""
    return f"{abs(off):.2f} GiB too {'large' if off > 0 else 'small'}{share}"


def _section(entry: Entry) -> d.Section:
    model = f"{entry.shape.architecture}, {entry.shape.layers} layers, {entry.shape.weights_bytes / GIB:.1f} GiB"
    figures = (
        d.Figure("machine", _machine(entry)),
        d.Figure("model", model),
        d.Figure("measured with", _values(entry)),
        d.Figure("corrections", "; ".join(_factors(entry.correction))),
    )
    return d.Section(f"vLLM {entry.release}, start-up of {entry.correction.date}", (d.Figures(figures),))


def _machine(entry: Entry) -> str:
    cards = " and ".join(
        f"{kind.count} × sm_{kind.capability[0]}{kind.capability[1]} ({kind.multiprocessors} SMs,"
        f" {kind.memory_bytes / GIB:.0f} GiB)"
        for kind in entry.host.kinds
    )
    return f"{cards}, {entry.host.link}" if entry.host.link else cards


def _values(entry: Entry) -> str:
    ranks = f"{entry.tensor} rank{'s' if entry.tensor > 1 else ''}"
    staged = f" in {entry.pipeline} stages" if entry.pipeline > 1 else ""
    return f"{ranks}{staged}, {entry.batched_tokens:,} batched tokens, context {entry.context:,}"


def _factors(correction: Correction) -> Iterator[str]:
    yield f"weights × {correction.weights:.4f}"
    yield f"peak × {correction.forward:.4f}"
    named = (
        ("graphs", correction.graphs),
        ("graphs set aside", correction.graphs_estimate),
        ("prompts", correction.prefill),
        ("decoding", correction.decode),
    )
    yield from (f"{name} × {factor:.3f}" for name, factor in named if factor is not None)
    sizes = (("outside, alone", correction.alone_bytes), ("outside, ranks", correction.ranks_bytes))
    yield from (f"{name} {size / GIB:.2f} GiB" for name, size in sizes if size is not None)
