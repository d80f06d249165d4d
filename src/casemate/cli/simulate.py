"""`casemate simulate`: an engine without a model."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from casemate.engine import simulator_server
from casemate.engine.simulator import Faults, Script
from casemate.errors import PlatformError, UsageError

_MODEL = "simulator"
_CONTEXT = 8192


def simulate(  # noqa: PLR0913 - each is an option of the command line
    port: Annotated[int, typer.Option(min=1, max=65535, help="Loopback port to serve on.")],
    *,
    fault: Annotated[
        list[str] | None, typer.Option(help="What goes wrong: NAME or NAME=VALUE; may be given several times.")
    ] = None,
    answer: Annotated[str, typer.Option(help="What it answers.")] = Script().otherwise,
    slots: Annotated[int, typer.Option(min=1, help="Requests that it works on at once.")] = 4,
    first_token_ms: Annotated[float, typer.Option(min=0, help="From a request's turn to its first token.")] = 100.0,
    token_ms: Annotated[float, typer.Option(min=0, help="From one token to the next.")] = 20.0,
) -> int:
    """Run the engine simulator: scripted answers, a clock, faults."""
    script = Script(
        otherwise=answer,
        first_token_ms=first_token_ms,
        token_ms=token_ms,
        faults=Faults(**dict(map(_fault, fault or ()))),
    )
    typer.echo(f"simulating at http://127.0.0.1:{port}/v1 (model {_MODEL!r}); Ctrl-C stops", err=True)
    try:
        simulator_server.main([_MODEL, str(slots), str(_CONTEXT), str(port), script.to_json()])
    except OSError as error:
        raise PlatformError(f"cannot serve: {error.strerror}", where=f"port {port}", remedy="take another") from error
    return 0


def _fault(text: str) -> tuple[str, Any]:
    """A fault's field and value: a switch is on, a number or a text comes after the equals sign."""
    name, _, value = text.partition("=")
    known = {name.replace("_", "-"): value for name, value in asdict(Faults()).items()}
    if name not in known:
        raise UsageError(f"unknown fault {name!r}", remedy="one of " + ", ".join(known))
    kind = type(known[name])
    try:
        return name.replace("-", "_"), True if kind is bool else kind(value)
    except ValueError as error:
        raise UsageError(f"fault {name!r} wants a number", where=text) from error
