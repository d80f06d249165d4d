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
class Cell:
    """A place as the author of a notebook counts: cells from 1, those of text included, and the line in the cell.

    Line 0 stands for what a cell shows, and for what is noted about it.
    """

    number: int
    line: int


@dataclass(frozen=True, slots=True)
class Location:
    """A span of a text file. Lines and columns count from 1; the end is the last character's column plus one.

    `path` is relative to the audited root, with forward slashes; in an archive it reads `thing.zip!/pkg/a.py`. In a
    notebook lines and columns are those of its JSON text, and `cell` is where the author finds the span's beginning.
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    cell: Cell | None = None


@dataclass(frozen=True, slots=True)
class FlowStep:
    """One station of the way from a source to a sink.

    `note` says what happens there (`request argument`, `sink`), `text` is the verbatim line (secrets masked).
    """

    location: Location
    note: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Patch:
    """Corrected code in its place: whole lines `first` to `last`, before and after, as they stand in the file.

    Where `masked`, a secret was cut from one of the texts, so that they are to be read and not to be applied.
    """

    first: int
    last: int
    before: str
    after: str
    masked: bool = False


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
    suppression mark for it (counted and shown; honoured only by policy), `scope` the function or class around it
    (`Store.find`; empty: none), `patch` the fix in its place, `known` whether the baseline has it.
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
    scope: str = ""
    patch: Patch | None = None
    known: bool = False


@dataclass(frozen=True, slots=True)
class Unread:
    """A file that was not analysed, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Remark:
    """What must be known of a file that was analysed: an encoding that was guessed, a part in another language."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """What was looked at. Every file of the material is in exactly one of `analysed`, `skipped` and `failed`.

    `searched` says how many of the analysed are no code and were searched line by line for secrets and planted
    instructions only; `remarks` are about analysed files; `limited` says in words which findings were asked for
    (`only lines changed since main`), empty where all were.
    """

    analysed: int = 0
    skipped: tuple[Unread, ...] = ()
    failed: tuple[Unread, ...] = ()
    searched: int = 0
    remarks: tuple[Remark, ...] = ()
    limited: str = ""

    @property
    def complete(self) -> bool:
        """Whether what there is was analysed; only then may "no findings" be called clean.

        Nothing failed, and either code was analysed, or there is but text and nothing was skipped.
        """
        code = self.analysed - self.searched
        return not self.failed and (code > 0 or (self.analysed > 0 and not self.skipped))


@dataclass(frozen=True, slots=True)
class ModelNote:
    """Which model spoke, and what the reader must know about that (a step down, or no model at all)."""

    name: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class AuditResult:
    """Findings in their order (worst first, then path, line), the Ledger, and which model explained them.

    `honoured` is the policy on suppression marks in the source, `trend` what a baseline says (None: there was none).
    """

    findings: tuple[Finding, ...] = ()
    ledger: Ledger = field(default_factory=Ledger)
    model: ModelNote = field(default_factory=ModelNote)
    honoured: bool = False
    trend: Trend | None = None

    @property
    def open(self) -> tuple[Finding, ...]:
        """What is reported and decides the exit code: neither known from the baseline nor suppressed with honour."""
        return tuple(found for found in self.findings if not found.known and not self.hides(found))

    @property
    def known(self) -> tuple[Finding, ...]:
        """What the baseline has already."""
        return tuple(found for found in self.findings if found.known and not self.hides(found))

    @property
    def marked(self) -> int:
        """How many findings carry a suppression mark in the source, honoured or not."""
        return sum(found.suppressed for found in self.findings)

    def hides(self, finding: Finding) -> bool:
        """Whether a mark in the source keeps the finding out of the report."""
        return self.honoured and finding.suppressed


@dataclass(frozen=True, slots=True)
class Gone:
    """A finding of the baseline that is not there any more, though its file was looked at or is no longer there."""

    fingerprint: str
    rule: str
    path: str


@dataclass(frozen=True, slots=True)
class Trend:
    """What changed since the baseline; `unseen` counts its findings in places that this audit did not look at."""

    gone: tuple[Gone, ...] = ()
    unseen: int = 0


def fingerprint(rule: str, path: str, *, code: str, occurrence: int, scope: str = "") -> str:
    """A stable name for a finding: the same after lines move, functions change places, or unrelated code changes.

    Args:
        rule: rule id.
        path: path relative to the root.
        code: the sink's source text; white space is folded before hashing.
        occurrence: 0 for the first finding of this rule, path, scope and code in the file, 1 for the next.
        scope: the function or class around it, so that equal code elsewhere in the file does not shift it.

    Returns:
        32 hexadecimal digits (the first half of a SHA-256).
    """
    parts = "\x00".join((rule, path, scope, " ".join(code.split()), str(occurrence)))
    return hashlib.sha256(parts.encode(errors="surrogatepass")).hexdigest()[:32]  # a file name may be no UTF-8


def order(findings: list[Finding]) -> tuple[Finding, ...]:
    """Worst first, then by place; the order is total, so equal input gives equal output."""
    return tuple(
        sorted(findings, key=lambda f: (f.severity.rank, f.location.path, f.location.line, f.location.column, f.rule))
    )
