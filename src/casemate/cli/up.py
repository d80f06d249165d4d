"""`casemate up`: the platform."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, closing, nullcontext, suppress
from typing import Annotated

import typer
import uvloop

from casemate import settings
from casemate.chat.http import HttpModel
from casemate.chat.late import LateModel
from casemate.cli import history, notify, state
from casemate.cli.bars import downloading, loading
from casemate.cli.library import Library, open_library
from casemate.cli.speaker import PUBLIC_NAME, Backend, backend
from casemate.engine.interface import Ready, Starting
from casemate.engine.supervisor import Terms, running
from casemate.finding import ModelNote
from casemate.gateway.admission import Admission
from casemate.gateway.grounding import grounding
from casemate.settings import Settings
from casemate.web.app import application, serving
from casemate.web.atlas.lending import Lending
from casemate.web.services import Services

_QUEUE = 32
_REFUSED = 1


def up(
    port: Annotated[int | None, typer.Option(help="Port of the gateway; 0 picks a free one.")] = None,
    model: Annotated[str | None, typer.Option(help="Artefact name of the model to run first.")] = None,
) -> int:
    """Run the platform: engine, gateway and page, until told to stop."""
    given = {"port": port, "model": model}
    config = settings.load(**{key: value for key, value in given.items() if value is not None})
    with state.claimed(config.state):
        with downloading() as observer:
            found = backend(config, observer)
        if isinstance(found, ModelNote):
            typer.echo(f"refused, {found.note}; ask and audit work without a model", err=True)
            return _REFUSED
        platform = _Platform(config, found)
        run = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        with closing(platform.graph), run as runner, suppress(SystemExit, KeyboardInterrupt):
            runner.run(_serve(platform))
    return 0  # SIGTERM and Ctrl-C are how a platform is meant to end


class _Platform:
    """One platform on its way up: what it is made of, and how far the engine's start is."""

    def __init__(self, config: Settings, backend: Backend) -> None:
        self.config = config
        self.backend = backend
        self.model = LateModel()
        self.stage: Ready | Starting = Starting("start")
        self.graph = Lending(config.graph)
        self.library = open_library(config)

    def services(self) -> Services:
        """The parts that the web serves."""
        library = self.library
        return Services(
            model=self.model,
            model_name=PUBLIC_NAME,
            ready=lambda: self.stage,
            admission=Admission(self.backend.plan.slots, _QUEUE),
            grounding=grounding(library) if isinstance(library, Library) else None,
            checker=library if isinstance(library, Library) else None,
            context=self.backend.plan.context,
            note=_described(self.backend.note),
            local=not self.config.engine_url,
            report=lambda: history.latest(self.config),
            graph=self.graph.lent,
        )


async def _serve(platform: _Platform) -> None:
    """Serve at once, answer when the engine made a token, leave nothing behind."""
    config, note = platform.config, platform.backend.note
    async with serving(application(platform.services()), host=config.host, port=config.port) as url:
        state.write(config.state, url=url, note=note, ready=False)
        typer.echo(f"the page is at {url}; it answers when {note.name} is loaded", err=True)
        async with _answering(platform):
            state.write(config.state, url=url, note=note, ready=True)
            typer.echo(f"ready: {_described(note)} at {url} (OpenAI API: {url}/v1)", err=True)
            notify.ready(f"{_described(note)} at {url}")
            try:
                with _learning_meaning(platform):
                    await asyncio.Event().wait()
            finally:
                notify.stopping()


def _learning_meaning(platform: _Platform) -> AbstractContextManager[None]:
    """Embeds the graph while we serve, if that is wanted and there is one."""
    if platform.config.embedding and isinstance(platform.library, Library):
        return platform.library.meaning.growing()
    return nullcontext()


@asynccontextmanager
async def _answering(platform: _Platform) -> AsyncIterator[None]:
    backend = platform.backend
    with loading(backend.note.name) as show:

        def observe(step: Starting | Ready) -> None:
            platform.stage = step
            show(step)

        async with (
            running(backend.engine, backend.plan, terms=Terms(observe=observe)) as endpoint,
            HttpModel(endpoint, key=backend.engine.key) as model,
        ):
            platform.model.attach(model)
            yield


def _described(note: ModelNote) -> str:
    return f"{note.name} ({note.note})" if note.note else note.name
