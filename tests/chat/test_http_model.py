from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from casemate.chat.http import HttpModel
from casemate.chat.model import Endpoint
from casemate.chat.wire import ChatRequest, Delta, Message
from casemate.errors import ModelError, UsageError
from fakes.streams import DONE, OPENING, STOP, STREAMS, Stream, say
from fakes.upstream import Reply, Upstream, upstream

QUESTION = ChatRequest(messages=(Message("user", "Say hello."),))
KEY = "sk-secret-key"
HELLO = OPENING + say("Hel") + say("lo") + STOP + DONE


async def ask(seen: Upstream, key: str = "") -> list[Delta]:
    got: list[Delta] = []
    await ask_into(got, seen, key)
    return got


async def ask_into(got: list[Delta], seen: Upstream, key: str = "") -> None:
    async with HttpModel(Endpoint(url=seen.url, model="m"), key=key) as model:
        async for delta in model.stream(QUESTION):
            got.append(delta)  # noqa: PERF401 - what came before an error is kept


def text(deltas: list[Delta]) -> str:
    return "".join(delta.content for delta in deltas)


@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.name)
async def test_an_answer_arrives_over_the_wire_in_one_piece_or_in_many(stream: Stream) -> None:
    small = tuple(stream.data[at : at + 7] for at in range(0, len(stream.data), 7))
    async with upstream(Reply(pieces=(stream.data,))) as seen:
        at_once = await ask(seen)
        seen.reply = Reply(pieces=small)
        assert await ask(seen) == at_once
    assert text(at_once) == stream.content


async def test_the_key_is_sent_as_a_bearer_token_and_shown_nowhere() -> None:
    async with upstream(Reply(pieces=(HELLO,))) as seen:
        await ask(seen, key=KEY)
        assert f"Authorization: Bearer {KEY}" in seen.heads[0]
        seen.reply = Reply(
            pieces=(f'{{"error":{{"message":"bad key {KEY}"}}}}'.encode(),), status=401, kind="text/json"
        )
        with pytest.raises(ModelError, match=r"answered 401: bad key \*\*\*") as caught:
            await ask(seen, key=KEY)
    assert caught.value.status == 401
    assert KEY not in repr(HttpModel(Endpoint(url=seen.url, model="m"), key=KEY))


async def test_without_a_key_no_authorization_is_sent() -> None:
    async with upstream(Reply(pieces=(HELLO,))) as seen:
        await ask(seen)
    assert "authorization" not in seen.heads[0].lower()


