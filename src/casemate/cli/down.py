"""`casemate down`: the end of the platform."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

import typer

from casemate import settings
from casemate.cli import state
from casemate.errors import PlatformError

_PATIENCE_S = 30.0
_LOOK_EVERY_S = 0.05


def down() -> int:
    """Stop the running platform."""
    config = settings.load()
    running = state.read(config.state)
    if running is None:
        typer.echo("the platform does not run", err=True)
        return 0
    with suppress(ProcessLookupError):
        os.kill(running.pid, signal.SIGTERM)
    deadline = time.monotonic() + _PATIENCE_S
    while state.alive(running):
        if time.monotonic() > deadline:
            raise PlatformError(
                f"the platform did not end within {_PATIENCE_S:g} s",
                where=f"process {running.pid}",
                remedy=f"kill -9 {running.pid}",
            )
        time.sleep(_LOOK_EVERY_S)
    typer.echo(f"stopped {running.url}", err=True)
    return 0
