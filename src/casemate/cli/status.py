"""`casemate status`: what runs, and where."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated

import typer

from casemate import settings
from casemate.cli import output, state

_LOOK_EVERY_S = 0.1
_NOT_RUNNING = 1
_NOT_YET = 2


def status(
    wait: Annotated[float, typer.Option(help="Wait up to this many seconds until it is ready.")] = 0.0,
    format_: output.TextOrJson = output.Form.TEXT,
    json_: output.Json = False,
) -> int:
    """Say whether the platform runs, with which model, and where."""
    config = settings.load()
    deadline = time.monotonic() + wait
    while not ((running := state.read(config.state)) and running.ready) and time.monotonic() < deadline:
        time.sleep(_LOOK_EVERY_S)
    if output.is_json(format_, json_):
        output.print_json({"running": running is not None, **(asdict(running) if running else {})})
    else:
        typer.echo(_told(running))
    if running is None:
        return _NOT_YET if wait else _NOT_RUNNING
    return 0 if running.ready else _NOT_YET


def _told(running: state.Running | None) -> str:
    if running is None:
        return "not running: casemate up starts it"
    stage = "running" if running.ready else "starting"
    note = f"\nnote: {running.note}" if running.note else ""
    return f"{stage}: {running.model} at {running.url} (process {running.pid}){note}"
