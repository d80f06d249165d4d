"""`casemate ask`: one question, one answer with checked citations."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from casemate import settings
from casemate.agents import dossier
from casemate.agents.ask import Answer, Tools
from casemate.agents.ask import ask as answered
from casemate.agents.audit.scan import scan_snippet
from casemate.cli import output
from casemate.cli.library import Library, open_library
from casemate.cli.speaker import speaking
from casemate.errors import UsageError
from casemate.report import findings, text
from casemate.settings import Settings

_FOUND, _INCOMPLETE = 1, 2


def ask(
    question: Annotated[str, typer.Argument(help="The question, in Chinese or English; - reads it from stdin.")],
    format_: output.TextOrJson = output.Form.TEXT,
    json_: output.Json = False,
    no_model: Annotated[bool, typer.Option("--no-model", help="Answer from rules and graph alone.")] = False,
) -> int:
    """Answer a question, or judge the code in it, with citations."""
    question = sys.stdin.read() if question == "-" else question
    if not question.strip():
        raise UsageError("the question is empty", remedy='casemate ask "How do I stop SSRF?"')
    answer = asyncio.run(_answer(settings.load(), question, wanted=not no_model))
    if output.is_json(format_, json_):
        output.print_json(_value(answer))
    else:
        typer.echo(text.render(dossier.answer_document(answer), output.width()))
    if answer.incomplete:
        return _INCOMPLETE
    return _FOUND if answer.findings else 0


async def _answer(config: Settings, question: str, *, wanted: bool) -> Answer:
    library = open_library(config)
    tools = Tools(retriever=library, scan=scan_snippet, gate=library.repair, graph=isinstance(library, Library))
    async with speaking(config, wanted=wanted) as speaker:
        return await answered(question, model=speaker.model, tools=tools, note=speaker.note)


def _value(answer: Answer) -> dict[str, object]:
    return {
        "language": answer.language,
        "question": answer.question,
        "parts": [asdict(part) for part in answer.parts],
        "text": answer.text,
        "citations": [asdict(citation) for citation in answer.citations],
        "findings": [findings.finding_json(finding) for finding in answer.findings],
        "incomplete": answer.incomplete,
        "model": asdict(answer.model),
    }
