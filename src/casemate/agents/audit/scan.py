"""The deterministic front of the audit: a tree or a snippet in, Findings and a Ledger out. No model, nothing executed.

walk     every file is analysed, skipped or failed, with its reason
read     each file becomes a summary, in workers with limits on time and memory; its tree is dropped
link     sinks are followed back to sources over the whole project
mend     corrected code is offered where it parses, keeps the sink and scans clean
"""

from __future__ import annotations

import functools
import os
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from casemate.agents.audit import fixes
from casemate.agents.audit.link import Reached, link
from casemate.agents.audit.material import Material, decode, walk
from casemate.agents.audit.rules import RULES
from casemate.agents.audit.statements import summarize
from casemate.agents.audit.summary import Module
from casemate.agents.audit.syntax import Source, parse
from casemate.finding import Confidence, Finding, Ledger, Unread, fingerprint, order
from casemate.knowledge.curated.tables import clauses, technique
from casemate.process import Broken, Limits, each

_LIMITS = Limits(time_s=60.0, memory_bytes=2 << 30, processes=len(os.sched_getaffinity(0)))
_BATCH = 16
_SURE = {
    "web": Confidence.HIGH,
    "remote": Confidence.MEDIUM,
    "local": Confidence.MEDIUM,
    "parameter": Confidence.MEDIUM,
}


@dataclass(frozen=True, slots=True)
class Scan:
    """What was found, worst first, and what was looked at."""

    findings: tuple[Finding, ...] = ()
    ledger: Ledger = field(default_factory=Ledger)


def scan(root: Path) -> Scan:
    """Audit a folder, or a single file.

    Raises:
        UsageError: the path is not there, or holds no file.
    """
    material = walk(root)
    modules: list[Module] = []
    failed = list(material.failed)
    for path, outcome in _read_all(material):
        if isinstance(outcome, Module):
            modules.append(outcome)
        else:
            failed.append(Unread(path, outcome))
    findings = _mended(_findings(link(modules)), material.root)
    return Scan(order(findings), Ledger(len(modules), material.skipped, tuple(failed)))


def scan_snippet(code: str, path: str = "snippet.py") -> tuple[Finding, ...]:
    """Audit code that stands alone, as in a question. Its callers are unknown, so parameters count as untrusted.

    Args:
        code: Python; it may be indented as a whole.
        path: the name that locations carry.

    Returns:
        Findings, worst first; none where the code cannot be parsed.
    """
    try:
        source = parse(textwrap.dedent(code).strip("\n") + "\n", path)
        module = summarize(source, snippet=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    findings = _findings(link([module]))
    mended = fixes.mend(source, [(f.rule, f.location) for f in findings], snippet=True)
    return order([replace(f, fix=fix) for f, fix in zip(findings, mended, strict=True)])


def read(root: str, paths: tuple[str, ...]) -> list[Module | str]:
    """Summarise files; for one that cannot be analysed the reason. Runs in a worker."""
    return [_read_one(root, path) for path in paths]


def _read_all(material: Material) -> Iterator[tuple[str, Module | str]]:
    """Files in batches; a batch that broke its worker is read again file by file, so that only the culprit fails."""
    function = functools.partial(read, str(material.root))
    size = max(1, min(_BATCH, len(material.python) // (2 * _LIMITS.processes)))
    batches = [material.python[at : at + size] for at in range(0, len(material.python), size)]
    if not batches:
        return
    for batch, outcome in each(function, batches, limits=_LIMITS):
        if not isinstance(outcome, Broken):
            yield from zip(batch, outcome, strict=True)
            continue
        for (path,), single in each(function, [(path,) for path in batch], limits=_LIMITS):
            yield path, (single.reason if isinstance(single, Broken) else single[0])


def _read_one(root: str, path: str) -> Module | str:
    try:
        return summarize(_load(root, path))
    except SyntaxError as error:
        return f"not valid Python: {error.msg} (line {error.lineno or 1})"
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    except ValueError as error:
        return f"cannot be decoded or parsed: {error}"
    except (RecursionError, MemoryError):
        return "nested too deeply for the parser"


def _load(root: str, path: str) -> Source:
    return parse(decode((Path(root) / path).read_bytes()), path)


def _findings(reached: Iterable[Reached]) -> list[Finding]:
    seen: Counter[tuple[str, str, str]] = Counter()
    findings = []
    for real in reached:
        key = (real.hit.rule, real.hit.location.path, " ".join(real.hit.code.split()))
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
        fingerprint=fingerprint(rule.id, hit.location.path, code=hit.code, occurrence=occurrence),
        message=rule.message("en"),
        flow=real.flow.steps if real.flow is not None else (),
        references=rule.references,
        technique=technique(rule.cwe),
        clauses=clauses(rule.cwe),
        suppressed=hit.suppressed,
    )


def _surest(first: Confidence, second: Confidence) -> Confidence:
    ranks = list(Confidence)
    return max(first, second, key=ranks.index)


def _mended(findings: list[Finding], root: Path) -> list[Finding]:
    """The findings with corrected code; every file that has a candidate is read once more."""
    result: list[Finding] = []
    by_path: dict[str, list[Finding]] = {}
    for finding in findings:
        by_path.setdefault(finding.location.path, []).append(finding)
    for path, group in by_path.items():
        if not any(finding.rule in fixes.MENDED for finding in group):
            result += group
            continue
        try:
            source = _load(str(root), path)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            result += group  # it changed under us: what was found stands, without a fix
            continue
        mended = fixes.mend(source, [(f.rule, f.location) for f in group], snippet=False)
        result += [replace(finding, fix=fix) for finding, fix in zip(group, mended, strict=True)]
    return result
