"""The log as the text of a file that a code host takes: not more than 10 MB once it is compressed with gzip."""

from __future__ import annotations

import zlib

from casemate.finding import AuditResult
from casemate.report.sarif.log import to_sarif
from casemate.report.sarif.manual import Manuals
from casemate.report.visible import as_json

_MOST_BYTES = 10_000_000


def to_text(
    audit: AuditResult, *, version: str, manuals: Manuals, prefix: str = "", most_bytes: int = _MOST_BYTES
) -> str:
    """The SARIF log; where it would be too big, with fewer of the mildest results, which a notification counts.

    Args:
        audit: the result.
        version: Casemate's version.
        manuals: what the rules say of themselves, by rule id.
        prefix: folder of the audited root inside its repository, with forward slashes.
        most_bytes: how big the compressed file may be.
    """
    log = to_sarif(audit, version=version, prefix=prefix, manuals=manuals)
    text = as_json(log, compact=True)
    kept = len(log["runs"][0]["results"])
    del log  # beside its text it is the biggest thing in memory
    while kept and (size := _compressed_bytes(text, most_bytes)) > most_bytes:
        kept = int(kept * most_bytes / size * 0.95)
        text = as_json(to_sarif(audit, version=version, prefix=prefix, manuals=manuals, most=kept), compact=True)
    return text


def _compressed_bytes(text: str, most_bytes: int) -> int:
    if 4 * len(text) <= most_bytes:
        return 0  # too few characters to be too many bytes
    return len(zlib.compress(text.encode(), 6))
