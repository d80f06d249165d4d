"""The tabulated facts as graph records, one function a source.

| table | what | source |
|---|---|---|
| cwe-4.19.1 | every entry: name, level, status, mapping usage, parents in view 1000 | MITRE, CWE list of 2026-01-21 |
| attack-19.1 | every technique: name, tactics, mitigations | MITRE ATT&CK Enterprise, April 2026 |
| tactics | the tactics of 18.1 and 19.1 | MITRE ATT&CK Enterprise; Chinese names ours |
| capec-3.9 | attack patterns: name, status, parents, techniques | MITRE CAPEC |
| kev-2025-08-25 | exploited vulnerabilities and their weaknesses | CISA KEV (CC0) |
| ctid-kev-2025-07-28 | techniques that exploit them, and what that gives | CTID mappings explorer (Apache-2.0) |
| nist-800-53r5, ctid-nist-800-53r5 | controls; techniques that they mitigate | NIST; CTID (Apache-2.0) |
| owasp-2025 | risks of 2025 and their weaknesses | OWASP; Chinese names ours |
| asvs-5.0.0 | requirements: level, section | OWASP ASVS |
| gdpr, hipaa, mlps-2.0-l3 | articles, standards, control points | EU law; 45 CFR 164; GB/T 22239-2019, gists ours |
| d3fend-1.2.0, -links | countermeasures; techniques and weaknesses that touch the same artefact | MITRE D3FEND (MIT) |
| sigma-2026-08-05 | detection rules: title, level, techniques, CVEs | SigmaHQ (DRL 1.1); titles and tags only |
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from casemate.knowledge.curated import tables
from casemate.knowledge.node import Alias, Edge, EdgeKind, Kind, Node, Record, State
from casemate.knowledge.tsv import FACTS, listed, rows

CWE = ("CWE", "4.19.1")
ATTACK = ("ATT&CK", "19.1")
CAPEC = ("CAPEC", "3.9")
KEV = ("CISA KEV", "2025-08-25")
CTID_KEV = ("CTID mappings of KEV", "2025-07-28")
NIST = ("NIST 800-53", "rev 5")
CTID_NIST = ("CTID mappings of NIST 800-53", "rev 5, ATT&CK 16.1")
ASVS = ("OWASP ASVS", "5.0.0")
TOP_TEN = ("OWASP Top 10", "2025")
GDPR = ("GDPR", "(EU) 2016/679")
HIPAA = ("HIPAA", "45 CFR Part 164")
MLPS = ("MLPS", "GB/T 22239-2019 level 3")
D3FEND = ("D3FEND", "1.2.0")
SIGMA = ("Sigma", "2026-08-05")


Rows = Iterable[Mapping[str, str]]
"""The rows of a table as head → cell."""


def read(without: Collection[str] = ()) -> Iterator[Record]:
    """Every record of every table; those of a framework (`gdpr`, `hipaa`, `mlps`) can be left out."""
    sources: tuple[Callable[[], Iterator[Record]], ...] = (
        _cwe, _attack, _capec, _kev, _ctid, _nist, _top_ten, _asvs, _d3fend, _sigma,
    )  # fmt: skip
    for source in sources:
        yield from source()
    for name, (table, make) in FRAMEWORKS.items():
        if name not in without:
            yield from make(rows(FACTS, table))


def exploited(id_: str, name: str, *, weaknesses: Iterable[str], version: str) -> Iterator[Record]:
    """An entry of CISA's catalogue: the vulnerability, and what it is evidence of."""
    yield Node(id_, Kind.VULNERABILITY, name, KEV[0], version)
    for weakness in weaknesses:
        yield Edge(weakness, "observed-in", id_, EdgeKind.EVIDENCE, KEV[0], version, support=(id_,))


