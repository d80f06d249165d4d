"""An answer as a Document."""

from __future__ import annotations

from casemate.agents.ask import Answer, Part
from casemate.agents.phrases import PHRASES, TAGS, Phrases
from casemate.report.document import Block, Code, Document, Paragraph, Quote, Section, Table


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
    return Document(phrases.answer_title, lead=lead, sections=tuple(sections), language=TAGS[answer.language])


def _sources(answer: Answer, phrases: Phrases) -> Table:
    rows = tuple(
        (c.id, c.name, f"{c.source} {c.version}", phrases.named if c.cited else phrases.offered)
        for c in answer.citations
    )
    return Table((phrases.identifier, phrases.title, phrases.source, phrases.use), rows)


def _part(part: Part) -> Block:
    return Code(part.body, language="python") if part.kind == "code" else Paragraph(part.body)


def _prose(answer: Answer, phrases: Phrases) -> tuple[Block, ...]:
    if answer.model.name and answer.text:
        return (Quote(phrases.explained_by.format(model=answer.model.name), answer.text),)
    # Without a model the text of an answer about code only repeats its parts.
    return () if answer.parts else (Paragraph(answer.text),)
