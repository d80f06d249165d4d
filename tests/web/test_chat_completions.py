from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import openai
import orjson
import pytest

from casemate.chat.late import LateModel
from casemate.chat.scripted import ScriptedModel
from casemate.chat.wire import Delta
from casemate.engine.interface import Starting
from casemate.errors import ModelError
from casemate.gateway.admission import Admission
from casemate.web.app import serving
from casemate.web.guard import guarded
from casemate.web.openai import OpenAI
from fakes.asking import GROUNDED, HELLO, post, streaming
from fakes.platform import MODEL, Waiting, platform, services

BROKEN: list[list[Delta | Exception]] = [[Delta(content="Hel"), ModelError("the endpoint broke off")]]


@asynccontextmanager
async def client(address: str) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="any", max_retries=0) as made:
        yield made


async def test_the_official_client_reads_an_answer() -> None:
    async with platform() as address, client(address) as ask:
        answer = await ask.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Say hello."}])
    assert answer.choices[0].message.content == "Hello there."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (2, 2, 4)


async def test_the_official_client_reads_a_grounded_stream_to_its_citations() -> None:
    async with platform(services(["It is CWE-89, not CWE-99999."])) as address, client(address) as ask:
        chunks = [
            chunk
            async for chunk in await ask.chat.completions.create(
                model=MODEL,
                messages=[{"role": "user", "content": "What is it?"}],
                stream=True,
                stream_options={"include_usage": True},
                extra_body=GROUNDED,
            )
        ]
    said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert said == "It is CWE-89, not CWE-99999."
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.usage.completion_tokens for chunk in chunks if chunk.usage] == [5]
    citations = (chunks[-1].model_extra or {})["casemate"]["citations"]
    assert [(one["id"], one["grade"], one["cited"]) for one in citations] == [
        ("CWE-89", "H0", True),
        ("CWE-99999", "H2", True),
        ("CWE-564", "H0", False),
    ]


async def test_the_official_client_lists_the_model() -> None:
    async with platform() as address, client(address) as ask:
        (model,) = (await ask.models.list()).data
    assert (model.id, model.owned_by, model.model_extra) == (MODEL, "casemate", {"max_model_len": 4096})


@pytest.mark.parametrize("stream", [True, False])
async def test_grounding_is_told_in_a_header_and_off_unless_asked_for(*, stream: bool) -> None:
    async with platform() as address, aiohttp.ClientSession() as session:
        for extra, header in ((GROUNDED, "CWE-89,CWE-564"), ({}, None)):
            async with session.post(f"{address}/v1/chat/completions", json=HELLO | extra | {"stream": stream}) as reply:
                assert reply.headers.get("X-Casemate-Grounding") == header
                assert (b'"casemate"' in await reply.read()) == bool(header)


async def test_an_answer_that_is_not_streamed_carries_its_citations() -> None:
    async with platform(services(["It is CWE-89."])) as address:
        _, answer, _ = await post(address, HELLO | GROUNDED)
    assert [one["id"] for one in answer["casemate"]["citations"]] == ["CWE-89", "CWE-564"]


async def test_without_a_graph_a_grounded_request_is_answered_and_told_so() -> None:
    async with platform(grounding=None, checker=None) as address:
        status, answer, headers = await post(address, HELLO | GROUNDED)
    assert (status, headers["X-Casemate-Grounding"]) == (200, "unavailable")
    assert "casemate" not in answer


async def test_options_reach_the_model_untouched_and_ours_do_not() -> None:
    model = ScriptedModel(["one two three"])
    async with platform(model=model) as address:
        _, answer, _ = await post(address, HELLO | GROUNDED | {"max_tokens": 1, "stop": ["x"], "unknown": {"a": None}})
    assert answer["choices"][0]["finish_reason"] == "length"
    assert dict(model.requests[0].options) == {"max_tokens": 1, "stop": ["x"], "unknown": {"a": None}}


