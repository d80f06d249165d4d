"""`casemate status`: what runs, and where."""

from __future__ import annotations

import time
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
    while (running := state.read(config.state)) is None and time.monotonic() < deadline:
        time.sleep(_LOOK_EVERY_S)
    if output.is_json(format_, json_):
        value = {"running": running is not None, "url": "", "model": "", "note": "", "pid": 0}
        if running:
            value |= {"url": running.url, "model": running.model, "note": running.note, "pid": running.pid}
        output.print_json(value)
    elif running:
        typer.echo(f"running: {running.model} at {running.url} (process {running.pid})")
        if running.note:
            typer.echo(f"note: {running.note}")
    else:
        typer.echo("not running: casemate up starts it")
    if running:
        return 0
    return _NOT_YET if wait else _NOT_RUNNING
