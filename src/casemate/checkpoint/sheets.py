"""What the checkpoint tools found, as documents for people and as objects for programs. Nothing is looked up here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from casemate.checkpoint.assembling import Assembled
from casemate.checkpoint.inspecting import SAFE_ROUTE, Inspection
from casemate.checkpoint.layout import Layout
from casemate.checkpoint.remapping import Difference, Outcome
from casemate.checkpoint.verifying import Verified
from casemate.finding import Unread
from casemate.report import document as d

SHOWN = 12
"""How many places, names or files of a kind a document shows unless all are asked for; objects have all."""


def inspection_sheet(seen: Inspection) -> d.Document:
    """An inspection, for people."""
    return d.Document(f"Checkpoint {seen.path}", tuple(_inspection_sections(seen)), lead=(_what_it_is(seen),))


def inspection_object(seen: Inspection) -> dict[str, Any]:
    """An inspection, for programs."""
    plain = asdict(seen)
    plain["path"] = str(seen.path)
    plain["biggest"] = [
        {"name": t.name, "dtype": t.dtype, "shape": t.shape, "file": t.file, "size_bytes": t.size_bytes}
        for t in seen.biggest
    ]
    plain["licence_stated"] = bool(seen.licence)
    return {**plain, "tensors": seen.tensors, "tensor_bytes": seen.tensor_bytes}


def verification_sheet(verified: Verified, *, manifest: str = "") -> d.Document:
    """A check, for people; `manifest` is where one was written."""
    counts = d.Figures((
        d.Figure("weight files", str(verified.files)),
        d.Figure("tensors", f"{verified.tensors:,}"),
        d.Figure("tensor bytes", size(verified.tensor_bytes)),
        d.Figure("index", "yes" if verified.has_index else "none"),
        *((d.Figure("pickles", f"{len(verified.pickles)}, not opened"),) if verified.pickles else ()),
        d.Figure("hashed", f"{len(verified.digests)} files, {verified.checked_hashes} of them against a known hash"),
        *((d.Figure("manifest", manifest),) if manifest else ()),
    ))  # fmt: skip
    sections = [d.Section(found.fault.value, (_lines(found.places),), ()) for found in verified.found]
    if verified.unread:
        sections.append(d.Section("not read", (_lines(_reasons(verified.unread)),)))
    return d.Document(f"Checkpoint {verified.path}", tuple(sections), lead=(_soundness(verified), counts))


def verification_object(verified: Verified, *, manifest: str = "") -> dict[str, Any]:
    """A check, for programs."""
    return {
        "path": str(verified.path),
        "clean": verified.is_clean,
        "complete": not verified.unread,
        "files": verified.files,
        "tensors": verified.tensors,
        "tensor_bytes": verified.tensor_bytes,
        "index": verified.has_index,
        "found": [{"fault": item.fault.name.lower(), "places": item.places} for item in verified.found],
        "unread": [asdict(item) for item in verified.unread],
        "pickles": verified.pickles,
        "checked_hashes": verified.checked_hashes,
        "hashes": [{"file": digest.file, "sha256": digest.sha256} for digest in verified.digests],
        "manifest": manifest or None,
    }


def remapping_sheet(outcome: Outcome, *, everything: bool = False) -> d.Document:
    """What a remapping changes, for people: the first names of each kind, or all of them."""
    difference = outcome.difference
    rows = tuple(
        (str(number), rule.match, "(dropped)" if rule.replace is None else rule.replace, str(count))
        for number, (rule, count) in enumerate(difference.uses, start=1)
    )
    kinds = (
        ("collisions", [f"{item.name} ← {', '.join(item.origins)}" for item in difference.collisions]),
        ("renamed", [f"{item.old} → {item.new}" for item in difference.renamed]),
        ("dropped", [f"{tensor.name} ({size(tensor.size_bytes)})" for tensor in difference.dropped]),
        ("named in config.json, which is copied as it is: mend it by hand", outcome.stale),
        ("not copied", _pairs(outcome.left_out)),
    )
    sections = [d.Section("rules", (d.Table(("rule", "match", "replace", "names"), rows),))] if rows else []
    most = None if everything else SHOWN
    sections += [d.Section(title, (_lines(lines, most=most),)) for title, lines in kinds if lines]
    return d.Document("Remapping", tuple(sections), lead=_deeds(difference, outcome.written))


def remapping_object(outcome: Outcome) -> dict[str, Any]:
    """What a remapping changes, for programs."""
    difference = outcome.difference
    return {
        "applied": outcome.written is not None,
        "renamed": [asdict(item) for item in difference.renamed],
        "dropped": [
            {"name": tensor.name, "file": tensor.file, "size_bytes": tensor.size_bytes} for tensor in difference.dropped
        ],
        "untouched": difference.untouched,
        "collisions": [asdict(item) for item in difference.collisions],
        "rules": [{**asdict(rule), "names": count} for rule, count in difference.uses],
        "stale_in_config": outcome.stale,
        **_copied(outcome.left_out, outcome.written),
    }


def layout_sheet(layout: Layout, written: Assembled | None) -> d.Document:
    """A layout in new files, for people."""
    rows = tuple((target.file, f"{len(target.pieces):,}", size(target.data_bytes)) for target in layout.targets)
    shown, rest = rows[:SHOWN], rows[SHOWN:]
    blocks: list[d.Block] = [d.Table(("file", "tensors", "tensor bytes"), shown)]
    if rest:
        blocks.append(d.Paragraph(f"… and {len(rest)} more files"))
    sections = [d.Section("files", tuple(blocks))]
    if layout.left_out:
        sections.append(d.Section("not copied", (_lines(_pairs(layout.left_out)),)))
    return d.Document("Sharding", tuple(sections), lead=(_writing(written),))


def layout_object(layout: Layout, written: Assembled | None) -> dict[str, Any]:
    """A layout in new files, for programs."""
    return {
        "applied": written is not None,
        "files": [
            {"name": target.file, "tensors": len(target.pieces), "tensor_bytes": target.data_bytes}
            for target in layout.targets
        ],
        **_copied(layout.left_out, written),
    }


def size(size_bytes: int) -> str:
    """Bytes for people: `159.62 GB (148.66 GiB)`, small ones as they are."""
    if size_bytes < 10**6:
        return f"{size_bytes:,} B"
    if size_bytes < 10**9:
        return f"{size_bytes / 1e6:.2f} MB ({size_bytes / (1 << 20):.2f} MiB)"
    return f"{size_bytes / 1e9:.2f} GB ({size_bytes / (1 << 30):.2f} GiB)"


def _what_it_is(seen: Inspection) -> d.Block:
    weights = (
        f"{len(seen.files)} safetensors, {size(sum(file.size_bytes for file in seen.files))}" if seen.files else "none"
    )
    licence = "; ".join(f"{item.says} ({item.source})" for item in seen.licence) or "not stated"
    figures = [
        d.Figure("architecture", seen.architecture or "not known"),
        d.Figure("model type", seen.model_type or "not known"),
        *((d.Figure("quantization", seen.quantization),) if seen.quantization else ()),
        d.Figure("weight files", weights),
        d.Figure("tensors", f"{seen.tensors:,}, {size(seen.tensor_bytes)}"),
        d.Figure("licence", licence),
    ]
    return d.Figures(tuple(figures))


def _inspection_sections(seen: Inspection) -> Iterable[d.Section]:
    dtypes = tuple((a.dtype, f"{a.tensors:,}", f"{a.numbers:,}", size(a.size_bytes)) for a in seen.dtypes)
    parts = tuple((part.name, size(part.size_bytes)) for part in seen.parts)
    biggest = tuple((t.name, t.dtype, "x".join(map(str, t.shape)), size(t.size_bytes)) for t in seen.biggest)
    ggufs = tuple(
        (g.name, g.architecture, f"{g.layers}", f"{g.context_length:,}", size(g.weights_bytes)) for g in seen.ggufs
    )
    tables = (
        ("data types", ("type", "tensors", "numbers", "bytes"), dtypes),
        ("parts", ("part", "bytes"), parts),
        ("biggest tensors", ("name", "type", "shape", "bytes"), biggest),
        ("GGUF files", ("name", "architecture", "layers", "window in tokens", "bytes"), ggufs),
    )
    yield from (d.Section(title, (d.Table(header, rows),)) for title, header, rows in tables if rows)
    if seen.pickles:
        names = [f"{pickle.name} ({size(pickle.size_bytes)})" for pickle in seen.pickles]
        yield d.Section(f"{_several(len(names), 'pickle')}, not opened", (_lines(names), d.Paragraph(SAFE_ROUTE)))
    others = (
        ("not read", _reasons(seen.unread)),
        ("weight files that the index does not name", seen.unnamed),
        ("code that came along", seen.code),
        ("notes", seen.notes),
    )
    yield from (d.Section(title, (_lines(lines),)) for title, lines in others if lines)


def _soundness(verified: Verified) -> d.Verdict:
    kinds, places = len(verified.found), sum(len(found.places) for found in verified.found)
    told = f"{_several(places, 'fault')} of {_several(kinds, 'kind')}" if kinds else "no fault found"
    if verified.unread:
        return d.Verdict("warn", f"incomplete: {_several(len(verified.unread), 'file')} could not be read; {told}")
    return d.Verdict("bad" if kinds else "good", told)


def _deeds(difference: Difference, written: Assembled | None) -> tuple[d.Block, ...]:
    figures = d.Figures((
        d.Figure("renamed", f"{len(difference.renamed):,}"),
        d.Figure("dropped", f"{len(difference.dropped):,}, {size(difference.dropped_bytes)}"),
        d.Figure("untouched", f"{difference.untouched:,}"),
        d.Figure("collisions", f"{len(difference.collisions):,}"),
    ))  # fmt: skip
    verdicts = [_writing(written)]
    if difference.idle:
        verdicts.append(d.Verdict("warn", f"{_several(len(difference.idle), 'rule')} without any name that matches"))
    if difference.collisions:
        verdicts.append(d.Verdict("bad", "names collide: these rules cannot be applied"))
    return (*verdicts, figures)


def _writing(written: Assembled | None) -> d.Verdict:
    if written is None:
        return d.Verdict("note", "nothing is written yet; this is what would be")
    resumed = f", {size(written.resumed_bytes)} of it by an earlier run" if written.resumed_bytes else ""
    return d.Verdict("good", f"{written.output}: {written.files} files, {size(written.size_bytes)}{resumed}")


def _several(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _copied(left_out: tuple[tuple[str, str], ...], written: Assembled | None) -> dict[str, Any]:
    return {
        "not_copied": [{"file": file, "reason": reason} for file, reason in left_out],
        "written": {**asdict(written), "output": str(written.output)} if written else None,
    }


def _reasons(unread: Sequence[Unread]) -> list[str]:
    return _pairs([(item.path, item.reason) for item in unread])


def _pairs(pairs: Sequence[tuple[str, str]]) -> list[str]:
    return [f"{file}: {reason}" for file, reason in pairs]


def _lines(lines: Sequence[str], *, most: int | None = SHOWN) -> d.Code:
    shown = [d.one_line(line) for line in lines[:most]]
    rest = len(lines) - len(shown)
    return d.Code("\n".join((*shown, *([f"… and {rest:,} more"] if rest else ()))))