@pytest.mark.parametrize(
    ("error", "status", "retry"),
    [
        (ModelError("the endpoint cannot be reached"), 502, False),
        (ModelError("the endpoint answered 401", status=401), 502, False),
        (ModelError("the endpoint answered 500", status=500), 502, False),
        (ModelError("the context is full", status=400), 400, False),
        (ModelError("too many", status=429), 429, True),
        (ModelError("busy", status=503), 503, True),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_refusal_of_the_engine_becomes_the_right_status(
    error: ModelError, status: int, *, retry: bool, stream: bool
) -> None:
    async with platform(services([error])) as address:
        got, answer, headers = await post(address, HELLO | {"stream": stream})
    assert (got, answer["error"]["message"]) == (status, str(error))
    assert ("Retry-After" in headers) == retry


async def test_a_stream_that_breaks_off_ends_with_an_error_and_not_as_if_it_were_whole() -> None:
    async with platform(services(BROKEN)) as address, streaming(address) as response:
        assert response.status == 200
        *_, text, error, end = (await response.read()).split(b"\n\n")
    assert b'"Hel"' in text
    assert orjson.loads(error.removeprefix(b"data: "))["error"]["message"] == "the endpoint broke off"
    assert end == b""


async def test_the_official_client_raises_what_breaks_off_a_stream() -> None:
    async with platform(services(BROKEN)) as address, client(address) as ask:
        stream = await ask.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "hi"}], stream=True
        )
        with pytest.raises(openai.APIError, match="the endpoint broke off"):
            _ = [chunk async for chunk in stream]


async def test_while_the_engine_starts_requests_are_asked_to_come_back() -> None:
    async with platform(ready=lambda: Starting("load", 0.5), model=LateModel()) as address:
        status, answer, headers = await post(address, HELLO)
    assert (status, headers["Retry-After"]) == (503, "5")
    assert answer["error"]["message"] == "the engine is not ready yet (load, 50%)"


async def test_a_full_queue_refuses_and_serves_the_next_when_there_is_room() -> None:
    model = Waiting()
    admission = Admission(slots=1, queue=0)
    async with platform(model=model, admission=admission) as address:
        first = asyncio.create_task(post(address, HELLO))
        await asyncio.wait_for(model.asked.wait(), 10)
        status, answer, headers = await post(address, HELLO)
        assert (status, answer["error"]["code"]) == (503, "overloaded")
        assert int(headers["Retry-After"]) >= 1
        first.cancel()
        await asyncio.wait_for(model.stopped.wait(), 10)
        assert admission.running == 0


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("first", [True, False])
async def test_a_client_that_leaves_stops_the_engine(*, stream: bool, first: bool) -> None:
    model = Waiting(first=first)
    admission = Admission(slots=1, queue=0)
    async with platform(model=model, admission=admission) as address:
        asking = asyncio.create_task(post(address, HELLO | {"stream": stream}))
        await asyncio.wait_for(model.asked.wait(), 10)
        asking.cancel()
        await asyncio.wait_for(model.stopped.wait(), 10)
        assert admission.running == 0


async def test_a_client_that_leaves_the_queue_never_reaches_the_engine() -> None:
    model, admission = Waiting(), Admission(slots=1, queue=1)
    async with platform(model=model, admission=admission) as address:
        first = asyncio.create_task(post(address, HELLO))
        await asyncio.wait_for(model.asked.wait(), 10)
        model.asked.clear()
        second = asyncio.create_task(post(address, HELLO))
        async with asyncio.timeout(10):
            while not admission.waiting:  # noqa: ASYNC110 - the queue has no bell
                await asyncio.sleep(0.005)
            second.cancel()
            while admission.waiting:  # noqa: ASYNC110 - the queue has no bell
                await asyncio.sleep(0.005)
        first.cancel()
        await asyncio.wait_for(model.stopped.wait(), 10)
        assert not model.asked.is_set()


async def test_a_long_silence_is_filled_with_comments() -> None:
    app = guarded(OpenAI(services(Waiting(first=False)), keep_alive_s=0.01))
    async with serving(app, host="127.0.0.1", port=0) as address, streaming(address) as response:
        assert response.status == 200
        assert await response.content.readline() == b": still working\n"
