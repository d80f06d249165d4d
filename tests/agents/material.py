"""A shelf of passages, a rule that finds one thing, and a citation gate that knows three identifiers."""

import re
from dataclasses import dataclass

from casemate.agents.ask import Tools
from casemate.agents.audit.scan import scan_snippet
from casemate.chat.wire import Citation, Passage
from casemate.finding import Clause, Confidence, Finding, Location, Severity, Unread

ANSWERING = "What is SQL injection?"
KNOWN = (
    Passage("CWE-89", "SQL Injection", "The product builds a statement. Values are not bound. More.", "CWE", "4.14"),
    Passage("CWE-564", "Hibernate Injection", "A dynamic statement in Hibernate.", "CWE", "4.14"),
    Passage("T1190", "Exploit Public-Facing Application", "A weakness in a reachable service.", "ATT&CK", "18.1"),
)
GATED = {p.node: Citation(p.node, p.title, p.source, p.version, "H0", cited=True) for p in KNOWN}
INJECTION = Finding(
    rule="sql-injection",
    cwe="CWE-89",
    name="Improper Neutralization of Special Elements used in an SQL Command ('SQL Injection')",
    severity=Severity.HIGH,
    confidence=Confidence.HIGH,
    location=Location("snippet.py", 1, 1, 1, 60),
    evidence='cursor.execute("SELECT * FROM users WHERE id = " + user_id)',
    fingerprint="a" * 32,
    clauses=(Clause("GDPR", "Art. 32(1)(b)", "Confidentiality of processing"),),
    fix='cursor.execute("SELECT * FROM users WHERE id = ?", (user_id,))',
)


@dataclass(frozen=True)
class Shelf:
    """A retriever that always brings the same passages."""

    passages: tuple[Passage, ...] = KNOWN

    def search(self, text: str, limit: int) -> list[Passage]:
        return list(self.passages[:limit])


def findings_of(code: str, path: str = "snippet.py") -> tuple[Finding, ...]:
    """The findings of a snippet that can be analysed."""
    outcome = scan_snippet(code, path)
    assert not isinstance(outcome, Unread)
    return outcome


def gate(text: str) -> tuple[str, tuple[Citation, ...]]:
    """Lets the text through and checks the identifiers that it knows."""
    found = dict.fromkeys(re.findall(r"CWE-\d+|T\d{4}", text))
    return text, tuple(GATED[name] for name in found if name in GATED)


def tools() -> Tools:
    return Tools(retriever=Shelf(), scan=lambda _code: (INJECTION,), gate=gate)
