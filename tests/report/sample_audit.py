"""An audit with everything a report must cope with: hostile text, both languages, places that a model made up."""

from casemate.finding import (
    AuditResult,
    Clause,
    Confidence,
    Finding,
    FlowStep,
    Ledger,
    Location,
    ModelNote,
    Severity,
    Unread,
)

HOSTILE = 'x = "\x1b[2J\u202egnp.exe" # <script>alert(1)</script> ![p](http://evil.example/p.png) | `a'

INJECTION = Finding(
    rule="python.sql.concat",
    cwe="CWE-89",
    name="SQL injection",
    severity=Severity.HIGH,
    confidence=Confidence.HIGH,
    location=Location("src/a b#1.py", 12, 5, 12, 64),
    evidence='cursor.execute("SELECT * FROM users WHERE id = " + user_id)',
    fingerprint="a" * 32,
    message="untrusted text becomes part of a statement in `cursor.execute`",
    flow=(
        FlowStep(Location("src/a b#1.py", 9, 15, 9, 40), "request argument"),
        FlowStep(Location("src/a b#1.py", 12, 5, 12, 64), "sink"),
    ),
    references=("https://cwe.mitre.org/data/definitions/89.html", "javascript:alert(1)"),
    technique="T1190",
    clauses=(
        Clause("GDPR", "Art. 32(1)(b)", "Confidentiality of processing"),
        Clause("MLPS", "8.1.4.4 d)", "数据有效性检验"),
    ),
    explanation="The id ends the `WHERE` clause. 攻击者可以改写语句。",
    fix='cursor.execute("SELECT * FROM users WHERE id = ?", (user_id,))',
)
HOSTILE_FINDING = Finding(
    rule="python.hash.weak",
    cwe="CWE-328",
    name="Use of weak hash",
    severity=Severity.MEDIUM,
    confidence=Confidence.LOW,
    location=Location("empty.py", 0, 0, 0, 0),
    evidence=HOSTILE,
    fingerprint="b" * 32,
    message="# not a heading\n- not a list\n1. not a list",
    suppressed=True,
)
BACKWARDS = Finding(
    rule="python.hash.weak",
    cwe="CWE-328",
    name="Use of weak hash",
    severity=Severity.LOW,
    confidence=Confidence.MEDIUM,
    location=Location("lib/h.py", 7, 9, 3, 2),
    evidence="md5(x)",
    fingerprint="c" * 32,
)
PARTIAL = AuditResult(
    findings=(INJECTION, HOSTILE_FINDING, BACKWARDS),
    ledger=Ledger(
        analysed=7,
        skipped=(Unread("static/app.min.js", "minified"),),
        failed=(Unread("src/latin\udce9.py", "not UTF-8"),),
    ),
    model=ModelNote("qwen2.5-coder-1.5b", "stepped down from a larger one"),
)
CLEAN = AuditResult(ledger=Ledger(analysed=3))
UNFINISHED = AuditResult(ledger=Ledger(analysed=3, failed=(Unread("a.py", "too deep"),)))
EMPTY = AuditResult()
