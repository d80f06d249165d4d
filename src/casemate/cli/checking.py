"""What `casemate kb check` reads and prints: a text in any usual encoding, its material, and a row for each verdict."""

from __future__ import annotations

import codecs
import os
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from casemate.errors import UsageError
from casemate.knowledge import citations
from casemate.knowledge.gate.evidence import Material
from casemate.knowledge.graph import Graph

_MAX_BYTES = 50_000_000
_NOT_WRITTEN = frozenset({".git", ".hg", ".svn"})
"""What a repository keeps for itself; every other hidden folder may be what a text is about."""
_MAX_FILES = 5_000
_PROBED_BYTES = 8_192
_MOST_CONTROLS = 0.1
"""Text holds a stray control character at most; a program or an image is full of them."""
_CONTROLS = frozenset(range(32)) - set(b"\t\n\r\f\x1b")
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


@dataclass(frozen=True, slots=True)
class Report:
    """Every verdict on a file, with its text to place them in."""

    path: Path
    text: str
    verdicts: tuple[citations.Verdict, ...]

    @property
    def failed(self) -> bool:
        """Whether anything is wrong."""
        return any(verdict.failed for verdict in self.verdicts)

    def as_json(self) -> dict[str, Any]:
        """One row for each citation, the counts of grades, and rates per 100 citations with their denominator."""
        tally = citations.tally(self.verdicts)
        at = _places(self.text)
        return {
            "citations": [_row(verdict, at) for verdict in self.verdicts],
            "grades": tally.grades,
            "failed_per_100": tally.failed_per_100,
            "rates": {name: value for name, value in asdict(tally).items() if name != "grades"},
        }

    def lines(self) -> Iterator[str]:
        """A line for each citation that is wrong, then one of counts."""
        tally = citations.tally(self.verdicts)
        at = _places(self.text)
        for verdict in self.verdicts:
            if verdict.failed:
                line, column = _place(verdict.mention.start, at)
                place = f"{self.path}:{line}:{column}"
                yield f"{place}: {verdict.grade} {verdict.mention.id}: {verdict.reason}{_advice(verdict)}"
        counts = ", ".join(f"{grade} {count}" for grade, count in tally.grades.items())
        yield f"{tally.citations} citations, {tally.failed} wrong" + (f" ({counts})" if counts else "")


def check(path: Path, graph: Graph, *, against: Path | None = None) -> Report:
    """The verdicts on what a file cites; with `against`, also on what it quotes from that file or folder.

    Raises:
        UsageError: a path cannot be read, is no text, or is too large.
    """
    text = read(path)
    material = None if against is None else Material(dict(_material(against)))
    return Report(path, text, citations.examine(text, graph, material=material))


def read(path: Path) -> str:
    """A text file, in UTF-8, UTF-16 with its mark, or GBK.

    Raises:
        UsageError: it cannot be read, is larger than 50 MB, or is no text.
    """
    try:
        with path.open("rb") as file:  # a pipe tells no size
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(path)) from error
    if len(content) > _MAX_BYTES:
        raise UsageError("the file is larger than 50 MB", where=str(path))
    text = decoded(content)
    if text is None:
        raise UsageError("is not text in UTF-8, UTF-16 or GBK", where=str(path))
    return text


def decoded(content: bytes) -> str | None:
    """Bytes as text; None if they are no text. Line ends become plain ones."""
    encodings = [encoding for bom, encoding in _BOMS if content.startswith(bom)] or ["utf-8", "gbk"]
    probe = content[:_PROBED_BYTES]
    if encodings[0] != "utf-16" and sum(byte in _CONTROLS for byte in probe) > _MOST_CONTROLS * len(probe):
        return None
    for encoding in encodings:
        try:
            return content.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
        except UnicodeDecodeError:
            continue
    return None


def _material(root: Path) -> Iterator[tuple[str, str]]:
    """The text files of a folder by their path in it, or one file by its name; links are not followed."""
    if not root.is_dir():
        yield root.name, read(root)
        return
    files = left = 0
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(name for name in inner if name not in _NOT_WRITTEN)
        for name in sorted(names):
            path = Path(folder, name)
            if path.is_symlink() or not path.is_file() or path.stat().st_size > _MAX_BYTES:
                continue
            files, left = files + 1, left + path.stat().st_size
            if files > _MAX_FILES or left > _MAX_BYTES:
                raise UsageError("the material is larger than 50 MB or 5000 files", where=str(root),
                                 remedy="name the folder that the text is about")  # fmt: skip
            text = decoded(path.read_bytes())
            if text is not None:
                yield path.relative_to(root).as_posix(), text


def _row(verdict: citations.Verdict, starts: list[int]) -> dict[str, Any]:
    line, column = _place(verdict.mention.start, starts)
    return {
        "id": verdict.mention.id,
        "line": line,
        "column": column,
        "grade": verdict.grade,
        "name": verdict.name,
        "version": verdict.version,
        "reason": verdict.reason,
        "replacement": verdict.replacement,
        "proposals": list(verdict.proposals),
    }


def _advice(verdict: citations.Verdict) -> str:
    if verdict.grade == "H5":
        return f"; narrower are {', '.join(verdict.proposals)}" if verdict.proposals else ""
    right = verdict.replacement or verdict.right or ", ".join(verdict.proposals)
    return f"; right is {right}" if right else ""


def _places(text: str) -> list[int]:
    """Where each line begins."""
    starts = [0]
    at = text.find("\n")
    while at >= 0:
        starts.append(at + 1)
        at = text.find("\n", at + 1)
    return starts


def _place(offset: int, starts: list[int]) -> tuple[int, int]:
    line = bisect_right(starts, offset)
    return line, offset - starts[line - 1] + 1
