"""An OpenAI-compatible server that somebody else runs. No process; only an address.

It is looked at when it is given, when it is looked up, and by `chat.http` once more at every connection.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from casemate.chat.address import hands_out_credentials
from casemate.chat.model import Endpoint
from casemate.engine.interface import Launch, Starting
from casemate.errors import EngineError
from casemate.plan.decision import CpuPlan

_LOOKUP_S = 5.0
_REMEDY = "give the address of an OpenAI-compatible server, such as http://10.0.0.5:8000"


@dataclass(frozen=True, slots=True)
class Remote:
    """An engine behind a URL.

    Args:
        url: http(s) address, with or without a trailing `/v1`.
        model: the name to ask for; empty takes the plan's.
        key: its bearer token; empty sends none.
    """

    url: str
    model: str = ""
    key: str = field(default="", repr=False)
    name: str = field(default="remote", init=False)

    def launch(self, plan: CpuPlan, port: int) -> Launch | None:
        """Nothing to start."""
        del plan, port
        return None

    def endpoint(self, plan: CpuPlan, port: int) -> Endpoint:
        """The address, without `/v1`.

        Raises:
            EngineError: no http(s) URL, one with credentials or a query in it, or a link-local address.
        """
        del port
        _refuse(_parts(self.url).hostname or "", self.url)
        base = self.url.rstrip("/").removesuffix("/v1").rstrip("/")
        return Endpoint(base, self.model or plan.model, plan.context)

    def phase(self, line: str) -> Starting | None:
        """It writes no log that we could read."""
        del line
        return None


async def refuse_link_local(url: str) -> None:
    """Look up the host of a URL; every address that it has must be one to which we may talk.

    Raises:
        EngineError: the name is unknown, or one of its addresses is link-local or a cloud's metadata service.
    """
    parts = _parts(url)
    look_up = asyncio.get_running_loop().getaddrinfo
    try:
        async with asyncio.timeout(_LOOKUP_S):
            found = await look_up(parts.hostname, parts.port or 80, type=socket.SOCK_STREAM)
    except OSError as error:
        raise EngineError(f"the host {parts.hostname!r} is not known", where=url, remedy=_REMEDY) from error
    for *_, address in found:
        _refuse(str(address[0]), url)


def _parts(url: str) -> SplitResult:
    """An address that names a server and nothing else; what it must not carry is not repeated."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise EngineError("the engine's address is no http or https address", remedy=_REMEDY)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise EngineError("the engine's address carries more than host and path", remedy=_REMEDY)
    return parts


def _refuse(host: str, url: str) -> None:
    """Refuse an address literal on a link-local network; a name passes, it is looked up later."""
    if hands_out_credentials(host):
        raise EngineError(
            f"{host} is link-local: requests there may fetch a cloud's credentials", where=url, remedy=_REMEDY
        )
