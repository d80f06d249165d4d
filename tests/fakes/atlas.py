"""A small graph of our own invention, written as a build writes one."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from casemate.knowledge.node import Alias, Edge, EdgeKind, Kind, Node, Phrase, Record, State
from casemate.knowledge.store import Writer

EVIL = "<script>alert(1)</script>\x1b[31m\u202e"
CVES = ("CVE-2021-1111", "CVE-2022-2222", "CVE-2023-3333")
MANY = 60
"""How many detections the technique has; more than any picture shows."""


def records() -> list[Record]:
    """A weakness with a dossier, a technique, a clause, a technique that is gone, and what connects them."""
    official, evidence, curated = EdgeKind.OFFICIAL, EdgeKind.EVIDENCE, EdgeKind.CURATED
    return [
        Node("CWE-89", Kind.WEAKNESS, "Careless Query ('SQL Injection')", "CWE", "9.0", text="Words become a query."),
        Node(
            "CWE-89", Kind.WEAKNESS, "Careless Making of a Query ('SQL Injection')", "CWE", "9.1",
            name_zh="SQL 查询的草率拼接", abstraction="Base", usage="Allowed",
        ),
        Node("CWE-20", Kind.WEAKNESS, "Improper Input Validation", "CWE", "9.1", text="Nobody looks at what comes in."),
        Node("CWE-74", Kind.WEAKNESS, "Injection", "CWE", "9.1"),
        Node("T1190", Kind.TECHNIQUE, "Exploit Public-Facing Application", "ATT&CK", "19.0", name_zh="漏洞利用"),
        Node("T1064", Kind.TECHNIQUE, "Scripting", "ATT&CK", "19.0", state=State.REVOKED),
        Node("T1059", Kind.TECHNIQUE, "Command and Scripting Interpreter", "ATT&CK", "19.0"),
        Node("GDPR Art. 32(1)(b)", Kind.CLAUSE, "Confidentiality", "GDPR", "2016", name_zh="保密性"),
        Node("CAPEC-66", Kind.PATTERN, EVIL, "CAPEC", "3.9", text=EVIL),
        *(Node(cve, Kind.VULNERABILITY, cve, "CWE", "9.1", text="A shop let strangers ask. They did.") for cve in CVES),
        *(
            Node(f"Sigma 00000000-0000-4000-8000-{number:012}", Kind.DETECTION, f"Rule {number}", "Sigma", "2026-01-01")
            for number in range(MANY)
        ),
        Edge("CWE-89", "enables", "T1190", evidence, "KEV", "2026-02-02", support=CVES, note="way in 3"),
        Edge("CWE-89", "child-of", "CWE-20", official, "CWE", "9.1"),
        Edge("CWE-89", "child-of", "CWE-74", official, "CWE", "9.0"),
        Edge("CWE-89", "touches", "GDPR Art. 32(1)(b)", curated, "curated", "1", note=EVIL),
        Edge("CWE-89", "attacked-by", "CAPEC-66", official, "CAPEC", "3.9"),
        Edge("CWE-89", "observed-in", CVES[0], evidence, "CWE", "9.1", support=CVES[:1]),
        Edge("T1064", "replaced-by", "T1059", official, "ATT&CK", "19.0"),
        *(
            Edge(f"Sigma 00000000-0000-4000-8000-{number:012}", "detects", "T1190", official, "Sigma", "2026-01-01")
            for number in range(MANY)
        ),
        Alias("查询注入", "CWE-89", "curated"),
        Phrase("CWE-89", "a quote in the search box breaks the page"),
    ]  # fmt: skip


def write(path: Path, given: Sequence[Record] = ()) -> Path:
    """A graph of the records, whole and swapped in; of `records` where none are given."""
    aside = path.with_suffix(".part")
    with closing(sqlite3.connect(aside)) as connection:
        writer = Writer(connection)
        for record in given or records():
            writer.add(record)
        writer.finish("a graph for tests")
    return aside.replace(path)
