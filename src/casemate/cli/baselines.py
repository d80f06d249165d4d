"""Baselines as files: read before an audit, written after it."""

from __future__ import annotations

from pathlib import Path

from casemate.cli import output
from casemate.errors import UsageError
from casemate.finding import AuditResult
from casemate.report import baseline
from casemate.report.baseline import Baseline

_MOST_BYTES = 256 << 20


def read(path: Path | None) -> Baseline | None:
    """The baseline in a file; None where none is named.

    Raises:
        UsageError: the file cannot be read, or is no baseline.
    """
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES).decode()
    except OSError as error:
        raise UsageError(
            f"the baseline cannot be read: {error.strerror}", where=str(path), remedy="name an existing file"
        ) from error
    except UnicodeDecodeError:
        text = ""  # no baseline of ours, and the parser says so
    return baseline.parse(text, where=str(path))


def write(result: AuditResult, path: Path | None) -> None:
    """Write what was found as the new baseline, where a file is named.

    Raises:
        UsageError: the file cannot be written, or only a part of the findings was asked for.
    """
    if path is None:
        return
    if result.ledger.limited:
        raise UsageError(
            "a baseline of some lines would forget all the others",
            where=str(path),
            remedy="write it from a whole audit",
        )
    output.emit(baseline.to_text(result.findings), path)
