"""`casemate audit`: findings first, then the model's words about them."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from casemate import __version__, settings
from casemate.agents import dossier
from casemate.agents.audit.explain import Forgetful
from casemate.agents.audit.incremental.store import Store
from casemate.agents.audit.manuals import manuals
from casemate.agents.audit.reading.gathering import Options
from casemate.agents.audit.scan import scan
from casemate.cli import baselines, explaining, history, output, scoping
from casemate.cli.choosing import RULES_ONLY
from casemate.cli.explaining import Wish
from casemate.cli.remembering import explanations
from casemate.errors import CasemateError
from casemate.finding import AuditResult, ModelNote, Severity
from casemate.report import findings, html, markdown, sarif, text
from casemate.report.baseline import compared
from casemate.report.visible import as_json, visible
from casemate.settings import Settings

_FOUND, _INCOMPLETE = 1, 2
_LATER = "explains after the findings"


class Form(StrEnum):
    """What an audit can be printed as."""

    TEXT = "text"
    JSON = "json"
    MD = "md"
    HTML = "html"
    SARIF = "sarif"


class Language(StrEnum):
    """In which language a report is written."""

    EN = "en"
    ZH = "zh"


def audit(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    path: Annotated[Path, typer.Argument(help="File, folder or archive to audit.")],
    format_: Annotated[Form, typer.Option("--format", help="Form of the output.")] = Form.TEXT,
    json_: output.Json = False,
    output_: Annotated[Path | None, typer.Option("--output", "-o", help="File to write instead of stdout.")] = None,
    language: Annotated[Language, typer.Option(help="Language of the report.")] = Language.EN,
    no_model: Annotated[bool, typer.Option("--no-model", help="Findings only, without explanations.")] = False,
    explain_: Annotated[int, typer.Option("--explain", min=0, help="How many findings to explain, worst first.")] = 8,
    fail_on: Annotated[Severity, typer.Option(help="Mildest severity that makes the exit code 1.")] = Severity.INFO,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", help="Findings known from this file are shown apart and do not fail.")
    ] = None,
    write_baseline: Annotated[
        Path | None, typer.Option("--write-baseline", help="File to write today's findings to, as a baseline.")
    ] = None,
    honor_suppressions: Annotated[
        bool, typer.Option("--honor-suppressions", help="Leave out what marks in the source suppress; it is counted.")
    ] = False,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Neither use nor keep what an earlier run left.")
    ] = False,
    diff: scoping.Diff = "",
    archives: scoping.Archives = False,
    no_ignore: scoping.NoIgnore = False,
) -> int:
    """Audit a folder of code; the model explains, it never decides."""
    form = Form.JSON if json_ else format_
    config = settings.load()
    known = baselines.read(baseline)
    options = Options(ignore=not no_ignore, archives=archives)
    scanned = scan(path, store=None if no_cache else Store(config.audits), options=options, since=diff)
    result = AuditResult(scanned.findings, scanned.ledger, honoured=honor_suppressions)
    if known is not None:
        result = compared(result, known)
    wanted = explain_ > 0 and bool(result.open) and not no_model
    result = replace(result, model=ModelNote("", _LATER if wanted else RULES_ONLY))
    if streamed := form is Form.TEXT and output_ is None:
        typer.echo(_rendered(result, form, language=language, path=path))
    if wanted:
        told = explaining.printed if streamed else explaining.counted
        memory = Forgetful() if no_cache else explanations(config)
        result = explaining.explained(config, result, wish=Wish(explain_, language.value, told, memory))
    if not streamed:
        output.emit(_rendered(result, form, language=language, path=path), output_)
    baselines.write(result, write_baseline)
    _keep(config, result, path=path, language=language)
    return _exit_code(result, fail_on)


def _keep(config: Settings, result: AuditResult, *, path: Path, language: Language) -> None:
    """Keep the audit for the page; the report itself is out already, so a failure here does not change the outcome."""
    try:
        history.keep(config, result, title=str(path), language=language.value)
    except CasemateError as error:
        typer.echo(f"casemate: the page will not show this audit: {visible(str(error))}", err=True)


def _exit_code(result: AuditResult, fail_on: Severity) -> int:
    if not result.ledger.complete:
        return _INCOMPLETE
    return _FOUND if any(finding.severity.rank <= fail_on.rank for finding in result.open) else 0


def _rendered(result: AuditResult, form: Form, *, language: Language, path: Path) -> str:
    match form:
        case Form.JSON:
            return as_json(findings.to_json(result))
        case Form.SARIF:
            told = manuals(result.findings, language.value)
            return sarif.to_text(result, version=__version__, prefix=_below_checkout(path), manuals=told)
    document = dossier.document(result, language=language.value, root=str(path))
    match form:
        case Form.TEXT:
            return text.render(document, output.width())
        case Form.MD:
            return markdown.render(document)
        case Form.HTML:
            return html.render(document)


def _below_checkout(path: Path) -> str:
    """Where the audited folder lies in its git checkout: a code host wants addresses from the top."""
    folder = path.resolve() if path.is_dir() else path.resolve().parent
    for above in (folder, *folder.parents):
        if (above / ".git").exists():
            return "/".join(folder.relative_to(above).parts)
    return ""
