"""The view by clause: which findings touch which clause of a law or standard, and by what right that is said."""

from __future__ import annotations

from casemate.agents.audit.bearing import clause_kind, clause_title
from casemate.agents.dossier.naming import shortened
from casemate.agents.dossier.words import WORDS
from casemate.agents.phrases import Language
from casemate.finding import Clause, Finding
from casemate.knowledge.curated.tables import VERSIONS
from casemate.report.document import Paragraph, Section, Table

_MOST_NUMBERS = 12


def clauses(findings: tuple[Finding, ...], language: Language) -> Section | None:
    """One table a framework; findings by their numbers. None where no clause is touched."""
    touched: dict[str, dict[Clause, list[str]]] = {}
    for number, finding in enumerate(findings, start=1):
        for clause in finding.clauses:
            touched.setdefault(clause.framework, {}).setdefault(clause, []).append(str(number))
    if not touched:
        return None
    words = WORDS[language]
    parts = tuple(
        Section(f"{framework} {VERSIONS.get(framework, '')}".strip(), (_table(touched[framework], language),))
        for framework in sorted(touched)
    )
    return Section(words.clauses_touched, (Paragraph(words.clauses_note),), parts, anchor="clauses")


def _table(touched: dict[Clause, list[str]], language: Language) -> Table:
    words = WORDS[language]
    kinds = {"curated": words.curated, "official": words.official}
    rows = tuple(
        (
            clause.id,
            clause_title(clause, language),
            kinds[clause_kind(clause)],
            shortened(touched[clause], _MOST_NUMBERS, language=language),
        )
        for clause in sorted(touched, key=lambda clause: clause.id)
    )
    return Table((words.clause, words.clause_title, words.basis, words.numbers), rows)
