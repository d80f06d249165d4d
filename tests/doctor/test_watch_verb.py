"""The verb as a user runs it, against a server on loopback that publishes what a simulated engine would."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import random
import re
import signal
import struct
import sys
import termios
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from casemate.doctor.watch.scraping import Scraper, address
from casemate.errors import UsageError
from doctor.scenarios.classes import SCENARIOS
from doctor.scenarios.pages import World, page

RUN = "from casemate.cli import main\nmain.run()"
Answer = Callable[[], web.StreamResponse]


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    stdout: str
    stderr: str

    @property
    def value(self) -> dict[str, Any]:
        return json.loads(self.stdout)  # type: ignore[no-any-return]  # an object, as every verb prints


@asynccontextmanager
async def served(answer: Answer) -> AsyncGenerator[str, None]:
    async def metrics(_: web.Request) -> web.StreamResponse:
        return answer()

    application = web.Application()
    application.router.add_get("/metrics", metrics)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        port = runner.addresses[0][1]
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


def simulated(name: str, seed: int, *, times: float = 8.0) -> Answer:
    """What the scenario publishes, its time running so many times faster than ours."""
    dice = random.Random(f"{name} {seed}")
    world, seen, right = SCENARIOS[name](dice)
    for serving in world.servings:
        serving.run(world.until)
    assert right(world)
    begin = time.monotonic()

    def answer() -> web.StreamResponse:
        text, _ = page(world, seen, now=_now(world, begin, times=times))
        return web.Response(text=text, content_type="text/plain")

    return answer


def _now(world: World, begin: float, *, times: float) -> float:
    return min(world.until, world.begins + (time.monotonic() - begin) * times)


async def casemate(*arguments: str, home: Path) -> Ended:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-c", RUN, "doctor", "watch", *arguments, env=_environment(home),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    stdout, stderr = await child.communicate()
    return Ended(child.returncode or 0, stdout.decode(), stderr.decode())


def _environment(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "xterm-256color", "COLUMNS": "80"}


async def test_an_engine_whose_cache_is_full_is_told_as_json_with_exit_one(home: Path) -> None:
    async with served(simulated("kv", 2)) as url:
        ended = await casemate(
            "--once", "--json", "--interval", "0.25", "--samples", "10", "--endpoint", url, home=home
        )
    assert ended.stderr == ""
    assert ended.code == 1
    value = ended.value
    assert next(iter(value)) == "schema_version"
    assert (value["verdict"], value["found"], value["answered"]) == ("kv", True, 11)
    assert value["engine"]["kv_usage"] > 0.9
    named = {one["name"]: one["value"] for one in value["suspects"][0]["evidence"]}
    assert named["engine.kv_usage"] > 0.9
    assert named["engine.waiting"] > 0


async def test_an_idle_engine_is_fine_and_its_address_may_end_in_v1(home: Path) -> None:
    async with served(simulated("idle", 2)) as url:
        ended = await casemate("--once", "--interval", "0.2", "--samples", "3", "--endpoint", f"{url}/v1/", home=home)
    assert "verdict: idle" in ended.stdout
    assert ended.code == (2 if "not seen: cards" in ended.stdout else 0)


async def test_an_address_where_nobody_listens_is_unreachable_and_exit_two(home: Path) -> None:
    ended = await casemate(
        "--json", "--interval", "0.2", "--samples", "2", "--endpoint", "http://127.0.0.1:9", home=home
    )
    assert (ended.code, ended.value["verdict"]) == (2, "dead")
    assert ended.value["partial"][0].startswith("engine: no connection")


async def test_an_engine_that_dies_under_our_eyes_is_a_finding(home: Path) -> None:
    alive, asked = simulated("bandwidth", 2), asyncio.Semaphore(0)

    def answer() -> web.StreamResponse:
        asked.release()
        return alive()

    async with served(answer) as url:
        arguments = ["--json", "--interval", "0.2", "--samples", "15", "--endpoint", url]
        watching = asyncio.ensure_future(casemate(*arguments, home=home))
        for _ in range(4):
            await asyncio.wait_for(asked.acquire(), timeout=60)
    ended = await watching
    assert (ended.value["verdict"], ended.code) == ("dead", 1)
    assert ended.value["answered"] >= 4


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda: web.Response(status=503, text="starting"), "it answered 503"),
        (lambda: web.Response(status=401, text="no"), "CASEMATE_ENGINE_API_KEY"),
        (lambda: web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"}), "it answered 302"),
        (lambda: web.Response(text="<html>hello\x1b[2J</html>"), "no metrics of vLLM"),
        (lambda: web.Response(body=b"\xff\xfe\x00" * 9), "no metrics of vLLM"),
    ],
)
async def test_a_page_that_is_no_metrics_is_told_as_such_and_makes_the_verdict_partial(
    answer: Answer, why: str, home: Path
) -> None:
    async with served(answer) as url:
        ended = await casemate("--once", "--interval", "0.2", "--samples", "2", "--endpoint", url, home=home)
    assert ended.code == 2
    assert why in ended.stdout
    assert "\x1b" not in ended.stdout


async def test_a_page_without_an_end_is_cut_and_is_no_metrics() -> None:
    async with served(lambda: web.Response(body=b"a" * (17 << 20))) as url, Scraper(url) as scraper:
        assert await scraper.scrape() == ("strange", None, "its page is too long for metrics")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--endpoint", "ftp://127.0.0.1"], ["--endpoint", "http://user:secret@127.0.0.1:8000"],
        ["--endpoint", "http://169.254.169.254"], ["--interval", "0"], ["--interval", "nan"], ["--samples", "1"],
        ["--log", "/nonexistent/engine.log"], ["--log", ""], ["--endpoint", "http://127.0.0.1:8000/?key=secret"],
    ],
)  # fmt: skip
async def test_a_request_that_cannot_mean_anything_is_exit_three_and_shows_no_secret(
    arguments: list[str], home: Path
) -> None:
    ended = await casemate("--once", *arguments, home=home)
    assert (ended.code, ended.stdout) == (3, "")
    assert ended.stderr.startswith("casemate: ")
    assert "secret" not in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("url", ["http://h:8000", "http://h:8000/", "http://h:8000/v1", "http://h:8000/metrics"])
def test_an_address_leads_to_its_metrics_however_it_is_written(url: str) -> None:
    assert address(url) == "http://h:8000/metrics"


@pytest.mark.parametrize(
    "url", ["", "h:8000", "http://", "http://[::1", "http://h:0", "http://h:8000/\x1b[2J", "http://h:x"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        address(url)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_live_screen_fits_eighty_columns_and_ends_in_order(number: signal.Signals, home: Path) -> None:
    async with served(simulated("kv", 2)) as url:
        code, text = await _on_a_terminal(url, number, home=home)
    assert code == 0
    assert "running" in text
    assert "waiting" in text
    assert "the cache is" in text
    assert "Traceback" not in text
    assert text.rstrip().endswith("\x1b[?25h"), "the cursor is shown again"
    assert max(map(len, _plain(text))) <= 80


async def _on_a_terminal(url: str, number: signal.Signals, *, home: Path) -> tuple[int, str]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-c", RUN, "doctor", "watch", "--interval", "0.2", "--endpoint", url,
        env=_environment(home), stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    os.set_blocking(ours, False)
    text = b""
    until = time.monotonic() + 20
    while b"the cache is" not in text and time.monotonic() < until:
        text += await _read(ours)
    child.send_signal(number)
    ended = asyncio.ensure_future(child.wait())
    while not ended.done():
        text += await _read(ours)
    text += await _read(ours)
    os.close(ours)
    return ended.result(), text.decode()


async def _read(number: int) -> bytes:
    await asyncio.sleep(0.05)
    try:
        return os.read(number, 1 << 16)
    except OSError:  # nothing there now, or nobody on the other side any more
        return b""


def _plain(text: str) -> list[str]:
    """Lines as they stand on the screen, without what moves the cursor or colours."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).replace("\r", "\n").split("\n")
