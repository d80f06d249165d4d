"""Who speaks for one command: the running platform, a server that the user named, an engine of our own, or nobody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from casemate.artifacts.partial import Observer
from casemate.chat.http import HttpModel
from casemate.chat.model import ChatModel, Endpoint
from casemate.cli import state
from casemate.cli.bars import downloading, loading
from casemate.cli.choosing import RULES_ONLY, choose_model
from casemate.engine.interface import Engine
from casemate.engine.llamacpp import LlamaCpp
from casemate.engine.remote import Remote
from casemate.engine.supervisor import Terms, running
from casemate.errors import EngineError, SettingsError
from casemate.finding import ModelNote
from casemate.plan.decision import CpuPlan
from casemate.settings import Settings

PUBLIC_NAME = "casemate"
"""The model's name at the gateway, whichever speaks behind it."""
_CONTEXT_UNKNOWN = 0
_LOOK_EVERY_S = 0.2
_REMOTE_SLOTS = 16
"""Requests that we let a foreign server work on at once; it has its own queue behind them."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """A model that is ready, None for nobody, and what the reader must know about it."""

    model: ChatModel | None
    note: ModelNote


@dataclass(frozen=True, slots=True)
class Backend:
    """What to run behind a gateway, and what the reader must know about it."""

    engine: Engine
    plan: CpuPlan
    note: ModelNote


def backend(settings: Settings, observer: Observer | None = None) -> Backend | ModelNote:
    """The engine that the settings ask for, or why there is none."""
    if settings.engine_url:
        name = settings.engine_model
        if not name:
            raise SettingsError("engine_url needs engine_model: the model's name there", remedy="see docs/settings.md")
        engine = Remote(settings.engine_url, name, settings.engine_api_key.get_secret_value())
        planned = CpuPlan("remote", name, "", _CONTEXT_UNKNOWN, slots=_REMOTE_SLOTS, threads=0, memory_bytes=0)
        return Backend(engine, planned, ModelNote(name, f"at {settings.engine_url}"))
    chosen = choose_model(settings, observer)
    return Backend(LlamaCpp(), chosen.plan, chosen.note) if chosen.plan else chosen.note


@asynccontextmanager
async def speaking(settings: Settings, *, wanted: bool = True) -> AsyncIterator[Speaker]:
    """A ready model for the length of the block.

    Args:
        settings: where to look and what to start.
        wanted: False for nobody, without looking.

    An engine that does not start is nobody, with its reason in the note: what rules and graph know is never lost.

    Raises:
        EngineDied: the engine of our own ended while the block used it.
    """
    if not wanted:
        yield Speaker(None, ModelNote("", RULES_ONLY))
    elif platform := await _platform(settings):
        async with HttpModel(Endpoint(platform.url, PUBLIC_NAME)) as model:
            yield Speaker(model, ModelNote(platform.model, platform.note))
    elif isinstance(found := _obtained(settings), ModelNote):
        yield Speaker(None, found)
    else:
        async with AsyncExitStack() as stack:
            try:
                speaker = Speaker(await stack.enter_async_context(_own_engine(found)), found.note)
            except EngineError as error:
                speaker = Speaker(None, ModelNote("", f"{RULES_ONLY}; {error}"))
            yield speaker


async def _platform(settings: Settings) -> state.Running | None:
    """The running platform, once it is ready; None if there is none, or if it ends before."""
    while (running := state.read(settings.state)) and not running.ready:  # noqa: ASYNC110 - another process has no event
        await asyncio.sleep(_LOOK_EVERY_S)
    return running


def _obtained(settings: Settings) -> Backend | ModelNote:
    with downloading() as observer:
        return backend(settings, observer)


@asynccontextmanager
async def _own_engine(found: Backend) -> AsyncIterator[ChatModel]:
    with loading(found.note.name) as show:
        async with (
            running(found.engine, found.plan, terms=Terms(observe=show)) as endpoint,
            HttpModel(endpoint, key=found.engine.key) as model,
        ):
            yield model
