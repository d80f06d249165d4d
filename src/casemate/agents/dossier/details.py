"""One finding for the developer: the place, the flow to it, why it matters, how to mend it, and what it bears on."""

from __future__ import annotations

from casemate.agents import gates
from casemate.agents.audit.bearing import basis, technique_name
from casemate.agents.audit.notes import told
from casemate.agents.audit.wording import wording
from casemate.agents.dossier.naming import anchor, full_kind, kind, place
from casemate.agents.dossier.words import WORDS
from casemate.agents.phrases import PHRASES, Language
from casemate.finding import Finding, ModelNote
from casemate.report.document import (
    Block,
    Change,
    Code,
    Figure,
    Figures,
    Fold,
    Links,
    Mark,
    Paragraph,
    Quote,
    Section,
    Step,
    Steps,
    Verdict,
)

_MOST_STEPS = 50
_CUT = "…(masked)"
"""By which `facts.masking` shows that a secret was cut, and columns with it."""


def detail(finding: Finding, number: int, *, model: ModelNote, language: Language) -> Section:
    """Everything that is known of a finding, under its number."""
    phrases, words, said = PHRASES[language], WORDS[language], wording(finding, language)
    facts = (
        (phrases.kind, full_kind(finding, language)),
        (phrases.severity_title, phrases.severity[finding.severity]),
        (phrases.confidence_title, phrases.confidence[finding.confidence]),
        (phrases.place, place(finding.location, language)),
        (words.scope, finding.scope),
    )
    blocks: list[Block] = [Figures(tuple(Figure(label, value) for label, value in facts if value))]
    if said.message:
        blocks.append(Paragraph(said.message))
    if finding.suppressed:
        blocks.append(Verdict("note", words.suppressed))
    blocks.append(_evidence(finding, phrases.evidence))
    if finding.flow:
        blocks.append(_flow(finding, language))
    blocks.append(_fix(finding, language))
    if finding.explanation:
        blocks.append(Quote(phrases.explained_by.format(model=model.name or phrases.a_model), finding.explanation))
    if about := _about(finding, language):
        blocks.append(Fold(words.about, about))
    title = f"{number}. [{phrases.severity[finding.severity]}] {kind(finding, language)}"
    title += f"{phrases.comma}{place(finding.location, language)}"
    return Section(title, tuple(blocks), anchor=anchor(number), kind=finding.severity.value)


def _evidence(finding: Finding, caption: str) -> Code:
    at = finding.location
    first = at.cell.line if at.cell else max(0, at.line)
    lines = finding.evidence.count("\n") + 1
    if at.cell or _CUT in finding.evidence:
        mark = Mark(first, first + lines - 1)
    else:
        mark = Mark(at.line, at.end_line, at.column, at.end_column)
    return Code(finding.evidence, caption, "python", first, mark if first else None)


def _flow(finding: Finding, language: Language) -> Steps:
    steps = tuple(Step(place(step.location, language), told(step.note, language), step.text) for step in finding.flow)
    if (rest := len(steps) - _MOST_STEPS) > 0:
        steps = (*steps[: _MOST_STEPS - 1], Step("", WORDS[language].more.format(count=rest)), steps[-1])
    return Steps(steps, PHRASES[language].flow)


def _fix(finding: Finding, language: Language) -> Block:
    phrases, words = PHRASES[language], WORDS[language]
    if (patch := finding.patch) is not None:
        return Change(patch.before, patch.after, words.fix_in_place.format(first=patch.first, last=patch.last))
    if finding.fix:
        return Code(finding.fix, phrases.fix, "python")
    return Paragraph(gates.joined(filter(None, (phrases.no_fix, wording(finding, language).guidance))))


def _about(finding: Finding, language: Language) -> tuple[Block, ...]:
    phrases = PHRASES[language]
    clauses = phrases.semicolon.join(f"{clause.framework} {clause.id}" for clause in finding.clauses)
    facts = ((phrases.technique, _technique(finding, language)), (phrases.clauses, clauses))
    figures = tuple(Figure(label, value) for label, value in facts if value)
    links = (Links(phrases.references, finding.references),) if finding.references else ()
    return (*((Figures(figures),) if figures else ()), *links)


def _technique(finding: Finding, language: Language) -> str:
    if not finding.technique:
        return ""
    words, found = WORDS[language], basis(finding.cwe, finding.technique)
    name = f"{finding.technique} {technique_name(finding.technique, language)}".strip()
    if found.reason:
        name = words.technique_basis.format(technique=name, kind=words.curated, reason=found.reason)
    exploited = words.exploited.format(count=found.exploited) if found.exploited else ""
    return PHRASES[language].semicolon.join(filter(None, (name, exploited)))
