"""Findings and answers as Documents: for the manager who reads the first page, and the developer who needs each place.

Partial is never called clean; the model's words stand apart under its name.
"""

from __future__ import annotations

from collections import Counter

from casemate.agents import gates
from casemate.agents.ask import Answer, Part
from casemate.agents.audit.wording import wording
from casemate.agents.phrases import PHRASES, Language, Phrases
from casemate.finding import AuditResult, Clause, Finding, Ledger, Location, ModelNote, Severity
from casemate.report.document import (
    Block,
    Code,
    Document,
    Figure,
    Figures,
    Links,
    Paragraph,
    Quote,
    Section,
    Table,
    Verdict,
)


def document(result: AuditResult, *, language: Language, root: str) -> Document:
    """The report of an audit.

    Args:
        result: findings in their order, the ledger, and which model explained.
        language: of every fixed word; findings keep their own names.
        root: what was audited, as the reader knows it.
    """
    phrases = PHRASES[language]
    sections = [_summary(result, language)]
    if result.findings:
        each = tuple(
            _finding(number, f, model=result.model, language=language)
            for number, f in enumerate(result.findings, start=1)
        )
        sections.append(Section(phrases.findings, sections=each))
    sections.append(_unread(result.ledger, phrases))
    clauses = _clauses(result.findings, phrases)
    return Document(
        title=phrases.report_title.format(root=root),
        lead=(_verdict(result, phrases),),
        sections=(*sections, *((clauses,) if clauses else ())),
        language=_TAGS[language],
    )


def answer_document(answer: Answer) -> Document:
    """An answer: its parts, the model's words under its name, and the sources that were checked."""
    phrases = PHRASES[answer.language]
    prose = _prose(answer, phrases)
    sections = [Section(part.title, (_part(part),)) for part in answer.parts]
    if sections and prose:
        sections.append(Section(phrases.explanation, prose))
    if answer.citations:
        sections.append(Section(phrases.sources, (_sources(answer, phrases),)))
    if answer.model.note:
        sections.append(Section(phrases.model, (Paragraph(answer.model.note),)))
    asked = Code(answer.question) if "\n" in answer.question else Paragraph(answer.question)
    lead = (asked, *(() if answer.parts else prose))
    return Document(phrases.answer_title, lead=lead, sections=tuple(sections), language=_TAGS[answer.language])


def _sources(answer: Answer, phrases: Phrases) -> Table:
    rows = tuple(
        (c.id, c.name, f"{c.source} {c.version}", phrases.named if c.cited else phrases.offered)
        for c in answer.citations
    )
    return Table((phrases.identifier, phrases.title, phrases.source, phrases.use), rows)


_TAGS: dict[Language, str] = {"en": "en", "zh": "zh-CN"}


def _part(part: Part) -> Block:
    return Code(part.body, language="python") if part.kind == "code" else Paragraph(part.body)


def _prose(answer: Answer, phrases: Phrases) -> tuple[Block, ...]:
    if answer.model.name and answer.text:
        return (Quote(phrases.explained_by.format(model=answer.model.name), answer.text),)
    # Without a model the text of an answer about code only repeats its parts.
    return () if answer.parts else (Paragraph(answer.text),)


def _verdict(result: AuditResult, phrases: Phrases) -> Verdict:
    ledger = result.ledger
    numbers = {"found": len(result.findings), "analysed": ledger.analysed, "failed": len(ledger.failed)}
    files = ledger.analysed + len(ledger.failed)
    if not files:
        return Verdict("warn", phrases.nothing_analysed)
    if not ledger.complete:
        text = phrases.incomplete if result.findings else phrases.incomplete_clean
        return Verdict("warn", text.format(files=files, **numbers))
    if result.findings:
        return Verdict("bad", phrases.found.format(**numbers))
    return Verdict("good", phrases.clean.format(**numbers))


def _summary(result: AuditResult, language: Language) -> Section:
    phrases = PHRASES[language]
    ledger, findings = result.ledger, result.findings
    marked = sum(finding.suppressed for finding in findings)
    model = " ".join(filter(None, (result.model.name, result.model.note))) or phrases.no_model
    figures = (
        (phrases.analysed, str(ledger.analysed)),
        (phrases.skipped, str(len(ledger.skipped))),
        (phrases.failed, str(len(ledger.failed))),
        (phrases.suppressed_count, str(marked)),
        (phrases.model, model),
    )
    blocks: list[Block] = [Figures(tuple(Figure(label, value) for label, value in figures))]
    if findings:
        blocks += [_by_severity(findings, phrases), _by_kind(findings, language)]
    return Section(phrases.summary, tuple(blocks))


