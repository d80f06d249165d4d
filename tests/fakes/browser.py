"""Headless Chromium, driven through its debugging protocol: enough to type, click, read and photograph a page."""

from __future__ import annotations

import asyncio
import base64
import itertools
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

CHROMIUM = shutil.which("chromium") or ""
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0"),
)


class Page:
    """One tab. `told` collects what the console said: script errors and refusals of the content policy."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.told: list[str] = []

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol; gives its result."""
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        while True:
            message = await self._socket.receive_json()
            if message.get("method") in {"Log.entryAdded", "Runtime.exceptionThrown"}:
                self.told.append(str(message["params"]))
            if message.get("id") == number:
                return dict(message["result"])

    async def open(self, address: str, *, width: int = 1100, height: int = 1400) -> None:
        """Go to an address and wait until it is loaded."""
        for domain in ("Page", "Log", "Runtime"):
            await self.call(f"{domain}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        await self.call("Emulation.setDeviceMetricsOverride", **size)
        await self.call("Page.navigate", url=address)
        await self.until("document.readyState === 'complete' && location.protocol === 'http:'")

    async def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        result = await self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        return result["result"].get("value")

    async def until(self, condition: str) -> None:
        """Wait until an expression in the page is true."""
        async with asyncio.timeout(20):
            while not await self.run(condition):  # noqa: ASYNC110 - the page has no bell
                await asyncio.sleep(0.05)

    async def press(self, key: str, code: int, *, text: str = "") -> None:
        """Press a key and let it go, where the focus is."""
        named = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        await self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **named)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    async def ask(self, question: str) -> None:
        """Type a question into the console and press Enter; come back when the answer is whole."""
        before = await self.run("document.querySelectorAll('#talk article').length")
        await self.run("document.getElementById('question').focus()")
        await self.call("Input.insertText", text=question)
        await self.press("Enter", 13)
        await self.until(f"document.querySelectorAll('#talk article').length === {before + 2}")
        await self.until("document.querySelector('[aria-busy]') === null")

    async def photograph(self) -> bytes:
        """The whole page as PNG."""
        shot = await self.call("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(shot["data"])


@asynccontextmanager
async def browser(folder: Path) -> AsyncIterator[Page]:
    """A fresh browser with one tab; its profile lies in `folder`."""
    process = await asyncio.create_subprocess_exec(
        CHROMIUM, *_FLAGS, f"--user-data-dir={folder}", stderr=asyncio.subprocess.PIPE, start_new_session=True
    )
    assert process.stderr
    try:
        async with asyncio.timeout(30):
            while b"DevTools listening on" not in (line := await process.stderr.readline()):
                assert line, "chromium ended at its start"
        drain = asyncio.create_task(process.stderr.read())
        base = line.split()[-1].decode().replace("ws://", "http://").partition("/devtools")[0]
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{base}/json/list") as response:
                target = next(one for one in await response.json() if one["type"] == "page")
            async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                yield Page(socket)
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 10)
        if process.returncode is None:
            process.kill()
            await process.wait()
        await drain
