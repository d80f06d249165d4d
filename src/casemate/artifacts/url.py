"""A file from an official address: given up soon where nothing answers, resumed where it broke off."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from socket import SHUT_RDWR
from threading import Thread
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
)

from casemate.artifacts import archive
from casemate.artifacts.lock import Url
from casemate.artifacts.partial import CHUNK_BYTES, Partial
from casemate.errors import ArtifactError

_PARTIAL_CONTENT = 206
_ARCHIVE_SLACK_BYTES = 1 << 20
"""An archive may be this much larger than its one member."""


@dataclass(frozen=True, slots=True)
class Patience:
    """When an address is given up.

    `answer_s`: no status line and headers by then, name look-up and redirects included. `silence_s`: no further byte
    for so long. `window_s`, `floor_bytes_per_s`: slower than this over a whole window, which a trickle is.
    """

    answer_s: float = 5.0
    silence_s: float = 15.0
    window_s: float = 30.0
    floor_bytes_per_s: int = 8 << 10


def take(url: Url, partial: Partial, *, work: Path, patience: Patience) -> None:
    """Let a partial file grow to its full size from an address.

    Args:
        url: where it lies.
        partial: what is there so far; the server is asked for the rest only.
        work: an empty folder of ours, for an archive to unpack.
        patience: when to give up.

    Raises:
        ArtifactError: the address does not answer, refuses, breaks off, or has other bytes than were pinned.
        OSError: the bytes could not be written.
    """
    partial.comes_from(urlsplit(url.address).hostname or url.address)
    if url.unpack:
        _take_archive(url, partial, path=work / "archive.zip", patience=patience)
        return
    with _reply(_request(url, _rest(partial)), patience) as reply:
        _begin(reply, partial)
        for chunk in _paced(reply, patience):
            partial.write(chunk)
    if partial.missing_bytes:
        raise ArtifactError(f"broke off {partial.missing_bytes} bytes before the end")


def _take_archive(url: Url, partial: Partial, *, path: Path, patience: Patience) -> None:
    most_bytes = partial.artifact.size_bytes + _ARCHIVE_SLACK_BYTES
    got_bytes = 0
    with _reply(_request(url, {}), patience) as reply, path.open("wb") as file:
        for chunk in _paced(reply, patience):
            got_bytes += len(chunk)
            if got_bytes > most_bytes:
                raise ArtifactError("sends more than the archive can have")
            file.write(chunk)
            partial.tell()
    partial.cut(0)
    pinned = partial.artifact
    archive.join(path, partial, member=url.unpack, size_bytes=pinned.size_bytes, sha256=pinned.sha256)


def _rest(partial: Partial) -> dict[str, str]:
    if not partial.done_bytes:
        return {}
    # Without a validator a plain Range is still safe: the whole is hashed at the end.
    condition = {"If-Range": partial.validator} if partial.validator else {}
    return {"Range": f"bytes={partial.done_bytes}-", **condition}


def _begin(reply: HTTPResponse, partial: Partial) -> None:
    if reply.status != _PARTIAL_CONTENT:
        partial.cut(0)
    elif not (reply.headers.get("Content-Range") or "").startswith(f"bytes {partial.done_bytes}-"):
        raise ArtifactError("answers with another range than was asked for")
    if reply.length is not None and reply.length != partial.missing_bytes:
        raise ArtifactError(f"offers {reply.length} bytes where {partial.missing_bytes} are missing")
    validator = reply.headers.get("ETag") or ""
    partial.remember("" if validator.startswith("W/") else validator)


def _paced(reply: HTTPResponse, patience: Patience) -> Iterator[bytes]:
    began_s, got_bytes = time.monotonic(), 0
    while chunk := _read(reply):
        yield chunk
        got_bytes += len(chunk)
        spent_s = time.monotonic() - began_s
        if spent_s < patience.window_s:
            continue
        if got_bytes < patience.floor_bytes_per_s * spent_s:
            raise ArtifactError(f"only trickles, {got_bytes} bytes in {spent_s:.0f} s")
        began_s, got_bytes = time.monotonic(), 0


def _read(reply: HTTPResponse) -> bytes:
    try:
        return reply.read1(CHUNK_BYTES)
    except (OSError, HTTPException) as error:
        raise ArtifactError(f"broke off: {_reason(error)}") from error


def _request(url: Url, headers: dict[str, str]) -> Request:
    return Request(url.address, headers={"User-Agent": "casemate", **headers})  # noqa: S310 - pinned in our lock


def _reply(request: Request, patience: Patience) -> HTTPResponse:
    """The reply, once its headers are there.

    A time limit on the socket bounds each read but neither the name look-up nor a head that trickles, so the call is
    made in a thread of its own and left to itself when time is up.
    """
    line = _Line(request, patience.silence_s)
    answer: Future[HTTPResponse] = Future()
    Thread(target=line.call, args=(answer,), daemon=True).start()
    try:
        return answer.result(timeout=patience.answer_s)
    except HTTPError as error:
        error.close()
        raise ArtifactError(f"answered {error.code} {error.reason}") from error
    except TimeoutError as error:
        answer.add_done_callback(_close)
        line.hang_up()
        raise ArtifactError(f"did not answer within {patience.answer_s:g} s") from error
    except (OSError, HTTPException) as error:
        raise ArtifactError(f"could not be reached: {_reason(error)}") from error


def _close(answer: Future[HTTPResponse]) -> None:
    late = answer.exception() or answer.result()
    if isinstance(late, HTTPError | HTTPResponse):
        late.close()


def _reason(error: Exception) -> str:
    inner = error.reason if isinstance(error, URLError) else error
    return str(getattr(inner, "strerror", None) or inner) or type(inner).__name__


class _Line:
    """One call, redirects included, that another thread can break off."""

    def __init__(self, request: Request, silence_s: float) -> None:
        self._request = request
        self._silence_s = silence_s
        self._connections: list[http.client.HTTPConnection] = []
        self._opener = OpenerDirector()  # not `build_opener`: that knows files, FTP and data too
        for handler in (
            _Plain(self._connections, refused=request.type == "https"),
            _Tls(self._connections),
            *(ProxyHandler(), HTTPRedirectHandler(), HTTPDefaultErrorHandler(), HTTPErrorProcessor(), UnknownHandler()),
        ):
            self._opener.add_handler(handler)

    def call(self, answer: Future[HTTPResponse]) -> None:
        try:
            answer.set_result(self._opener.open(self._request, timeout=self._silence_s))
        except (OSError, HTTPException) as error:
            answer.set_exception(error)

    def hang_up(self) -> None:
        for connection in self._connections:
            # Not close: that would wait for the very read that we want to end.
            if connection.sock is not None:
                with suppress(OSError):
                    connection.sock.shutdown(SHUT_RDWR)


class _Plain(HTTPHandler):
    """Hubs redirect to their storage hosts; the bytes are pinned, so any may serve them, but never in the clear."""

    def __init__(self, connections: list[http.client.HTTPConnection], *, refused: bool) -> None:
        super().__init__()
        self._connections = connections
        self._refused = refused

    def http_open(self, req: Request) -> HTTPResponse:
        if self._refused:
            raise URLError("a redirect leads away from https")
        return self.do_open(self._connect, req)

    def _connect(self, host: str, **options: Any) -> http.client.HTTPConnection:
        self._connections.append(http.client.HTTPConnection(host, **options))
        return self._connections[-1]


class _Tls(HTTPSHandler):
    def __init__(self, connections: list[http.client.HTTPConnection]) -> None:
        super().__init__()
        self._connections = connections

    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(self._connect, req)

    def _connect(self, host: str, **options: Any) -> http.client.HTTPConnection:
        self._connections.append(http.client.HTTPSConnection(host, **options))
        return self._connections[-1]
