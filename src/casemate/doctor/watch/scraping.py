"""Asks an engine for its metrics over HTTP. One GET a sample, no redirects, no proxy, no cookies."""

from __future__ import annotations

from typing import Final, Self
from urllib.parse import urlsplit

import aiohttp

from casemate.chat.address import hands_out_credentials
from casemate.chat.http import safe_socket
from casemate.doctor.watch import metrics
from casemate.doctor.watch.sample import EngineSample, Reach
from casemate.errors import UsageError

ANSWER_S: Final = 5.0
"""A server that is busy with tokens answers late; one that takes longer has told nothing for this sample."""
_CONNECT_S: Final = 3.0
_KEY: Final = "it wants a key: set CASEMATE_ENGINE_URL to this address and CASEMATE_ENGINE_API_KEY to its key"
_REMEDY: Final = "give an address such as http://127.0.0.1:8000"


def address(url: str) -> str:
    """Where an engine's metrics are: its address with `/metrics`, without a trailing `/v1`.

    Raises:
        UsageError: no http(s) address, one that carries credentials or a query, or a link-local one.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not url.isprintable():
        raise UsageError("the engine's address is no http or https address", remedy=_REMEDY)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise UsageError("the engine's address carries more than host and path", remedy=_REMEDY)
    if hands_out_credentials(parts.hostname or ""):
        raise UsageError("the address is link-local and may hand out a cloud's credentials", where=parts.hostname or "")
    base = url.rstrip("/").removesuffix("/metrics").removesuffix("/v1").rstrip("/")
    return f"{base}/metrics"


class Scraper:
    """One engine's metrics, asked again and again. Use as `async with Scraper(url) as scraper`.

    Args:
        url: the engine's address, see `address`.
        key: bearer token for it; empty sends none.
    """

    def __init__(self, url: str, *, key: str = "") -> None:
        self._address = address(url)
        self._headers = {"Accept": "text/plain"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(total=ANSWER_S, sock_connect=_CONNECT_S),
            connector=aiohttp.TCPConnector(limit=2, socket_factory=safe_socket),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()

    async def scrape(self) -> tuple[Reach, EngineSample | None, str]:
        """What came of asking, the sample if there is one, and why not."""
        try:
            status, text = await self._get()
        except aiohttp.ClientConnectorDNSError:
            return "strange", None, "the host's name is not known"
        except TimeoutError:
            return "silent", None, f"no answer within {ANSWER_S:g} s"
        except (aiohttp.ClientConnectorError, ConnectionError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            return "refused", None, f"no connection: {reason}"
        except (aiohttp.ClientError, OSError) as error:
            return "strange", None, f"the answer broke off: {type(error).__name__}"
        if status != 200:
            return "strange", None, f"it answered {status}" + (f": {_KEY}" if status in (401, 403) else "")
        return _read(text)

    async def _get(self) -> tuple[int, bytes]:
        if self._session is None:
            raise RuntimeError("enter the Scraper before you scrape")
        async with self._session.get(self._address, allow_redirects=False) as response:
            text = b""
            async for part in response.content.iter_any():
                text += part
                if len(text) > metrics.MOST_BYTES:
                    break
            return response.status, text


def _read(text: bytes) -> tuple[Reach, EngineSample | None, str]:
    if len(text) > metrics.MOST_BYTES:
        return "strange", None, "its page is too long for metrics"
    try:
        return "answered", metrics.engine(text.decode(errors="replace")), ""
    except UsageError as error:
        return "strange", None, str(error)
