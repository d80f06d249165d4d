"""A progress bar for artefacts on their way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich import progress
from rich.console import Console
from rich.table import Column

from casemate.artifacts.partial import Observer, Progress


@contextmanager
def downloading() -> Iterator[Observer]:
    """A bar on stderr for each artefact that is on its way; without a terminal only its last state is printed."""
    columns = (
        progress.TextColumn("{task.description}", table_column=Column(no_wrap=True)),
        progress.BarColumn(bar_width=16),
        progress.DownloadColumn(table_column=Column(no_wrap=True)),
        progress.TextColumn("{task.fields[source]}", table_column=Column(no_wrap=True, overflow="ellipsis")),
    )
    with progress.Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, progress.TaskID] = {}

        def observe(step: Progress) -> None:
            if step.artifact not in tasks:
                tasks[step.artifact] = bars.add_task(step.artifact, total=step.total_bytes, source=step.source)
            bars.update(tasks[step.artifact], completed=step.done_bytes, source=step.source)

        yield observe