def gdpr(table: Rows) -> Iterator[Record]:
    """The articles of a table, their paragraphs and points."""
    titles: dict[str, Mapping[str, str]] = {}
    for row in table:
        article, _, rest = row["id"].partition("(")
        title = titles.setdefault(article, row)
        marks = ", ".join(rest.rstrip(")").split(")("))
        name, name_zh = (
            f"{title[key]} ({marks})" if marks and title[key] else title[key] for key in ("title", "title_zh")
        )
        yield Node(f"GDPR {row['id']}", Kind.CLAUSE, name, *GDPR, name_zh=name_zh)
        yield from _part_of(f"GDPR {row['id']}", GDPR)


def hipaa(table: Rows) -> Iterator[Record]:
    """The sections of a table, their standards and specifications."""
    for row in table:
        id_ = f"HIPAA {row['id']}"
        yield Node(id_, Kind.CLAUSE, row["title"], *HIPAA, name_zh=row["title_zh"], usage=row["status"])
        yield from _part_of(id_, HIPAA)


def mlps(table: Rows) -> Iterator[Record]:
    """The control points of a table, and their items."""
    points = set()
    for row in table:
        point, alone = f"MLPS {row['clause']}", row["item"] == "-"  # a control point of one item has no letter for it
        gist = f"{row['gist']} / {row['gist_zh']}" if row["gist"] else "No gist is written for this item."
        if point not in points:
            points.add(point)
            text = gist if alone else f"{row['area']} / {row['area_zh']}."
            yield Node(point, Kind.CLAUSE, row["title"], *MLPS, name_zh=row["title_zh"], text=text)
        if not alone:
            id_ = f"{point} {row['item']})"
            yield Node(id_, Kind.CLAUSE, row["title"], *MLPS, name_zh=row["title_zh"], text=gist)
            yield Edge(id_, "part-of", point, EdgeKind.OFFICIAL, *MLPS)


FRAMEWORKS: Mapping[str, tuple[str, Callable[[Rows], Iterator[Record]]]] = {
    "gdpr": ("gdpr.tsv", gdpr),
    "hipaa": ("hipaa.tsv", hipaa),
    "mlps": ("mlps-2.0-l3.tsv", mlps),
}
"""Tables that a user may replace: importer → file, and who makes its records."""


def _cwe() -> Iterator[Record]:
    names = tables.names_zh()
    for row in rows(FACTS, "cwe-4.19.1.tsv"):
        state = State.DEPRECATED if row["status"] == "Deprecated" else State.LIVE
        yield Node(row["id"], Kind(row["kind"]), row["name"], *CWE, state=state, abstraction=row["abstraction"],
                   usage=row["usage"], name_zh=names.get(row["id"], ""))  # fmt: skip
        for parent in listed(row["parents"]):
            yield Edge(row["id"], "child-of", parent, EdgeKind.OFFICIAL, *CWE, note="view 1000")


def _attack() -> Iterator[Record]:
    names = tables.names_zh()
    for row in rows(FACTS, "tactics.tsv"):
        yield Node(row["id"], Kind.TACTIC, row["name"], ATTACK[0], row["version"], name_zh=row["name_zh"])
        yield Alias(row["name_zh"], row["id"], "curated")
    for row in rows(FACTS, "attack-19.1.tsv"):
        yield Node(row["id"], Kind.TECHNIQUE, row["name"], *ATTACK, name_zh=names.get(row["id"], ""))
        if "." in row["id"]:
            yield Edge(row["id"], "child-of", row["id"].partition(".")[0], EdgeKind.OFFICIAL, *ATTACK)
        for tactic in listed(row["tactics"]):
            yield Edge(row["id"], "achieves", tactic, EdgeKind.OFFICIAL, *ATTACK)
        for mitigation in listed(row["mitigations"]):
            yield Edge(mitigation, "mitigates", row["id"], EdgeKind.OFFICIAL, *ATTACK)


def _capec() -> Iterator[Record]:
    for row in rows(FACTS, "capec-3.9.tsv"):
        state = State.DEPRECATED if row["status"] == "Deprecated" else State.LIVE
        yield Node(row["id"], Kind.PATTERN, row["name"], *CAPEC, state=state)
        for parent in listed(row["parents"]):
            yield Edge(row["id"], "child-of", parent, EdgeKind.OFFICIAL, *CAPEC)
        for technique in listed(row["techniques"]):
            yield Edge(row["id"], "carried-out-by", technique, EdgeKind.OFFICIAL, *CAPEC)


