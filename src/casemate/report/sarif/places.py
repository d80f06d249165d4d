"""Places of a finding as SARIF writes them: addresses from the repository's root, regions that start at 1."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from casemate.finding import Location
from casemate.report.visible import visible

ROOT = "%SRCROOT%"
_LONGEST = 1024
"""Characters that hosts take in a rule's descriptions."""


def address(path: str, prefix: str = "") -> str:
    """A path as a relative URI reference from the repository's root, percent-encoded byte by byte."""
    whole = "/".join(part for part in (*prefix.split("/"), *path.split("/")) if part not in {"", "."})
    return quote(whole, safe="/", errors="surrogateescape") if _is_utf8_or_escaped(whole) else quote(visible(whole))


def region(place: Location) -> dict[str, int]:
    """A SARIF region: every number at least 1, and the end not before the start."""
    line, column = max(1, place.line), max(1, place.column)
    end_line, end_column = max(line, place.end_line), max(1, place.end_column)
    if end_line == line:
        end_column = max(column, end_column)
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}


def artifact(path: str, prefix: str) -> dict[str, str]:
    """A file as an artifact location."""
    return {"uri": address(path, prefix), "uriBaseId": ROOT}


def physical(place: Location, prefix: str, *, snippet: str = "") -> dict[str, Any]:
    """A physical location, with the source text there if it is given."""
    where: dict[str, Any] = dict(region(place))
    if snippet:
        where["snippet"] = {"text": visible(snippet)}
    return {"artifactLocation": artifact(place.path, prefix), "region": where}


def plain(text: str) -> dict[str, str]:
    """A message or description that is not too long for hosts."""
    return {"text": visible(text)[:_LONGEST]}


def _is_utf8_or_escaped(path: str) -> bool:
    """Whether the path's bytes can be had back: lone surrogates outside the escape range cannot."""
    try:
        path.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return False
    return True
