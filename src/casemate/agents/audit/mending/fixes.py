"""Corrected code for a finding, offered only with proof: it parses, keeps the sink, and scans clean of the rule.

`menders` proposes edits where it is sure; the gate makes them and analyses the file again. Where there is no safe
automatic fix the text is empty, and the rule's guidance speaks.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from casemate.agents.audit.checks.hiding import texts
from casemate.agents.audit.facts.masking import masked
from casemate.agents.audit.facts.syntax import Source, imports, parse
from casemate.agents.audit.flow.statements import summarize
from casemate.agents.audit.mending.edits import Edit, Region, find, region, replaced
from casemate.agents.audit.mending.menders import MENDERS, Site
from casemate.agents.audit.reading.files import UNREADABLE, load
from casemate.finding import Location, Patch

MENDED = frozenset(MENDERS)
"""Rules that can have an automatic fix."""
Wanted = Sequence[tuple[str, Location]]
"""Rule and place of each finding of one file."""
_TWINS = {
    "load": "safe_load",
    "load_all": "safe_load_all",
    "md5": "sha256",
    "sha1": "sha256",
    "_create_unverified_context": "create_default_context",
}
"""Calls that may be replaced by their safe twin."""
_MAX_LINES = 20


def mend_file(root: str, asked: tuple[str, Wanted]) -> list[Patch | None]:
    """`mend` for one file of a tree, in a worker; a file that changed under us and cannot be read gets no fixes."""
    path, wanted = asked
    try:
        return mend(load(root, path), wanted, snippet=False)
    except UNREADABLE:
        return [None] * len(wanted)


def mend(source: Source, wanted: Wanted, *, snippet: bool) -> list[Patch | None]:
    """Corrected statements for findings of one file, in their place; None where no safe fix exists.

    Args:
        source: the file.
        wanted: rule and place of each finding.
        snippet: whether the file was analysed as a snippet.
    """
    names = imports(source.tree, "", package=False)
    secrets = texts(source)
    fixed: list[Patch | None] = []
    for rule, location in wanted:
        edits = _propose(source, (rule, location), names=names)
        change = region(source, edits) if edits else None
        proven = change is not None and accepts(source, (rule, location), change=change, snippet=snippet)
        fixed.append(_patch(source, change, secrets=secrets) if change is not None and proven else None)
    return fixed


def _patch(source: Source, change: Region, *, secrets: tuple[str, ...]) -> Patch:
    old = "\n".join(source.lines[change.first - 1 : change.last])
    before, after = masked(old, secrets), masked(change.text, secrets)
    return Patch(change.first, change.last, before, after, masked=(before, after) != (old, change.text))


def accepts(source: Source, found: tuple[str, Location], *, change: Region, snippet: bool) -> bool:
    """The gate for any fix, whoever wrote it: it parses, the sink is still called, and the rule is silent there.

    Args:
        source: the file as it is.
        found: rule and place of the finding.
        change: the lines to replace, and with what.
        snippet: whether the file was analysed as a snippet.
    """
    rule, location = found
    last = change.first + change.text.count("\n")
    if last - change.first >= _MAX_LINES:
        return False
    try:
        mended = parse(replaced(source, change), source.path)
        hits = summarize(mended, snippet=snippet).hits
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    if any(hit.rule == rule and change.first <= hit.location.line <= last for hit in hits):
        return False
    if not any(find(source, location)):
        return False  # nothing is proven of a place that is not there
    sink = _called(source, range(location.line, location.end_line + 1)) & _sink_names(source, location)
    kept = _called(mended, range(change.first, last + 1))
    return all(name in kept or _TWINS.get(name) in kept for name in sink)


def _propose(source: Source, found: tuple[str, Location], *, names: dict[str, str]) -> list[Edit]:
    rule, location = found
    mender = MENDERS.get(rule)
    if mender is None:
        return []
    for node in find(source, location):
        if isinstance(node, ast.expr | ast.keyword):
            return mender(Site(node, source, names))
    return []


def _sink_names(source: Source, location: Location) -> frozenset[str]:
    """What the finding's own call calls."""
    return frozenset(
        _name(node.func) for node in find(source, location) if isinstance(node, ast.Call) and isinstance(node, ast.expr)
    )


def _called(source: Source, lines: range) -> frozenset[str]:
    return frozenset(
        _name(node.func) for node in ast.walk(source.tree) if isinstance(node, ast.Call) and node.lineno in lines
    )


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
