"""What every engine that starts a process must do: the same suite on the simulator and on the real llama.cpp."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest
import pytest_asyncio

from casemate.chat.http import HttpModel
from casemate.chat.model import Endpoint
from casemate.chat.wire import ChatRequest, Delta, Message
from casemate.engine import supervisor
from casemate.engine.interface import Engine, Ready, Starting
from casemate.engine.llamacpp import LlamaCpp
from casemate.engine.remote import Remote
from casemate.engine.simulator import Script, Simulator
from casemate.errors import EngineDied, ModelError
from casemate.plan.decision import CpuPlan
from engine.family import descendants, living, port_is_free

pytestmark = pytest.mark.asyncio(loop_scope="module")  # one start of each engine serves them all

KINDS = ["simulator", pytest.param("llamacpp", marks=pytest.mark.model)]
LONG = "one two three four five six seven eight nine ten " * 200


@dataclass(frozen=True)
class Running:
    engine: Engine
    plan: CpuPlan
    endpoint: Endpoint
    seen: list[Starting | Ready]


def plan_for(kind: str, request: pytest.FixtureRequest) -> CpuPlan:
    path: Path | str = request.getfixturevalue("model_file") if kind == "llamacpp" else ""
    return CpuPlan(kind, "the-model", str(path), context=512, slots=2, threads=2, memory_bytes=0)


def engine_of(kind: str) -> Engine:
    return LlamaCpp() if kind == "llamacpp" else Simulator(Script(otherwise=LONG, token_ms=5))


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=KINDS)
async def running(request: pytest.FixtureRequest) -> AsyncIterator[Running]:
    engine, plan = engine_of(request.param), plan_for(request.param, request)
    seen: list[Starting | Ready] = []
    async with supervisor.running(engine, plan, terms=supervisor.Terms(observe=seen.append)) as endpoint:
        yield Running(engine, plan, endpoint, seen)


def listening() -> set[str]:
    """Every TCP address of this machine that somebody listens on, as the kernel prints it."""
    tables = [Path(f"/proc/self/net/{table}").read_text().splitlines()[1:] for table in ("tcp", "tcp6")]
    return {row.split()[1] for table in tables for row in table if row.split()[3] == "0A"}


async def answer(running: Running, words: str = "Say hello.", **options: object) -> list[Delta]:
    async with HttpModel(running.endpoint, key=running.engine.key) as model:
        request = ChatRequest(
            messages=(Message("user", words),), options={"max_tokens": 8, "temperature": 0, **options}
        )
        return [delta async for delta in model.stream(request)]


async def test_its_answers_stream_and_end_with_a_reason_and_a_count(running: Running) -> None:
    deltas = await answer(running)
    assert sum(bool(delta.content) for delta in deltas) > 1
    assert [delta.finish_reason for delta in deltas if delta.finish_reason] == ["length"]
    (usage,) = (delta.usage for delta in deltas if delta.usage)
    assert usage.completion_tokens == 8
    assert usage.prompt_tokens > 0


async def test_it_serves_every_slot_at_once_and_queues_the_rest(running: Running) -> None:
    answers = await asyncio.gather(*(answer(running) for _ in range(running.plan.slots + 2)))
    assert all(any(delta.content for delta in deltas) for deltas in answers)


@pytest.mark.parametrize("path", ["/v1/models", "/v1/chat/completions"])
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}], ids=["no key", "a wrong key"])
async def test_it_answers_401_to_whoever_does_not_hold_the_key(
    running: Running, path: str, headers: dict[str, str]
) -> None:
    method = "GET" if path == "/v1/models" else "POST"
    url = running.endpoint.url + path
    async with aiohttp.ClientSession() as session, session.request(method, url, headers=headers) as response:
        assert response.status == 401
        assert "error" in await response.json()


async def test_it_names_the_model_as_the_plan_does_and_counts_what_it_does(running: Running) -> None:
    headers = {"Authorization": f"Bearer {running.engine.key}"}
    async with aiohttp.ClientSession(running.endpoint.url, headers=headers) as session:
        async with session.get("/v1/models") as response:
            assert [card["id"] for card in (await response.json())["data"]] == ["the-model"]
        async with session.get("/metrics") as response:
            assert "tokens_total" in await response.text()


async def test_a_prompt_beyond_its_context_is_refused_with_400(running: Running) -> None:
    with pytest.raises(ModelError) as caught:
        await answer(running, LONG)
    assert caught.value.status == 400


async def test_closing_a_stream_early_leaves_it_able_to_answer(running: Running) -> None:
    async with HttpModel(running.endpoint, key=running.engine.key) as model:
        stream = model.stream(ChatRequest(messages=(Message("user", "Count."),), options={"max_tokens": 400}))
        await anext(stream)
        await stream.aclose()
    assert await answer(running)


async def test_its_start_was_watched_from_the_first_step_to_ready(running: Running) -> None:
    assert running.seen[0] == Starting("start")
    assert running.seen[-1] == Ready()
    shares = [step.share for step in running.seen if isinstance(step, Starting)]
    assert len(shares) > 1
    assert shares == sorted(shares)


async def test_it_listens_on_loopback_only(running: Running) -> None:
    port = f":{urlsplit(running.endpoint.url).port:04X}"
    assert {address for address in listening() if address.endswith(port)} == {f"0100007F{port}"}


async def test_another_process_can_use_it_as_a_remote_engine(running: Running) -> None:
    remote = Remote(running.endpoint.url + "/v1", key=running.engine.key)
    async with supervisor.running(remote, running.plan) as endpoint:
        assert endpoint.url == running.endpoint.url
        assert await answer(Running(remote, running.plan, endpoint, []))


@pytest.mark.parametrize("kind", KINDS)
async def test_it_ends_when_it_is_asked_to_and_frees_its_port(kind: str, request: pytest.FixtureRequest) -> None:
    others = descendants(os.getpid())
    async with supervisor.running(engine_of(kind), plan_for(kind, request)) as endpoint:
        family = descendants(os.getpid()) - others
    assert len(family) == 2
    assert not living(family)
    assert port_is_free(urlsplit(endpoint.url).port or 0)


@pytest.mark.parametrize("kind", KINDS)
async def test_it_ends_while_it_is_still_loading(kind: str, request: pytest.FixtureRequest) -> None:
    async def start() -> None:
        async with supervisor.running(engine_of(kind), plan_for(kind, request)):
            await asyncio.sleep(60)

    others = descendants(os.getpid())
    starting = asyncio.ensure_future(start())
    await asyncio.sleep(1)
    family = descendants(os.getpid()) - others
    assert family
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not living(family)


@pytest.mark.model
async def test_a_model_file_that_is_none_is_an_engine_that_died_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_text("this is no model")
    plan = CpuPlan("llamacpp", "x", str(tmp_path / "x.gguf"), context=512, slots=1, threads=1, memory_bytes=0)
    with pytest.raises(EngineDied, match="model loading error") as caught:
        async with supervisor.running(LlamaCpp(), plan):
            pytest.fail("it cannot load")
    assert caught.value.exit_code == 1
    assert any("invalid magic" in line for line in caught.value.tail)
