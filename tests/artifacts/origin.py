"""Servers on loopback that behave like the addresses of the world: well, badly, or not at all."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOOPBACK = "127.0.0.1"


@dataclass
class Origin:
    """Serves `files` by path, with ranges and entity tags, and remembers what was asked for.

    `cut_at` breaks each body off after so many bytes, `before` runs ahead of each answer, `redirects` maps a path to
    an address, `ranges` is whether ranges are honoured.
    """

    files: dict[str, bytes]
    etag: str = '"one"'
    cut_at: int | None = None
    ranges: bool = True
    redirects: dict[str, str] = field(default_factory=dict)
    before: Callable[[], None] = lambda: None
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """Path and Range header of each request."""
    url: str = ""

    @contextmanager
    def serving(self) -> Iterator[Origin]:
        server = ThreadingHTTPServer((LOOPBACK, 0), _handler(self))
        server.daemon_threads = False
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        self.url = f"http://{LOOPBACK}:{server.server_address[1]}"
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def _handler(origin: Origin) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            origin.asked.append((self.path, wanted))
            origin.before()
            if self.path in origin.redirects:
                self.send_response(302)
                self.send_header("Location", origin.redirects[self.path])
                self.end_headers()
            elif self.path in origin.files:
                self._body(origin.files[self.path], self._begin(wanted))
            else:
                self.send_error(404)

        def _begin(self, wanted: str | None) -> int:
            if wanted is None or not origin.ranges or self.headers.get("If-Range", origin.etag) != origin.etag:
                return 0
            return int(wanted.removeprefix("bytes=").removesuffix("-"))

        def _body(self, content: bytes, begin: int) -> None:
            self.send_response(206 if begin else 200)
            if begin:
                self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
            self.send_header("ETag", origin.etag)
            self.send_header("Content-Type", "text/html" if self.path.endswith("/") else "application/octet-stream")
            self.send_header("Content-Length", str(len(content) - begin))
            self.end_headers()
            self.wfile.write(content[begin:][: origin.cut_at])

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library named it so
            pass

    return Handler


@contextmanager
def listening(greet: Callable[[socket.socket, threading.Event], None]) -> Iterator[str]:
    """An address where each caller is accepted and handed to `greet`, which returns when the event is set."""
    over = threading.Event()
    callers: list[threading.Thread] = []
    server = socket.create_server((LOOPBACK, 0))
    server.settimeout(0.01)

    def accept() -> None:
        while not over.is_set():
            try:
                caller, _ = server.accept()
            except TimeoutError:
                continue
            callers.append(threading.Thread(target=_served, args=(greet, caller, over)))
            callers[-1].start()

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.getsockname()[1]}"
    finally:
        over.set()
        for each in (thread, *callers):
            each.join()
        server.close()


def _served(
    greet: Callable[[socket.socket, threading.Event], None], caller: socket.socket, over: threading.Event
) -> None:
    with caller:
        try:
            greet(caller, over)
        except OSError:  # the caller hung up, as it should
            return


def silent(caller: socket.socket, over: threading.Event) -> None:
    """Accepts, and never says a word."""
    over.wait()


def head_by_drops(caller: socket.socket, over: threading.Event) -> None:
    """Begins a status line and headers, and never ends them."""
    caller.sendall(b"HTTP/1.1 200 OK\r\nX-Pad: ")
    while not over.wait(0.02):
        caller.sendall(b"x")


def body_by_drops(caller: socket.socket, over: threading.Event) -> None:
    """Promises a large body and sends a byte now and then."""
    caller.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    while not over.wait(0.02):
        caller.sendall(b"x")


def falls_silent(caller: socket.socket, over: threading.Event) -> None:
    """Sends the first byte of a body, and no more."""
    caller.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nx")
    over.wait()


def closed_port() -> str:
    """An address where nobody listens."""
    with socket.create_server((LOOPBACK, 0)) as server:
        return f"http://{LOOPBACK}:{server.getsockname()[1]}"
