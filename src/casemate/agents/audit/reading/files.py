"""Reads one file of an audit. Runs in workers, so it imports no more than reading takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from casemate.agents.audit.facts.summary import Module
from casemate.agents.audit.facts.syntax import Source, parse
from casemate.agents.audit.flow.statements import summarize
from casemate.agents.audit.javascript.summary import summarize as summarize_script
from casemate.agents.audit.reading.encodings import SNIFF_BYTES, decode
from casemate.agents.audit.reading.kinds import Kind, kind
from casemate.agents.audit.reading.notebooks import summarize_notebook
from casemate.agents.audit.reading.plain import search

UNREADABLE = (OSError, SyntaxError, ValueError, RecursionError, MemoryError)
"""What reading a hostile file can raise."""


def summaries(root: str, paths: tuple[str, ...]) -> list[Module | str]:
    """Summarise files; for one that cannot be analysed the reason."""
    return [_summary(root, path) for path in paths]


def load(root: str, path: str) -> Source:
    """A parsed Python file. Raises what UNREADABLE holds, a ValueError too where the file is none."""
    data = (Path(root) / path).read_bytes()
    if kind(path, data[:SNIFF_BYTES]) is not Kind.PYTHON:
        raise ValueError("not a Python file")
    return parse(decode(data).text, path)


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
        data = (Path(root) / path).read_bytes()
        decoded = decode(data)
        found = _read(decoded.text, path, how=kind(path, data[:SNIFF_BYTES]))
    except UNREADABLE as error:
        return reason(error)
    return replace(found, remarks=(decoded.remark, *found.remarks)) if decoded.remark else found


def _read(text: str, path: str, *, how: Kind | None) -> Module:
    match how:
        case Kind.PYTHON:
            return summarize(parse(text, path))
        case Kind.NOTEBOOK:
            return summarize_notebook(text, path)
        case Kind.SCRIPT:
            return summarize_script(text, path)
        case Kind.SETTINGS | Kind.TEXT:
            return search(text, path, kind=how)
        case None:
            raise ValueError("it changed while it was read")
