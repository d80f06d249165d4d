"""Reads one file of an audit. Runs in workers, so it imports no more than reading takes."""

from __future__ import annotations

from pathlib import Path

from casemate.agents.audit.facts.summary import Module
from casemate.agents.audit.facts.syntax import Source, parse
from casemate.agents.audit.flow.statements import summarize
from casemate.agents.audit.reading.material import decode

UNREADABLE = (OSError, SyntaxError, ValueError, RecursionError, MemoryError)
"""What reading a hostile file can raise."""


def summaries(root: str, paths: tuple[str, ...]) -> list[Module | str]:
    """Summarise files; for one that cannot be analysed the reason."""
    return [_summary(root, path) for path in paths]


def load(root: str, path: str) -> Source:
    """A parsed file. Raises what UNREADABLE holds."""
    return parse(decode((Path(root) / path).read_bytes()), path)


def reason(error: BaseException) -> str:
    """Why something of UNREADABLE kept code from being analysed."""
    match error:
        case SyntaxError():
            return f"not valid Python: {error.msg} (line {error.lineno or 1})"
        case OSError():
            return f"cannot be read: {error.strerror or error}"
        case ValueError():
            return f"cannot be decoded or parsed: {error}"
        case _:
            return "nested too deeply for the parser"


def _summary(root: str, path: str) -> Module | str:
    try:
        return summarize(load(root, path))
    except UNREADABLE as error:
        return reason(error)
