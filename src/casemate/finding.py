"""What the work wing produces: Findings, and the Ledger that says what was looked at.

Pure values. Renderers live in `report`, rules in `agents`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum


class Severity(StrEnum):
    """How bad it is if it is real. Ordered: `rank` 0 is the worst."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"

    @property
    def rank(self) -> int:
        """Position from the worst (0, critical) to the mildest (4, info)."""
        return list(Severity).index(self)


class Confidence(StrEnum):
    """How sure the rule is that the flow is real."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class Location:
    """A span of a text file. Lines and columns count from 1; the end is the last character's column plus one.

    `path` is relative to the audited root, with forward slashes.
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class FlowStep:
    """One station of the way from a source to a sink; `note` says what happens there (`request argument`, `sink`)."""

    location: Location
    note: str


@dataclass(frozen=True, slots=True)
class Clause:
    """A compliance clause that a weakness touches. It never says that anything complies.

    `framework` is one of `GDPR`, `HIPAA`, `MLPS`, `OWASP`; `id` is as the framework prints it (`Art. 32(1)(b)`).
    """

    framework: str
    id: str
    title: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One weakness at one place, with everything that supports it.

    `cwe` is the canonical id (`CWE-89`), `technique` an ATT&CK id or empty, `evidence` the verbatim source text of the
    sink's lines (secrets masked), `references` addresses, `fix` corrected code (empty where no safe automatic fix
    exists), `explanation` the model's words, kept apart from what was found, `suppressed` whether the source carries a
    suppression mark for it (counted and shown; honoured only by policy).
    """

    rule: str
    cwe: str
    name: str
    severity: Severity
    confidence: Confidence
    location: Location
    evidence: str
    fingerprint: str
    message: str = ""
    flow: tuple[FlowStep, ...] = ()
    references: tuple[str, ...] = ()
    technique: str = ""
    clauses: tuple[Clause, ...] = ()
    suppressed: bool = False
    explanation: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Unread:
    """A file that was not analysed, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """What was looked at. Every file of the material is in exactly one of the three."""

    analysed: int = 0
    skipped: tuple[Unread, ...] = ()
    failed: tuple[Unread, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether something was analysed and nothing failed; only then may "no findings" be called clean."""
        return self.analysed > 0 and not self.failed


@dataclass(frozen=True, slots=True)
class ModelNote:
    """Which model spoke, and what the reader must know about that (a step down, or no model at all)."""

    name: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class AuditResult:
    """Findings in their order (worst first, then path, line), the Ledger, and which model explained them."""

    findings: tuple[Finding, ...] = ()
    ledger: Ledger = field(default_factory=Ledger)
    model: ModelNote = field(default_factory=ModelNote)


def fingerprint(rule: str, path: str, *, code: str, occurrence: int) -> str:
    """A stable name for a finding: the same after lines move or unrelated code changes.

    Args:
        rule: rule id.
        path: path relative to the root.
        code: the sink's source text; white space is folded before hashing.
        occurrence: 0 for the first finding of this rule, path and code in the file, 1 for the next.

    Returns:
        32 hexadecimal digits (the first half of a SHA-256).
    """
    parts = "\x00".join((rule, path, " ".join(code.split()), str(occurrence)))
    return hashlib.sha256(parts.encode(errors="surrogatepass")).hexdigest()[:32]  # a file name may be no UTF-8


def order(findings: list[Finding]) -> tuple[Finding, ...]:
    """Worst first, then by place; the order is total, so equal input gives equal output."""
    return tuple(
        sorted(findings, key=lambda f: (f.severity.rank, f.location.path, f.location.line, f.location.column, f.rule))
    )
