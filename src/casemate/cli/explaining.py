"""The second half of an audit: the model's words about what was found, or why there are none."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Protocol

import typer

from casemate.agents.audit.explain import Forgetful, Memory, Terms, Unexplained, explain
from casemate.agents.phrases import Language
from casemate.cli import output
from casemate.cli.choosing import RULES_ONLY
from casemate.cli.library import open_library
from casemate.cli.speaker import speaking
from casemate.errors import EngineError
from casemate.finding import AuditResult, Finding, ModelNote
from casemate.report.columns import wrapped
from casemate.report.visible import visible
from casemate.settings import Settings


class Told(Protocol):
    """Gets each finding's place, what was said about it and by whom, as it comes."""

    def __call__(self, place: str, said: str, *, speaker: str) -> None:
        """Show it, or count it."""
        ...


@dataclass(frozen=True, slots=True)
class Wish:
    """How many findings to explain, in which language, who is told, and who remembers."""

    limit: int
    language: Language
    told: Told
    memory: Memory = field(default_factory=Forgetful)


def explained(config: Settings, result: AuditResult, *, wish: Wish) -> AuditResult:
    """The same findings, the worst of those reported with the model's words where they passed the gates.

    The result's note counts what stayed unexplained. A model that cannot be had or breaks takes no finding with it.
    """
    try:
        return asyncio.run(_explained(config, result, wish=wish))
    except EngineError as error:
        note = ModelNote("", f"{RULES_ONLY}; {error}")
        typer.echo(visible(note.note), err=True)
        return replace(result, model=note)


def printed(place: str, said: str, *, speaker: str) -> None:
    """On stdout, below the findings."""
    typer.echo("\n".join((f"\n{place}, in the words of {speaker}:", *wrapped(said, output.width()))))


def counted(place: str, said: str, *, speaker: str) -> None:
    """On stderr, since stdout is for the report."""
    del said
    typer.echo(f"{place}: {speaker} has spoken", err=True)


async def _explained(config: Settings, result: AuditResult, *, wish: Wish) -> AuditResult:
    gate = open_library(config).repair
    missing: dict[str, str] = {}

    def missed(finding: Unexplained) -> None:
        missing[finding.fingerprint] = finding.reason

    async with speaking(config) as speaker:
        if speaker.model is None:
            typer.echo(visible(speaker.note.note), err=True)
            return replace(result, model=speaker.note)
        worst, done = result.open[: wish.limit], {}
        terms = Terms(wish.language, gate, wish.memory, speaker.note.name)
        async for finding in explain(worst, speaker.model, terms=terms, missed=missed):
            said = finding.explanation or f"(no explanation: {missing[finding.fingerprint]})"
            wish.told(_place(finding), visible(said), speaker=speaker.note.name)
            done[finding.fingerprint] = finding
    note = _noted(speaker.note, missing, asked=len(worst), rest=len(result.open) - len(worst))
    typer.echo(note.note, err=True)
    findings = tuple(done.get(finding.fingerprint, finding) for finding in result.findings)
    return replace(result, findings=findings, model=note)


def _place(finding: Finding) -> str:
    return visible(f"{finding.cwe} {finding.location.path}:{finding.location.line}")


def _noted(note: ModelNote, missing: dict[str, str], *, asked: int, rest: int) -> ModelNote:
    """The speaker's note with the count of what it explained; a model that explained nothing is not named."""
    count = f"explained {asked - len(missing)} of {asked + rest} findings"
    reasons = (f"{len(missing)} failed, the first: {next(iter(missing.values()))}",) if missing else ()
    unasked = (f"{rest} milder ones were not asked about (--explain)",) if rest else ()
    name = note.name if len(missing) < asked else ""
    return ModelNote(name, visible("; ".join(filter(None, (note.note, count, *reasons, *unasked)))))
