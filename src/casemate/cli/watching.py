"""`casemate doctor watch`: what limits a running engine, live or as one verdict."""

from __future__ import annotations

import asyncio
import math
import signal
import sys
from collections import deque
from contextlib import aclosing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import typer
from rich.console import Console
from rich.live import Live

from casemate import settings
from casemate.cli.output import Form, Json, TextOrJson, is_json, print_json
from casemate.doctor import surroundings
from casemate.doctor.watch import screen
from casemate.doctor.watch.bottleneck import Verdict, judge
from casemate.doctor.watch.faults import WEDGED_S
from casemate.doctor.watch.run import Wanted, samples
from casemate.doctor.watch.sample import Sample
from casemate.doctor.watch.scraping import address
from casemate.errors import UsageError

_FOUND, _PARTIAL = 1, 2
_USUAL: Final = "http://127.0.0.1:8000"
_LIVE_S: Final = 60.0
_MORE_S: Final = WEDGED_S + 5
"""A window that ends while nothing moves is watched on for so long, until it is known what that is."""


def watch(  # noqa: PLR0913 - each is an option of the command line
    *,
    endpoint: Annotated[str, typer.Option(metavar="URL", help="The engine's address; its /metrics are read.")] = "",
    once: Annotated[bool, typer.Option("--once", help="Watch for a while, print one verdict and end.")] = False,
    interval: Annotated[float, typer.Option(min=0.2, max=60, metavar="S", help="Seconds between samples.")] = 1.0,
    count: Annotated[
        int, typer.Option("--samples", min=2, max=3600, metavar="N", help="Samples that --once takes.")
    ] = 20,
    log: Annotated[Path | None, typer.Option(metavar="FILE", help="The engine's log, to see it compile.")] = None,
    form: TextOrJson = Form.TEXT,
    json: Json = False,
) -> int:
    """Say what limits a running engine: live in a terminal, or once with --once or --json."""
    config = settings.load()
    url = endpoint or config.engine_url or _USUAL
    wanted = Wanted(
        url,
        key=config.engine_api_key.get_secret_value() if _same_server(url, config.engine_url) else "",
        interval_s=interval,
        log=log,
        variables=settings.of_environment(surroundings.VARIABLES),
    )
    if log is not None and not log.name:
        raise UsageError("--log names no file", remedy="give the path of the engine's log")
    address(url)  # what cannot be an address is said before anything is drawn
    if math.isnan(interval):
        raise UsageError("--interval is no number of seconds")
    if not (once or is_json(form, json)) and sys.stdout.isatty():
        with suppress(KeyboardInterrupt, asyncio.CancelledError):
            asyncio.run(_live(wanted))
        return 0
    verdict = asyncio.run(_once(wanted, count))
    if is_json(form, json):
        print_json(_value(verdict))
    else:
        typer.echo("\n".join(screen.lines(verdict)))
    return _exit(verdict)


async def _once(wanted: Wanted, count: int) -> Verdict:
    window: list[Sample] = []
    async with aclosing(samples(wanted)) as stream:
        async for sample in stream:
            window.append(sample)
            if len(window) > count and not _undecided(verdict := judge(window)):
                return verdict
    raise RuntimeError("samples come without end")


def _undecided(verdict: Verdict) -> bool:
    """It stands still, and not yet for long enough to know why; or it does not answer."""
    figures = verdict.figures
    waits = verdict.kind == "stalled" or 0 < figures.silent_at_end_s < WEDGED_S
    return waits and max(figures.engine.still_s, figures.silent_at_end_s) < _MORE_S


async def _live(wanted: Wanted) -> None:
    task = asyncio.current_task()
    if task:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    window: deque[Sample] = deque(maxlen=1 + max(10, int(max(_LIVE_S, 2 * WEDGED_S) / wanted.interval_s)))
    with Live(console=Console(), auto_refresh=False) as live:
        async with aclosing(samples(wanted)) as stream:
            async for sample in stream:
                window.append(sample)
                held = list(window)
                live.update(screen.screen(held, judge(held), url=wanted.url), refresh=True)


def _same_server(url: str, known: str) -> bool:
    """Whether the key for one address may go to the other."""
    one, other = urlsplit(url), urlsplit(known)
    return bool(known) and (one.scheme, one.netloc) == (other.scheme, other.netloc)


def _exit(verdict: Verdict) -> int:
    if verdict.kind == "dead" and not verdict.figures.answered:
        return _PARTIAL  # nobody knows whether there ever was an engine
    if verdict.found:
        return _FOUND
    return _PARTIAL if verdict.partial or verdict.kind == "unknown" else 0


def _value(verdict: Verdict) -> dict[str, Any]:
    return {
        "verdict": verdict.kind,
        "found": verdict.found,
        "advice": verdict.advice,
        "partial": list(verdict.partial),
        "suspects": [asdict(suspect) for suspect in verdict.suspects],
        **asdict(verdict.figures),
    }