@pytest.mark.parametrize("key", ["a\r\nX-Evil: 1", "ключ", "a\x00"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(UsageError) as caught:
        HttpModel(Endpoint(url="http://127.0.0.1:1", model="m"), key=key)
    assert key not in str(caught.value)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_redirects_are_not_followed(status: int) -> None:
    async with upstream() as elsewhere, upstream() as seen:
        seen.reply = Reply(status=status, headers=(("Location", f"{elsewhere.url}/v1/chat/completions"),))
        with pytest.raises(ModelError, match="redirects are not followed"):
            await ask(seen, key=KEY)
        assert elsewhere.connections == 0


async def test_a_proxy_in_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with upstream() as proxy, upstream(Reply(pieces=(HELLO,))) as seen:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert text(await ask(seen)) == "Hello"
        assert proxy.connections == 0


async def test_a_question_of_many_megabytes_arrives_whole() -> None:
    long = "注入" * 500_000
    async with upstream(Reply(pieces=(HELLO,))) as seen, HttpModel(Endpoint(url=seen.url, model="m")) as model:
        request = ChatRequest(messages=(Message("user", long),))
        assert text([delta async for delta in model.stream(request)]) == "Hello"
    assert seen.bodies[0]["messages"][0]["content"] == long


async def test_an_address_where_nobody_listens_is_named() -> None:
    async with upstream() as seen:
        pass
    with pytest.raises(ModelError, match="cannot be reached") as caught:
        await ask(seen)
    assert seen.url in str(caught.value)


@pytest.mark.parametrize(
    "host",
    ["169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "[::100.100.100.200]", "0xa9fea9fe"],
)
async def test_no_connection_goes_to_a_link_local_address_whatever_was_looked_up_before(host: str) -> None:
    async with HttpModel(Endpoint(url=f"http://{host}:1", model="m"), key=KEY) as model:
        with pytest.raises(ModelError, match=r"cannot be reached, .*link-local"):
            await anext(model.stream(QUESTION))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_loopback_is_reached_by_name_and_number(host: str) -> None:
    async with upstream(Reply(pieces=(HELLO,))) as seen:
        url = seen.url.replace("127.0.0.1", host)
        async with HttpModel(Endpoint(url=url, model="m")) as model:
            assert text([delta async for delta in model.stream(QUESTION)]) == "Hello"


@pytest.mark.parametrize(
    "reply",
    [
        Reply(pieces=(OPENING, say("Hel")), ending="cut"),
        Reply(pieces=(OPENING, say("Hel")), ending="whole"),
        Reply(pieces=(OPENING, say("Hel"), b"data: [DO")),
    ],
)
async def test_an_answer_that_breaks_off_is_an_error_after_what_did_come(reply: Reply) -> None:
    got: list[Delta] = []
    async with upstream(reply) as seen:
        with pytest.raises(ModelError):
            await ask_into(got, seen)
    assert text(got) == "Hel"
    assert len(seen.bodies) == 1, "no second try after a byte"


async def test_a_connection_that_closes_after_the_reason_to_finish_is_no_fault() -> None:
    async with upstream(Reply(pieces=(OPENING, say("Hello"), STOP), ending="cut")) as seen:
        assert text(await ask(seen)) == "Hello"


async def test_something_that_is_no_chat_server_is_told_apart() -> None:
    async with upstream(Reply(pieces=(b"<html>Welcome</html>",), kind="text/html")) as seen:
        with pytest.raises(ModelError, match="answered text/html"):
            await ask(seen)


async def test_an_engine_that_does_not_stream_is_understood() -> None:
    body = b'{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}'
    async with upstream(Reply(pieces=(body,), kind="application/json")) as seen:
        assert text(await ask(seen)) == "Hello"


async def test_a_refusal_without_an_end_does_not_fill_the_memory() -> None:
    async with upstream(Reply(pieces=(b"x" * 65536,) * 64, status=500, kind="text/plain", ending="hang")) as seen:
        with pytest.raises(ModelError, match="answered 500") as caught:
            await ask(seen)
    assert len(str(caught.value)) < 500


async def test_a_kept_connection_that_died_is_replaced_once() -> None:
    async with upstream(Reply(pieces=(HELLO,))) as seen, HttpModel(Endpoint(url=seen.url, model="m")) as model:
        assert text([delta async for delta in model.stream(QUESTION)]) == "Hello"
        assert text([delta async for delta in model.stream(QUESTION)]) == "Hello"
        assert seen.connections == 1, "the connection is used again"
        for task in list(seen.tasks):
            task.cancel()
        assert text([delta async for delta in model.stream(QUESTION)]) == "Hello"


@pytest.mark.parametrize(
    "reply",
    [
        Reply(pieces=(OPENING, say("Hel")), ending="hang"),
        Reply(pieces=(OPENING, *(say("x") for _ in range(1000))), pause_s=0.01),
    ],
)
async def test_closing_the_iterator_closes_the_connection(reply: Reply) -> None:
    async with upstream(reply) as seen, HttpModel(Endpoint(url=seen.url, model="m")) as model:
        async with aclosing(model.stream(QUESTION)) as deltas:
            await anext(deltas)
        await asyncio.wait_for(seen.left.wait(), 10)


@pytest.mark.parametrize("reply", [Reply(silent=True), Reply(ending="hang"), Reply(pieces=(OPENING,), ending="hang")])
async def test_cancelling_the_reader_closes_the_connection_in_every_phase(reply: Reply) -> None:
    async with upstream(reply) as seen, HttpModel(Endpoint(url=seen.url, model="m")) as model:
        reading = asyncio.ensure_future(anext(model.stream(QUESTION)))
        await asyncio.wait_for(seen.asked.wait(), 10)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await asyncio.wait_for(seen.left.wait(), 10)


async def test_a_model_that_was_not_entered_says_so() -> None:
    with pytest.raises(RuntimeError, match="enter the HttpModel"):
        await anext(HttpModel(Endpoint(url="http://127.0.0.1:1", model="m")).stream(QUESTION))
