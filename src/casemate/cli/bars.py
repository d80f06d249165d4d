"""Progress bars on stderr; without a terminal only their last state is printed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from rich import progress
from rich.console import Console
from rich.table import Column

from casemate.artifacts.partial import Observer, Progress
from casemate.engine.interface import Ready, Starting
from casemate.engine.supervisor import Observer as StartObserver


@contextmanager
def downloading() -> Iterator[Observer]:
    """A bar for each artefact that is on its way."""
    columns = (
        progress.TextColumn("{task.description}", table_column=Column(no_wrap=True)),
        progress.BarColumn(bar_width=16),
        progress.DownloadColumn(table_column=Column(no_wrap=True)),
        progress.TextColumn("{task.fields[source]}", table_column=Column(no_wrap=True, overflow="ellipsis")),
    )
    bars = progress.Progress(*columns, console=Console(stderr=True))
    tasks: dict[str, progress.TaskID] = {}

    def observe(step: Progress) -> None:
        if not tasks:
            bars.start()  # only now: bars without a task would still print a line
        if step.artifact not in tasks:
            tasks[step.artifact] = bars.add_task(step.artifact, total=step.total_bytes, source=step.source)
        bars.update(tasks[step.artifact], completed=step.done_bytes, source=step.source)

    with _ending_in_order():
        try:
            yield observe
        finally:
            if tasks:
                bars.stop()


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Let SIGTERM end us as an exception does, so that a download's own processes and files end with it."""

    def end(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def loading(model: str) -> Iterator[StartObserver]:
    """A bar for an engine's start, gone when the engine is ready."""
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(bar_width=16),
        progress.TextColumn("{task.fields[phase]}"),
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(model, total=1.0, phase="start")

        def observe(step: Starting | Ready) -> None:
            if isinstance(step, Ready):
                bars.stop()
            else:
                bars.update(task, completed=step.share, phase=step.phase)

        yield observe
