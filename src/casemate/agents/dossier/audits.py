"""An audit as a Document, from the sentence for the manager to the last file that was left out."""

from __future__ import annotations

from casemate.agents.dossier import bearings, coverage, overview
from casemate.agents.dossier.details import detail
from casemate.agents.dossier.naming import kind, place
from casemate.agents.dossier.words import WORDS
from casemate.agents.phrases import PHRASES, TAGS, Language
from casemate.finding import AuditResult, Finding, Severity
from casemate.report.document import Document, Paragraph, Section, Table

_MOST_TOLD = 500
"""Findings that are told in full; a page of many thousands opens in no browser, and is read by nobody."""


def document(result: AuditResult, *, language: Language, root: str) -> Document:
    """The report of an audit.

    Args:
        result: findings in their order, the ledger, and which model explained.
        language: of every fixed word and of what our rules say; ids, code and official names stay as they are.
        root: what was audited, as the reader knows it.
    """
    words = WORDS[language]
    sections = (
        overview.summary(result, language),
        overview.first_steps(result.open, language),
        overview.tables(result.open, language),
        *_findings(result, language),
        _listed(words.known, result.known, note=words.known_note, language=language),
        _listed(words.hidden, _hidden(result), note=words.hidden_note, language=language),
        coverage.gone(result, language),
        bearings.clauses(result.open, language),
        coverage.unread(result.ledger, language),
        Section(words.seen, (Paragraph(words.seen_note),), anchor="limits"),
    )
    return Document(
        title=words.report_title.format(root=root),
        lead=overview.verdicts(result, language),
        sections=tuple(section for section in sections if section is not None),
        language=TAGS[language],
        contents=words.contents,
    )


def _findings(result: AuditResult, language: Language) -> tuple[Section, ...]:
    words, found = WORDS[language], result.open
    if not found:
        return ()
    told, rest = found[:_MOST_TOLD], found[_MOST_TOLD:]
    names = PHRASES[language].severity
    kinds = [severity for severity in Severity if any(finding.severity is severity for finding in told)]
    filters = (("", words.all), *((severity.value, names[severity]) for severity in kinds)) if len(kinds) > 1 else ()
    each = tuple(
        detail(finding, number, model=result.model, language=language) for number, finding in enumerate(told, start=1)
    )
    sections = (Section(words.findings, sections=each, anchor="findings", filters=filters),)
    if not rest:
        return sections
    note = Paragraph(words.not_detailed_note.format(told=len(told)))
    return (*sections, Section(words.not_detailed.format(count=len(rest)), (note, _table(rest, language))))


def _listed(title: str, findings: tuple[Finding, ...], *, note: str, language: Language) -> Section | None:
    if not findings:
        return None
    return Section(f"{title} ({len(findings)})", (Paragraph(note), _table(findings, language)))


def _hidden(result: AuditResult) -> tuple[Finding, ...]:
    return tuple(finding for finding in result.findings if result.hides(finding))


def _table(findings: tuple[Finding, ...], language: Language) -> Table:
    phrases = PHRASES[language]
    rows = tuple(
        (phrases.severity[finding.severity], kind(finding, language), place(finding.location, language))
        for finding in findings
    )
    return Table((phrases.severity_title, phrases.kind, phrases.place), rows)
