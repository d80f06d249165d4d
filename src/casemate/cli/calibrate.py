"""`casemate calibrate`: hold the log of an engine's start-up against the planner, and keep what it corrects."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from casemate import settings
from casemate.checkpoint.facts import Checkpoint
from casemate.cli import corrections, planning, reading_logs
from casemate.cli.output import Form, Json, TextOrJson, is_json, print_json, width
from casemate.doctor.machine import Machine
from casemate.errors import UsageError
from casemate.plan import calibration_sheet as sheet
from casemate.plan.calibration import Unusable, calibrated, key_of, with_entry
from casemate.plan.correction import Entry
from casemate.report import text
from casemate.report.document import Document
from casemate.report.visible import visible

_UNUSABLE = 1


def calibrate(  # noqa: PLR0913 - each is an option of the command line
    *,
    log: Annotated[str, typer.Option(metavar="FILE", help="What vLLM printed while it started; - reads it.")] = "",
    model: Annotated[str, typer.Option(help="The model: a folder, a config.json, or a hub id in the cache.")] = "",
    machine: Annotated[
        Path | None, typer.Option(metavar="FILE", help="It ran on what `doctor --json` printed elsewhere.")
    ] = None,
    gpus: Annotated[str, typer.Option(metavar="CARDS", help="It ran on named cards, such as 2xH20-96GB.")] = "",
    dry_run: Annotated[bool, typer.Option(help="Show what it corrects, store nothing.")] = False,
    forget: Annotated[bool, typer.Option(help="Remove what is stored: all, or of --model on this machine.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="Show what is stored.")] = False,
    form: TextOrJson = Form.TEXT,
    json: Json = False,
) -> int:
    """Correct the planner by what an engine's start-up measured."""
    path, as_json = settings.load().root / corrections.FILE, is_json(form, json)
    if bool(log) + forget + list_ != 1:
        raise UsageError("one of --log, --forget and --list is needed", remedy="casemate calibrate --log engine.log")
    if list_:
        entries = corrections.load(path)
        listed = [sheet.value_of_entry(entry) for entry in entries]
        _print({"corrections": listed}, sheet.of_entries(entries), as_json=as_json)
        return 0
    if forget and not model:
        corrections.forget(path)
        return _forgotten(corrections_left=(), gone="all", as_json=as_json)
    if not model:
        raise UsageError("the model is not named", remedy="give --model with its folder or config.json")
    host, checkpoint = _host(machine, gpus, model=model), _checkpoint(model)
    if forget:
        entries = corrections.load(path)
        left = tuple(entry for entry in entries if not _is_of(entry, host, checkpoint=checkpoint))
        corrections.save(path, left)
        return _forgotten(corrections_left=left, gone=str(len(entries) - len(left)), as_json=as_json)
    return _calibrate(log, checkpoint, host=host, path=None if dry_run else path, as_json=as_json)


def _calibrate(log: str, checkpoint: Checkpoint, *, host: Machine, path: Path | None, as_json: bool) -> int:
    """Store under `path`, or only show where it is None."""
    entries = corrections.load(path) if path else ()  # a damaged file is told of before a long log is read
    found = calibrated(reading_logs.facts(log), checkpoint, machine=host, date=_day(log), chips=planning.chips())
    if isinstance(found, Unusable):
        _print(sheet.value_of_unusable(found), sheet.of_unusable(found), as_json=as_json)
        return _UNUSABLE
    if path is not None:
        corrections.save(path, with_entry(entries, found.entry))
    stored = path is not None
    _print(
        sheet.value_of_calibration(found, stored=stored), sheet.of_calibration(found, stored=stored), as_json=as_json
    )
    return 0


def _forgotten(*, corrections_left: tuple[Entry, ...], gone: str, as_json: bool) -> int:
    if as_json:
        print_json({"forgotten": gone, "corrections": [sheet.value_of_entry(entry) for entry in corrections_left]})
    else:
        typer.echo(f"forgotten: {gone}; {len(corrections_left)} left")
    return 0


def _is_of(entry: Entry, host: Machine, *, checkpoint: Checkpoint) -> bool:
    where, shape = key_of(host, checkpoint, version=entry.release)
    return entry.host.is_like(where) and entry.shape.is_like(shape)


def _host(file: Path | None, gpus: str, *, model: str) -> Machine:
    host, notes = planning.machine_of(file, gpus, model=model)
    for note in notes:
        typer.echo(visible(f"casemate: {note}"), err=True)
    return host


def _checkpoint(model: str) -> Checkpoint:
    found = planning.model_of(model)
    if isinstance(found, Checkpoint):
        return found
    raise UsageError("a GGUF file runs on the CPU, where nothing is calibrated", where=model)


def _day(log: str) -> str:
    """The day of the start-up: when its log was last written to; today for what is read from a pipe."""
    try:
        written = datetime.now(UTC) if log == "-" else datetime.fromtimestamp(Path(log).stat().st_mtime, UTC)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"cannot read the log: {why}", where=log, remedy="name a file, or -") from error
    return written.date().isoformat()


def _print(value: dict[str, Any], document: Document, *, as_json: bool) -> None:
    if as_json:
        print_json(value)
    else:
        typer.echo(text.render(document, width()), nl=False)
