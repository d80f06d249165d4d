"""`casemate lint`: judge a command that starts vLLM, word by word, and give the corrected one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from casemate.checkpoint import reading as model
from casemate.checkpoint.facts import Checkpoint
from casemate.cli import hosts
from casemate.cli.output import Form, Json, TextOrJson, is_json, print_json, width
from casemate.doctor.machine import Machine
from casemate.engine.flags.advice import advice
from casemate.engine.flags.choosing import Asked, chosen
from casemate.engine.flags.published import published
from casemate.engine.flags.table import recorded
from casemate.errors import UsageError
from casemate.plan.recipe import reading, telling
from casemate.plan.recipe.judging import Ground, Report, judge
from casemate.plan.recipe.launch import Launch
from casemate.plan.recipe.masking import masked
from casemate.report.visible import visible

_FOUND = 1
_MOST_BYTES = 16 << 20


def lint(  # noqa: PLR0913 - each is an option of the command line
    words: Annotated[
        list[str], typer.Argument(metavar="COMMAND|FILE", help="A command (in quotes, or behind --), or a file, or -.")
    ],
    *,
    engine_version: Annotated[str, typer.Option(metavar="VERSION", help="Judge by the flags of this version.")] = "",
    help_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Judge by a saved `vllm serve --help=all`.")
    ] = None,
    machine: Annotated[Path | None, typer.Option(metavar="FILE", help="What `casemate doctor --json` printed.")] = None,
    model_: Annotated[
        Path | None, typer.Option("--model", metavar="FOLDER", help="The model's folder or its config.json.")
    ] = None,
    form: TextOrJson = Form.TEXT,
    json: Json = False,
) -> int:
    """Judge the command that starts an engine, and correct it."""
    host = _machine(machine)
    asked = Asked(engine_version, _text(help_file) if help_file else None, host)
    checkpoint = _checkpoint(model_)
    reports, notes = [], []
    for launch in _launches(words):
        table, note = chosen(asked, launch.version)
        notes.append(note)
        known = checkpoint or published(_named(launch))
        ground = Ground(table, recorded(), advice(), known, host, presumed=checkpoint is None)
        reports.append(judge(launch, ground))
    _print(reports, notes, as_json=is_json(form, json))
    return 0 if all(report.clean for report in reports) else _FOUND


def _print(reports: list[Report], notes: list[str], *, as_json: bool) -> None:
    if as_json:
        values = [telling.as_value(report) for report in reports]
        first = {name: values[0][name] for name in ("clean", "problems", "corrected")}
        version = reports[0].table.version or None
        print_json(
            {"engine_version": version, "notes": list(filter(None, dict.fromkeys(notes))), **first, "launches": values}
        )
        return
    for note in filter(None, dict.fromkeys(notes)):
        typer.echo(visible(f"casemate: {note}"), err=True)
    for report in reports:
        typer.echo(visible("\n".join(telling.lines(report, width()))))


def _launches(words: list[str]) -> tuple[Launch, ...]:
    if len(words) > 1:
        return reading.of_words(words)
    text = words[0]
    if text == "-":
        return reading.launches(typer.get_text_stream("stdin", errors="replace").read(reading.MOST_BYTES + 1))
    if "\n" not in text and len(text) < 4096 and "\x00" not in text and _is_file(text):
        return reading.launches(_text(Path(text), most=reading.MOST_BYTES + 1))
    if not text.strip() or (" " not in text and "\n" not in text and not text.startswith("-")):
        raise UsageError(
            "there is no such file, and it is no command", where=masked(text[:200]), remedy="put a command in quotes"
        )
    return reading.launches(text)


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except OSError:
        return False


def _text(path: Path, most: int = _MOST_BYTES) -> str:
    try:
        with path.open("rb") as file:
            return file.read(most).decode("utf-8", errors="replace")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"it cannot be read: {why}", where=str(path), remedy="name a file that can be read") from error


def _machine(path: Path | None) -> Machine | None:
    return hosts.told(path)[0] if path else None


def _checkpoint(path: Path | None) -> Checkpoint | None:
    found = model.read(path) if path else None
    if found is None or isinstance(found, Checkpoint):
        return found
    raise UsageError(
        "a GGUF file is not what this engine is run with", where=str(path), remedy="name a safetensors folder"
    )


def _named(launch: Launch) -> str:
    """The model that a command names, as written; empty if it names none."""
    texts = [word.text for word in launch.arguments]
    for at, text in enumerate(texts):
        if text == "--model" and at + 1 < len(texts):
            return texts[at + 1]
        if text.startswith("--model="):
            return text.partition("=")[2]
    return texts[0] if texts and not texts[0].startswith("-") else ""
