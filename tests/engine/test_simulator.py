from __future__ import annotations

import time
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from casemate.engine import supervisor
from casemate.engine.simulator import Script, Simulator
from engine.owner import PLAN

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCRIPT = Script(
    answers=(("weather", "It rains, 下雨了."), ("sql", "No.")), otherwise="So?", first_token_ms=40, token_ms=5
)
HELLO = {"model": "sim", "messages": [{"role": "user", "content": "hello"}]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    engine = Simulator(SCRIPT)
    headers = {"Authorization": f"Bearer {engine.key}"}
    async with (
        supervisor.running(engine, PLAN) as endpoint,
        aiohttp.ClientSession(endpoint.url, headers=headers) as session,
    ):
        yield session


async def post(session: aiohttp.ClientSession, body: object) -> tuple[int, bytes]:
    async with session.post("/v1/chat/completions", json=body) as response:
        return response.status, await response.read()


async def test_a_streamed_answer_is_exact_on_the_wire(session: aiohttp.ClientSession) -> None:
    body = HELLO | {"stream": True, "stream_options": {"include_usage": True}}
    status, data = await post(session, body)
    number = data.split(b'"')[3].decode()
    card = f'"id":"{number}","created":0,"model":"sim","object":"chat.completion.chunk"'
    choices = (
        '[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]',
        '[{"index":0,"delta":{"content":"So"},"finish_reason":null}]',
        '[{"index":0,"delta":{"content":"?"},"finish_reason":null}]',
        '[{"index":0,"delta":{},"finish_reason":"stop"}]',
        '[],"usage":{"prompt_tokens":1,"total_tokens":3,"completion_tokens":2}',
    )
    assert status == 200
    assert (
        data.decode() == "".join(f'data: {{{card},"choices":{choice}}}\n\n' for choice in choices) + "data: [DONE]\n\n"
    )


async def test_a_whole_answer_is_chosen_by_the_words_of_the_last_user_message(session: aiohttp.ClientSession) -> None:
    messages = [{"role": "user", "content": "sql?"}, {"role": "user", "content": "And the weather?"}]
    async with session.post("/v1/chat/completions", json={"messages": messages}) as response:
        answer = await response.json()
    assert answer["choices"] == [
        {"index": 0, "message": {"role": "assistant", "content": "It rains, 下雨了."}, "finish_reason": "stop"}
    ]
    assert answer["usage"] == {"prompt_tokens": 6, "total_tokens": 13, "completion_tokens": 7}


async def test_the_clock_is_not_faster_than_the_script(session: aiohttp.ClientSession) -> None:
    before = time.monotonic()
    await post(session, {"messages": [{"role": "user", "content": "weather"}]})
    assert time.monotonic() - before >= (40 + 6 * 5) / 1000


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ("text", 400, b"no chat request"),
        ({}, 400, b"no chat request"),
        ({"messages": [{"role": "user"}]}, 400, b"no chat request"),
        (HELLO | {"model": "other"}, 404, b"`other` does not exist"),
        ({"messages": [{"role": "user", "content": "word " * 5000}]}, 400, b"maximum context length is 4096"),
    ],
    ids=["no object", "no messages", "no content", "unknown model", "too long"],
)
async def test_a_bad_request_gets_the_error_object(
    session: aiohttp.ClientSession, body: object, status: int, words: bytes
) -> None:
    given_status, data = await post(session, body)
    assert (given_status, words in data, data.startswith(b'{"error":{"message":')) == (status, True, True)


async def test_its_metrics_have_the_names_of_vllm(session: aiohttp.ClientSession) -> None:
    async with session.get("/metrics") as response:
        text = await response.text()
    assert 'vllm:num_requests_running{model_name="sim"} 0.0\n' in text
    assert "# TYPE vllm:generation_tokens_total counter\n" in text
