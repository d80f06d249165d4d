"""What every ChatModel must do: one suite on the script, on an endpoint on loopback, on the simulator, on llama.cpp."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from casemate.chat.http import HttpModel
from casemate.chat.model import ChatModel, Endpoint
from casemate.chat.scripted import ScriptedModel
from casemate.chat.wire import ChatRequest, Delta, Message
from casemate.engine import supervisor
from casemate.engine.llamacpp import LlamaCpp
from casemate.engine.simulator import Script, Simulator
from casemate.gateway.completion import Completion
from casemate.gateway.pipeline import Cited, closing
from casemate.plan.decision import CpuPlan
from fakes.platform import Checker, platform, services
from fakes.streams import DONE, OPENING, last, say
from fakes.upstream import Reply, upstream

pytestmark = pytest.mark.asyncio(loop_scope="module")  # one start of each model serves them all

TEXT = "one two three four five six seven eight nine ten eleven twelve"
LIMIT = 8
QUESTION = ChatRequest(
    messages=(Message("system", "You count."), Message("user", "Count from one to one hundred in words.")),
    options={"max_tokens": LIMIT, "temperature": 0},
)


@asynccontextmanager
async def engine(started: LlamaCpp | Simulator, path: Path | str = "") -> AsyncIterator[ChatModel]:
    plan = CpuPlan(started.name, "the-model", str(path), context=512, slots=1, threads=2, memory_bytes=0)
    async with supervisor.running(started, plan) as where, HttpModel(where, key=started.key) as model:
        yield model


@asynccontextmanager
async def endpoint() -> AsyncIterator[ChatModel]:
    words = [say(f"{word} ") for word in TEXT.split()[:LIMIT]]
    usage = last(b'{"prompt_tokens":9,"completion_tokens":8}')
    reply = Reply(pieces=(OPENING, *words, say("", finish=b'"length"'), usage, DONE))
    async with upstream(reply) as seen, HttpModel(Endpoint(seen.url, "the-model")) as model:
        yield model


@asynccontextmanager
async def gateway() -> AsyncIterator[ChatModel]:
    """Our own `/v1` is an endpoint like any other."""
    async with platform(services(lambda _: TEXT)) as address, HttpModel(Endpoint(address, "")) as model:
        yield model


@asynccontextmanager
async def scripted(wrap: Callable[[ChatModel], ChatModel]) -> AsyncIterator[ChatModel]:
    yield wrap(ScriptedModel(lambda _: TEXT))


OPENED: dict[str, Callable[[pytest.FixtureRequest], AbstractAsyncContextManager[ChatModel]]] = {
    "scripted": lambda _: scripted(lambda model: model),
    "cited": lambda _: scripted(lambda model: Cited(model, Checker())),
    "endpoint": lambda _: endpoint(),
    "gateway": lambda _: gateway(),
    "simulator": lambda _: engine(Simulator(Script(otherwise=TEXT))),
    "llamacpp": lambda request: engine(LlamaCpp(), request.getfixturevalue("model_file")),
}
KINDS = [pytest.param(kind, marks=[pytest.mark.model] * (kind == "llamacpp")) for kind in OPENED]


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=KINDS)
async def model(request: pytest.FixtureRequest) -> AsyncIterator[ChatModel]:
    async with OPENED[request.param](request) as made:
        yield made


async def ask(model: ChatModel, request: ChatRequest = QUESTION) -> list[Delta]:
    async with closing(model.stream(request)) as deltas:
        return [delta async for delta in deltas]


async def test_text_comes_in_increments_then_one_reason_and_one_usage(model: ChatModel) -> None:
    deltas = await ask(model)
    spoken = [at for at, delta in enumerate(deltas) if delta.content]
    reasons = [at for at, delta in enumerate(deltas) if delta.finish_reason]
    usages = [at for at, delta in enumerate(deltas) if delta.usage]
    assert len(spoken) > 1
    assert len(reasons) == len(usages) == 1
    assert spoken[-1] <= reasons[0] <= usages[0]
    assert deltas[reasons[0]].finish_reason == "length"
    usage = deltas[usages[0]].usage
    assert usage
    assert usage.completion_tokens == LIMIT
    assert usage.prompt_tokens > 0


async def test_no_delta_is_empty_and_only_the_last_may_cite(model: ChatModel) -> None:
    deltas = await ask(model)
    assert Delta() not in deltas
    assert all(delta.citations is None for delta in deltas[:-1])


async def test_the_same_question_gets_the_same_answer(model: ChatModel) -> None:
    texts = {"".join(delta.content for delta in await ask(model)) for _ in range(2)}
    assert len(texts) == 1


async def test_an_iterator_closed_early_leaves_a_model_that_answers(model: ChatModel) -> None:
    long = ChatRequest(messages=QUESTION.messages, options={"max_tokens": 300, "temperature": 0})
    for _ in range(2):
        async with closing(model.stream(long)) as deltas:
            await anext(deltas)
    async with asyncio.timeout(30):  # the single slot of the engines is free again
        assert await ask(model)


async def test_the_deltas_add_up_to_one_completion(model: ChatModel) -> None:
    completion = Completion("chatcmpl-1", "the-model", created=0)
    for delta in await ask(model):
        completion.add(delta)
    choice = completion.value()["choices"][0]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["content"].strip()
