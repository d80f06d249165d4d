from __future__ import annotations

import socket
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from casemate.engine import supervisor
from casemate.engine.remote import Remote, refuse_link_local
from casemate.errors import EngineError
from engine.owner import PLAN
from fakes.streams import DONE, OPENING, STOP, say
from fakes.upstream import Reply, upstream


@pytest.mark.parametrize("url", ["http://box:8000", "http://box:8000/", "http://box:8000/v1", "http://box:8000/v1/"])
def test_the_address_is_the_same_with_and_without_v1(url: str) -> None:
    assert Remote(url, model="m").endpoint(PLAN, 0).url == "http://box:8000"


def test_the_model_is_the_plans_unless_one_is_named() -> None:
    assert Remote("https://box").endpoint(PLAN, 0).model == PLAN.model
    assert Remote("https://box", model="m").endpoint(PLAN, 0).model == "m"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "box:8000",
        "ftp://box",
        "file:///etc/passwd",
        "unix:/run/x",
        "http://",
        "http://user:pw@box",
        "http://b?k=1",
        "http://[::1",
        "http://b:0",
        "http://b:99999",
        "ftp://user:pw@b",
    ],
)
def test_what_is_no_plain_http_address_is_refused_without_repeating_a_password(url: str) -> None:
    with pytest.raises(EngineError) as caught:
        Remote(url).endpoint(PLAN, 0)
    assert "pw" not in str(caught.value)


LINK_LOCAL = [
    "169.254.169.254",
    "169.254.1.1",
    "[fe80::1]",
    "[::ffff:169.254.169.254]",
    "[::169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[::ffff:100.100.100.200]",
    "[::100.100.100.200]",
    "[64:ff9b::169.254.169.254]",
    "[2002:a9fe:a9fe::1]",
    "[fd00:ec2::254]",
    "100.100.100.200",
    "168.63.129.16",
]


@pytest.mark.parametrize("host", LINK_LOCAL)
def test_a_link_local_address_is_refused_before_anything_is_sent(host: str) -> None:
    with pytest.raises(EngineError, match="link-local"):
        Remote(f"http://{host}/v1").endpoint(PLAN, 0)


@pytest.mark.parametrize("host", ["2852039166", "0xa9fea9fe", "169.254.43518", "0251.0376.0251.0376"])
async def test_a_name_that_means_a_link_local_address_is_refused(host: str) -> None:
    url = Remote(f"http://{host}").endpoint(PLAN, 0).url
    with pytest.raises(EngineError, match="link-local"):
        await refuse_link_local(url)


async def test_a_host_that_nobody_knows_is_named() -> None:
    with pytest.raises(EngineError, match=r"'no-such-host\.invalid' is not known"):
        async with supervisor.running(Remote("http://no-such-host.invalid"), PLAN):
            pytest.fail("there is nobody")


@pytest.fixture
async def redirecting() -> AsyncIterator[tuple[str, list[str]]]:
    """A server that sends everybody to another one; and what that other one was asked."""
    asked: list[str] = []

    async def note(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response()

    async def away(_: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect(f"http://localhost:{other}/v1/chat/completions")

    runners = []
    ports = []
    for handler in (note, away):
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", handler)
        runners.append(web.AppRunner(application))
        await runners[-1].setup()
        listener = socket.create_server(("127.0.0.1", 0))
        await web.SockSite(runners[-1], listener).start()
        ports.append(listener.getsockname()[1])
        other = ports[0]
    yield f"http://127.0.0.1:{ports[1]}", asked
    for runner in runners:
        await runner.cleanup()


async def test_a_redirect_is_not_followed(redirecting: tuple[str, list[str]]) -> None:
    url, asked = redirecting
    with pytest.raises(EngineError, match="redirects are not followed"):
        async with supervisor.running(Remote(url, key="secret"), PLAN):
            pytest.fail("it sends us away")
    assert asked == []


def test_somebody_elses_server_has_five_seconds_to_take_a_connection() -> None:
    assert supervisor.USUAL.reach_s == 5


async def test_an_address_where_nobody_answers_is_given_up_long_before_a_start_is() -> None:
    url = f"http://127.0.0.1:{supervisor.free_port()}"
    with pytest.raises(EngineError, match=r"cannot be reached.*is the server running\?") as caught:
        async with supervisor.running(Remote(url), PLAN, terms=supervisor.Terms(reach_s=0.3)):
            pytest.fail("there is nobody")
    assert url in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "loading",
    [Reply(status=503, pieces=(b'{"error": "loading"}',), kind="application/json"), Reply(ending="cut")],
    ids=["says so", "behind a port that a container has open already"],
)
async def test_a_server_that_is_loading_may_take_longer_than_one_that_is_not_there(loading: Reply) -> None:
    async with upstream(loading) as seen:
        with pytest.raises(EngineError, match="not ready after 1 s"):
            async with supervisor.running(Remote(seen.url), PLAN, terms=supervisor.Terms(start_s=1, reach_s=0.2)):
                pytest.fail("it loads forever")
        seen.reply = Reply(pieces=(OPENING, say("Hi"), STOP, DONE))
        async with supervisor.running(Remote(seen.url), PLAN) as endpoint:
            assert endpoint.url == seen.url


def test_the_key_is_in_no_repr() -> None:
    assert "secret" not in repr(Remote("http://box", key="secret"))
