"""`casemate doctor`: what this machine is, what that means for an engine, and what to do about it."""

from __future__ import annotations

from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import typer

from casemate.checkpoint import gguf, safetensors
from casemate.cli import hosts, reading_logs, watching
from casemate.cli.output import Form, Json, TextOrJson, is_json, print_json, width
from casemate.doctor import codec, engines, recorded, sheet
from casemate.doctor.advice import Advice, Install, advise
from casemate.doctor.checks.check import Check
from casemate.doctor.checks.model import Model
from casemate.doctor.checks.verdict import judge, overall
from casemate.doctor.machine import Machine
from casemate.errors import UsageError
from casemate.report import text
from casemate.report.visible import visible

_EXIT = {"ok": 0, "warn": 0, "fail": 1, "unknown": 2}

doctor = typer.Typer(help="Examine this machine and say what to do.", add_completion=False, rich_markup_mode=None)
doctor.command()(watching.watch)


@doctor.callback(invoke_without_command=True)
def examine(  # noqa: PLR0913 - each is an option of the command line
    context: typer.Context,
    *,
    form: TextOrJson = Form.TEXT,
    json: Json = False,
    recording: Annotated[
        Path | None, typer.Option("--recorded", metavar="FOLDER", help="Judge the recorded outputs of another host.")
    ] = None,
    machine: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Judge what `doctor --json` printed elsewhere.")
    ] = None,
    model: Annotated[Path | None, typer.Option(metavar="FOLDER", help="A model to look at, too.")] = None,
    log: Annotated[
        str | None,
        typer.Option("--log", metavar="FILE", help="Find the root line in an engine log; - reads stdin."),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option("--profile", metavar="FILE", help="Find the costliest stage in a profiler's summary."),
    ] = None,
    advice: Annotated[
        bool, typer.Option("--advise", help="Say which engine to install, as a lock with digests.")
    ] = False,
) -> int:
    """Examine this machine and say what to do."""
    options = (
        ("--recorded", recording is not None), ("--machine", machine is not None), ("--model", model is not None),
        ("--log", log is not None), ("--profile", profile is not None), ("--advise", advice),
        ("--json", json), ("--format", form is not Form.TEXT),
    )  # fmt: skip
    _alone([name for name, given in options if given], verb=context.invoked_subcommand or "")
    if context.invoked_subcommand is not None:
        return 0
    if log is not None:
        return reading_logs.diagnose(log, json=is_json(form, json))
    if profile is not None:
        return reading_logs.profile(profile, json=is_json(form, json))
    found, notes = _machine(recording, machine, model=model)
    wheels = engines.parsed((resources.files(engines.__package__) / engines.TABLE).read_text(encoding="utf-8"))
    checks = judge(found, wheels, model_=_model(model))
    advised = advise(found, wheels) if advice else None
    for note in notes:
        typer.echo(visible(f"casemate: {note}"), err=True)
    if is_json(form, json):
        print_json(_value(found, checks, advice=advised))
    else:
        typer.echo(text.render(sheet.document(found, checks, advice=advised), width()), nl=False)
    return _EXIT[overall(checks)]


def _alone(given: list[str], *, verb: str) -> None:
    """Refuse what would be passed over in silence.

    Raises:
        UsageError: options before `watch`, or others beside the reading of a log or a profile.
    """
    if verb and given:
        raise UsageError(f"{given[0]} says nothing to {verb}", remedy=f"put what {verb} takes behind it: see --help")
    reading = [name for name in given if name in ("--log", "--profile")]
    others = [name for name in given if name not in (*reading[:1], "--json", "--format")]
    if reading and others:
        raise UsageError(f"{reading[0]} and {others[0]} exclude each other", remedy="give one of them")


def _machine(recording: Path | None, file: Path | None, *, model: Path | None) -> tuple[Machine, tuple[str, ...]]:
    if recording is not None and file is not None:
        raise UsageError("--recorded and --machine exclude each other", remedy="give one of them")
    if recording is not None:
        if not recording.is_dir():
            raise UsageError(
                "there is no such folder", where=str(recording), remedy="name a folder of recorded outputs"
            )
        return recorded.recorded(recording), ()
    if file is not None:
        return hosts.told(file)
    return hosts.this_host(model), ()


def _model(path: Path | None) -> Model | None:
    """The model as its headers tell it; what is wrong with it is a finding here, not an error."""
    if path is None:
        return None
    if not path.exists():
        raise UsageError("there is no such model folder", where=str(path), remedy="check the path")
    try:
        if path.is_file():
            return Model(str(path), gguf.read_gguf(path).weights_bytes, 1)
        folder = safetensors.read_folder(path)
    except UsageError as error:
        return Model(str(path), 0, 0, str(error))
    return Model(str(path), sum(header.size_bytes for header in folder.headers), len(folder.headers))


def _value(machine: Machine, checks: tuple[Check, ...], *, advice: Advice | None) -> dict[str, Any]:
    value = {
        "verdict": overall(checks),
        "checks": [asdict(check) for check in checks],
        "machine": codec.to_json(machine),
    }
    if advice is None:
        return value
    return value | {"advice": {"kind": "install" if isinstance(advice, Install) else "instead", **asdict(advice)}}