def _by_severity(findings: tuple[Finding, ...], phrases: Phrases) -> Table:
    counts = Counter(finding.severity for finding in findings)
    rows = tuple((phrases.severity[severity], str(counts[severity])) for severity in Severity if counts[severity])
    return Table((phrases.severity_title, phrases.count), (*rows, (phrases.total, str(len(findings)))))


def _by_kind(findings: tuple[Finding, ...], language: Language) -> Table:
    phrases = PHRASES[language]
    kinds: dict[str, list[Finding]] = {}
    for finding in findings:
        kinds.setdefault(finding.cwe, []).append(finding)
    ordered = sorted(kinds.values(), key=lambda same: (min(f.severity.rank for f in same), -len(same), same[0].cwe))
    rows = tuple((_kind(same[0], language), phrases.severity[_worst(same)], str(len(same))) for same in ordered)
    return Table((phrases.kind, phrases.severity_title, phrases.count), rows)


def _worst(findings: list[Finding]) -> Severity:
    return min((finding.severity for finding in findings), key=lambda severity: severity.rank)


def _finding(number: int, finding: Finding, *, model: ModelNote, language: Language) -> Section:
    phrases, words = PHRASES[language], wording(finding, language)
    facts = (
        (phrases.kind, f"{finding.cwe} {finding.name}"),
        (phrases.severity_title, phrases.severity[finding.severity]),
        (phrases.confidence_title, phrases.confidence[finding.confidence]),
        (phrases.place, _place(finding.location)),
        (phrases.technique, finding.technique),
        (phrases.clauses, "; ".join(_clause(clause) for clause in finding.clauses)),
    )
    blocks: list[Block] = [Figures(tuple(Figure(label, value) for label, value in facts if value))]
    if words.message:
        blocks.append(Paragraph(words.message))
    if finding.suppressed:
        blocks.append(Verdict("note", phrases.suppressed))
    blocks.append(Code(finding.evidence, phrases.evidence, "python"))
    if finding.flow:
        steps = tuple((str(step), _place(s.location), s.note) for step, s in enumerate(finding.flow, start=1))
        blocks.append(Table((phrases.step, phrases.place, phrases.flow), steps))
    blocks.append(
        Code(finding.fix, phrases.fix, "python")
        if finding.fix
        else Paragraph(gates.joined(filter(None, (phrases.no_fix, words.guidance))))
    )
    if finding.explanation:
        blocks.append(Quote(phrases.explained_by.format(model=model.name or phrases.a_model), finding.explanation))
    if finding.references:
        blocks.append(Links(phrases.references, finding.references))
    place = f"{finding.location.path}:{finding.location.line}"
    return Section(
        f"{number}. [{phrases.severity[finding.severity]}] {_kind(finding, language)}, {place}", tuple(blocks)
    )


def _unread(ledger: Ledger, phrases: Phrases) -> Section:
    blocks: list[Block] = []
    for title, files in ((phrases.failed, ledger.failed), (phrases.skipped, ledger.skipped)):
        if files:
            rows = tuple((file.path, file.reason) for file in files)
            blocks += [Paragraph(f"{title}{phrases.colon}{len(files)}"), Table((phrases.file, phrases.reason), rows)]
    return Section(phrases.not_looked_at, tuple(blocks) or (Paragraph(phrases.everything_looked_at),))


def _clauses(findings: tuple[Finding, ...], phrases: Phrases) -> Section | None:
    counts = Counter(clause for finding in findings for clause in finding.clauses)
    if not counts:
        return None
    ordered = sorted(counts, key=lambda clause: (clause.framework, clause.id))
    rows = tuple((clause.framework, clause.id, clause.title, str(counts[clause])) for clause in ordered)
    header = (phrases.framework, phrases.clause, phrases.title, phrases.findings)
    return Section(phrases.clauses_touched, (Paragraph(phrases.clauses_note), Table(header, rows)))


def _kind(finding: Finding, language: Language) -> str:
    return f"{finding.cwe} {wording(finding, language).title}"


def _clause(clause: Clause) -> str:
    return f"{clause.framework} {clause.id}"


def _place(place: Location) -> str:
    return f"{place.path}:{place.line}:{place.column}"
