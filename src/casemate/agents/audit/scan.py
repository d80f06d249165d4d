"""The deterministic front of the audit: a tree or a snippet in, Findings and a Ledger out. No model, nothing executed.

walk     every file is analysed, skipped or failed, with its reason
read     each file becomes a summary, in workers with limits on time and memory; its tree is dropped
link     sinks are followed back to sources over the whole project
mend     corrected code is offered where it parses, keeps the sink and scans clean; in workers too

With a store, only what changed since the last run is read and mended; all of it is linked anew.
"""

from __future__ import annotations

import functools
import os
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from casemate.agents.audit.facts.summary import Module
from casemate.agents.audit.facts.syntax import parse
from casemate.agents.audit.flow.statements import summarize
from casemate.agents.audit.incremental.past import Past, recall
from casemate.agents.audit.incremental.store import Store
from casemate.agents.audit.linking.link import Reached, link
from casemate.agents.audit.mending import fixes
from casemate.agents.audit.reading.accounts import ledger
from casemate.agents.audit.reading.changes import changes, checked
from casemate.agents.audit.reading.files import UNREADABLE, reason, summaries
from casemate.agents.audit.reading.gathering import Options, gathered, is_temporary
from casemate.agents.audit.reading.material import Material
from casemate.agents.audit.rules import RULES
from casemate.finding import Confidence, Finding, Ledger, Location, Patch, Unread, fingerprint, order
from casemate.knowledge.curated.tables import clauses, technique
from casemate.process import Broken, Limits, each

LIMITS = Limits(time_s=60.0, memory_bytes=2 << 30, processes=len(os.sched_getaffinity(0)))
_BATCH = 16
_PLAIN = Options()
_SHORT_SNIPPET = 4000
"""In characters: up to this a snippet is analysed here, as even a hostile one takes but seconds."""
_SNIPPET_LIMITS = Limits(time_s=20.0, memory_bytes=2 << 30, processes=1)
_SURE = {
    "web": Confidence.HIGH,
    "remote": Confidence.MEDIUM,
    "local": Confidence.MEDIUM,
    "archive": Confidence.MEDIUM,
    "message": Confidence.MEDIUM,
    "parameter": Confidence.MEDIUM,
}


@dataclass(frozen=True, slots=True)
class Scan:
    """What was found, worst first, and what was looked at."""

    findings: tuple[Finding, ...] = ()
    ledger: Ledger = field(default_factory=Ledger)


def scan(
    root: Path,
    *,
    limits: Limits = LIMITS,
    store: Store | None = None,
    options: Options = _PLAIN,
    since: str = "",
) -> Scan:
    """Audit a folder, an archive, or a single file.

    Args:
        root: its files are read in workers and never executed.
        limits: of a worker; a file that breaks one when it is read fails, and when it is mended it gets no fixes.
        store: where the last run left what it knew, and where this one does; the result is the same without.
        options: which files are looked at.
        since: a git revision; all is analysed, but only findings are given that stand on a line changed since then,
            or whose flow passes one. Empty: all findings.

    Raises:
        UsageError: the path is not there, or holds no file; or there is no such revision.
    """
    base = checked(root, since) if since else None
    with gathered(root, options) as material:
        whole = _scanned(material, limits, store=None if is_temporary(material, root) else store)
    if base is None:
        return whole
    folder = root if root.is_dir() else root.parent
    changed = changes(folder, _places(whole.findings), since=base)
    limited = replace(whole.ledger, limited=f"only lines changed since {since}")
    return Scan(tuple(found for found in whole.findings if changed.touches(found)), limited)


def _places(findings: Iterable[Finding]) -> list[str]:
    """Every file that a finding or its flow names."""
    steps = (step.location.path for found in findings for step in found.flow)
    return sorted({*(found.location.path for found in findings), *steps})


def _scanned(material: Material, limits: Limits, *, store: Store | None) -> Scan:
    past = recall(store, material.root, paths=material.files, beside=repr((material.skipped, material.failed)))
    known: Scan | None = past.whole(Scan)
    if known is not None:
        return known
    modules: list[Module] = []
    failed: list[Unread] = []
    for path, outcome in _read_all(material, limits, past=past):
        if isinstance(outcome, Module):
            modules.append(outcome)
        else:
            failed.append(Unread(path, outcome))
    reached, cut = linked(modules)
    findings = _mended(_findings(reached), past, limits=limits)
    result = Scan(order(findings), ledger(material, modules, failed=failed, cut=cut))
    past.keep(result, Scan)
    return result


def scan_snippet(code: str, path: str = "snippet.py") -> tuple[Finding, ...] | Unread:
    """Audit code that stands alone, as in a question. Its callers are unknown, so parameters count as untrusted.

    Args:
        code: Python; it may be indented as a whole.
        path: the name that locations carry.

    Returns:
        Findings, worst first; or why the code was not analysed.
    """
    if len(code) <= _SHORT_SNIPPET:
        return _snippet((code, path))
    ((_, outcome),) = each(_snippet, [(code, path)], limits=_SNIPPET_LIMITS)
    return Unread(path, outcome.reason) if isinstance(outcome, Broken) else outcome