def _kev() -> Iterator[Record]:
    for row in rows(FACTS, "kev-2025-08-25.tsv"):
        yield from exploited(row["id"], row["name"], weaknesses=listed(row["weaknesses"]), version=KEV[1])


def _ctid() -> Iterator[Record]:
    for row in rows(FACTS, "ctid-kev-2025-07-28.tsv"):
        yield Edge(row["id"], row["relation"], row["technique"], EdgeKind.OFFICIAL, *CTID_KEV)


def _nist() -> Iterator[Record]:
    names = tables.names_zh()
    for row in rows(FACTS, "nist-800-53r5.tsv"):
        id_ = f"NIST {row['id']}"
        yield Node(id_, Kind.CONTROL, row["name"], *NIST, name_zh=names.get(id_, ""))
        if "(" in id_:
            yield Edge(id_, "part-of", id_.partition("(")[0], EdgeKind.OFFICIAL, *NIST)
    for row in rows(FACTS, "ctid-nist-800-53r5.tsv"):
        for technique in listed(row["techniques"]):
            yield Edge(f"NIST {row['id']}", "mitigates", technique, EdgeKind.OFFICIAL, *CTID_NIST)


def _top_ten() -> Iterator[Record]:
    for row in rows(FACTS, "owasp-2025.tsv"):
        yield Node(row["id"], Kind.RISK, row["name"], *TOP_TEN, name_zh=row["name_zh"])
        yield Alias(row["name_zh"], row["id"], "curated")
        for weakness in listed(row["weaknesses"]):
            yield Edge(row["id"], "has-member", weakness, EdgeKind.OFFICIAL, *TOP_TEN)


def _asvs() -> Iterator[Record]:
    names, sections = tables.names_zh(), set()
    for row in rows(FACTS, "asvs-5.0.0.tsv"):
        section = f"ASVS {row['section']}"
        name, name_zh = f"{row['chapter_name']}: {row['section_name']}", names.get(section, "")
        if section not in sections:
            sections.add(section)
            yield Node(section, Kind.REQUIREMENT, name, *ASVS, name_zh=name_zh)
        id_ = f"ASVS {row['id']}"
        yield Node(id_, Kind.REQUIREMENT, row["section_name"], *ASVS, name_zh=name_zh, text=f"Level {row['level']}.")
        yield Edge(id_, "part-of", section, EdgeKind.OFFICIAL, *ASVS)


def _part_of(id_: str, source: tuple[str, str]) -> Iterator[Edge]:
    """The edge to the clause that an id's last bracket belongs to."""
    if id_.endswith(")"):
        yield Edge(id_, "part-of", id_[: id_.rindex("(")], EdgeKind.OFFICIAL, *source)


def _d3fend() -> Iterator[Record]:
    names = tables.names_zh()
    for row in rows(FACTS, "d3fend-1.2.0.tsv"):
        yield Node(row["id"], Kind.COUNTERMEASURE, row["name"], *D3FEND, name_zh=names.get(row["id"], ""))
        if row["parent"]:
            yield Edge(row["id"], "child-of", row["parent"], EdgeKind.OFFICIAL, *D3FEND)
    for row in rows(FACTS, "d3fend-1.2.0-links.tsv"):
        note = f"both touch {row['artifacts'].replace(',', ', ')}"
        yield Edge(row["id"], "counters", row["target"], EdgeKind.DERIVED, *D3FEND, note=note)


def _sigma() -> Iterator[Record]:
    for row in rows(FACTS, "sigma-2026-08-05.tsv"):
        id_ = f"Sigma {row['id']}"
        yield Node(id_, Kind.DETECTION, row["title"], *SIGMA, abstraction=row["level"], usage=row["status"])
        for target in (*listed(row["techniques"]), *listed(row["cves"])):
            yield Edge(id_, "detects", target, EdgeKind.OFFICIAL, *SIGMA)
