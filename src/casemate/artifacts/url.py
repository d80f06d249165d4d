"""A file from an official address: given up soon where nothing answers, resumed where it broke off."""

from __future__ import annotations

import errno
import functools
import http.client
import time
from collections.abc import Callable, Iterator
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
from casemate.artifacts.partial import CHUNK_BYTES, Observer, Partial, Progress
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


@dataclass(frozen=True, slots=True)
class Caution:
    """How an address is treated whose bytes nobody has pinned: redirects stay on its host, and more bytes are refused.

    `forbids` says of a network address (not a name) that it must not be asked; it is looked at once we are connected,
    before a request is sent.
    """

    most_bytes: int
    forbids: Callable[[str], bool]


def download(address: str, path: Path, *, caution: Caution, patience: Patience, observer: Observer | None) -> None:
    """Write to a new file what an unpinned address sends.

    Raises:
        ArtifactError: it does not answer, refuses, leads elsewhere, breaks off, or sends too much.
        OSError: the bytes could not be written.
    """
    request = Request(address, headers={"User-Agent": "casemate"})  # noqa: S310 - only http and https are opened
    host, done_bytes = urlsplit(address).hostname or address, 0
    with _reply(request, patience, caution=caution) as reply, path.open("xb") as file:
        total_bytes = reply.length or 0
        for chunk in _paced(reply, patience):
            done_bytes += len(chunk)
            if max(done_bytes, total_bytes) > caution.most_bytes:
                raise ArtifactError(f"sends more than {caution.most_bytes >> 20} MiB")
            file.write(chunk)
            if observer:
                observer(Progress(path.name, host, done_bytes, total_bytes))
        if reply.length:
            raise ArtifactError(f"broke off {reply.length} bytes before the end")


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


def _reply(request: Request, patience: Patience, *, caution: Caution | None = None) -> HTTPResponse:
    """The reply, once its headers are there.

    A time limit on the socket bounds each read but neither the name look-up nor a head that trickles, so the call is
    made in a thread of its own and left to itself when time is up.
    """
    line = _Line(request, patience.silence_s, caution=caution)
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


class _Line(HTTPHandler, HTTPSHandler):
    """One call, redirects included, that another thread can break off.

    Hubs redirect to their storage hosts; pinned bytes may come from any of them, but never in the clear after https.
    """

    def __init__(self, request: Request, silence_s: float, *, caution: Caution | None) -> None:
        super().__init__()
        self._asked = request
        self._never_clear = request.type == "https"
        self._silence_s = silence_s
        self._caution = caution
        self._connections: list[_Wary] = []
        self._opener = OpenerDirector()  # not `build_opener`: that knows files, FTP and data too
        redirects = _SameHost() if caution else HTTPRedirectHandler()
        errors = HTTPDefaultErrorHandler(), HTTPErrorProcessor(), UnknownHandler()
        for handler in (self, ProxyHandler(), redirects, *errors):
            self._opener.add_handler(handler)

    def call(self, answer: Future[HTTPResponse]) -> None:
        try:
            answer.set_result(self._opener.open(self._asked, timeout=self._silence_s))
        except (OSError, HTTPException) as error:
            answer.set_exception(error)

    def hang_up(self) -> None:
        for connection in self._connections:
            # Not close: that would wait for the very read that we want to end.
            if connection.sock is not None:
                with suppress(OSError):
                    connection.sock.shutdown(SHUT_RDWR)

    def http_open(self, req: Request) -> HTTPResponse:
        if self._never_clear:
            raise URLError("a redirect leads away from https")
        return self.do_open(functools.partial(self._connect, _Wary), req)

    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(functools.partial(self._connect, _WaryTls), req)

    def _connect(self, kind: type[_Wary], host: str, **options: Any) -> _Wary:
        connection = kind(host, **options)
        connection.caution = self._caution
        self._connections.append(connection)
        return connection


class _SameHost(HTTPRedirectHandler):
    def redirect_request(self, req: Request, *told: Any) -> Request | None:
        following = super().redirect_request(req, *told)
        if following and (following.type, following.host) != (req.type, req.host):
            told[0].close()  # the answer that redirects; without an error its handler would close it
            raise URLError(f"a redirect leads away, to {following.host}")
        return following


class _Wary(http.client.HTTPConnection):
    """A connection that is given up before it carries a request, where it leads to a forbidden address."""

    caution: Caution | None = None

    def connect(self) -> None:
        super().connect()
        peer = str(self.sock.getpeername()[0])
        if self.caution and self.caution.forbids(peer):
            self.close()
            raise PermissionError(errno.EACCES, f"{peer} is link-local and may hand out a cloud's credentials")


class _WaryTls(_Wary, http.client.HTTPSConnection):
    pass