def linked(modules: list[Module]) -> tuple[list[Reached], list[Unread]]:
    """The hits that stand, and once each the files in which the search from some sink was cut."""
    linked = list(link(modules))
    cut = {unread.path: unread for unread in linked if isinstance(unread, Unread)}
    return [real for real in linked if isinstance(real, Reached)], list(cut.values())


def _snippet(asked: tuple[str, str]) -> tuple[Finding, ...] | Unread:
    code, path = asked
    try:
        source = parse(textwrap.dedent(code).strip("\n") + "\n", path)
        module = summarize(source, snippet=True)
    except UNREADABLE as error:
        return Unread(path, reason(error))
    reached, cut = linked([module])
    if cut and not reached:
        return cut[0]
    findings = _findings(reached)
    return order(_with_fixes(findings, fixes.mend(source, _wanted(findings), snippet=True)))


def _read_all(material: Material, limits: Limits, *, past: Past) -> Iterator[tuple[str, Module | str]]:
    """Every file with its summary or the reason why there is none, in order; what the last run knew is not read."""
    function = functools.partial(summaries, str(material.root))
    fresh = _read([path for path in material.files if past.outcome(path) is None], function, limits=limits)
    for path in material.files:
        outcome = past.outcome(path)
        if outcome is None:
            _, read = next(fresh)
            outcome = past.broken(read.reason) if isinstance(read, Broken) else past.read(path, read)
        yield path, outcome


def _read(
    paths: Sequence[str], function: Callable[[tuple[str, ...]], list[Module | str]], *, limits: Limits
) -> Iterator[tuple[str, Module | str | Broken]]:
    """Files in batches; a batch that broke its worker is read again file by file, so that only the culprit fails."""
    size = max(1, min(_BATCH, len(paths) // (2 * limits.processes)))
    batches = [tuple(paths[at : at + size]) for at in range(0, len(paths), size)]
    for batch, outcome in each(function, batches, limits=limits):
        if not isinstance(outcome, Broken):
            yield from zip(batch, outcome, strict=True)
            continue
        if len(batch) == 1:
            yield batch[0], outcome
            continue
        for (path,), single in each(function, [(path,) for path in batch], limits=limits):
            yield path, (single if isinstance(single, Broken) else single[0])


def _findings(reached: Iterable[Reached]) -> list[Finding]:
    seen: Counter[tuple[str, str, str, str]] = Counter()
    findings = []
    for real in sorted(reached, key=_place):
        key = (real.hit.rule, real.hit.location.path, real.hit.scope, " ".join(real.hit.code.split()))
        findings.append(_finding(real, seen[key]))
        seen[key] += 1
    return findings


def _finding(real: Reached, occurrence: int) -> Finding:
    hit, rule = real.hit, RULES[real.hit.rule]
    sure = hit.confidence if real.flow is None else _surest(hit.confidence, _SURE[real.flow.source.kind])
    return Finding(
        rule=rule.id,
        cwe=rule.cwe,
        name=rule.name,
        severity=rule.severity,
        confidence=sure,
        location=hit.location,
        evidence=hit.evidence,
        fingerprint=fingerprint(rule.id, hit.location.path, code=hit.code, occurrence=occurrence, scope=hit.scope),
        message=rule.message("en"),
        flow=real.flow.steps if real.flow is not None else (),
        references=rule.references,
        technique=technique(rule.cwe),
        clauses=clauses(rule.cwe),
        suppressed=hit.suppressed,
        scope=hit.scope,
    )


def _place(real: Reached) -> tuple[str, int, int]:
    at = real.hit.location
    return (at.path, at.line, at.column)


def _surest(first: Confidence, second: Confidence) -> Confidence:
    ranks = list(Confidence)
    return max(first, second, key=ranks.index)


def _mended(findings: list[Finding], past: Past, *, limits: Limits) -> list[Finding]:
    """The findings with corrected code; every file that has a new candidate is read once more, in a worker."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.location.path, []).append(finding)
    asked = []
    for path, group in groups.items():
        wanted = _wanted(group)
        known = past.fixes(path, wanted)
        if known is not None:
            groups[path] = _with_fixes(group, known)
        elif any(found.rule in fixes.MENDED for found in group):
            asked.append((path, wanted))
    # A worker costs more to start than some files to mend.
    limits = replace(limits, processes=min(limits.processes, 1 + len(asked) // _BATCH))
    for (path, wanted), mended in each(functools.partial(fixes.mend_file, str(past.root)), asked, limits=limits):
        if isinstance(mended, Broken):
            past.broken(mended.reason)
            continue
        groups[path] = _with_fixes(groups[path], mended)
        past.mended(path, wanted, fixes=tuple(mended))
    return [finding for group in groups.values() for finding in group]


def _wanted(findings: Iterable[Finding]) -> tuple[tuple[str, Location], ...]:
    return tuple((finding.rule, finding.location) for finding in findings)


def _with_fixes(findings: Iterable[Finding], mended: Iterable[Patch | None]) -> list[Finding]:
    return [
        replace(finding, fix=textwrap.dedent(patch.after), patch=patch) if patch else finding
        for finding, patch in zip(findings, mended, strict=True)
    ]
