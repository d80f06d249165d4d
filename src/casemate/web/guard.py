"""What every request passes and every reply carries, whatever it is about.

A page of another site must not use the platform through its reader's browser: the Host must be a loopback name with our
port (DNS rebinding), an Origin must be our own (cross-site requests), and there is no CORS. The reply's headers keep a
page of ours from loading or running anything that is not a file of ours.
"""

from __future__ import annotations

from casemate.web.replies import App, Header, Message, Receive, Refused, Scope, Send, send_refusal

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HEADER_LIMIT_BYTES = 32 << 10

_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: tuple[Header, ...] = (
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cache-control", b"no-store"),
)


def guarded(app: App) -> App:
    """The application behind its guard."""

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await _decline(scope, send)
        if refused := _refusal(scope):
            return await send_refusal(_with_headers(send), refused)
        return await app(scope, receive, _with_headers(send))

    return guard


async def _decline(scope: Scope, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": "no websockets here"})


def _refusal(scope: Scope) -> Refused | None:
    headers: list[Header] = scope["headers"]
    if sum(len(name) + len(value) for name, value in headers) > _HEADER_LIMIT_BYTES:
        return Refused(431, "the headers are longer than 32 KiB", code="headers_too_large")
    hosts = [value.decode("latin-1").lower() for name, value in headers if name == b"host"]
    if len(hosts) != 1 or not _is_ours(hosts[0], scope):
        return Refused(403, "this Host is not served: use http://127.0.0.1 and the port", code="host_not_allowed")
    origins = [value.decode("latin-1").lower() for name, value in headers if name == b"origin"]
    if any(origin != f"{scope['scheme']}://{hosts[0]}" for origin in origins):
        return Refused(403, "requests from other origins are not served", code="origin_not_allowed")
    return None


def _is_ours(host: str, scope: Scope) -> bool:
    """Whether the Host names a loopback name and the port on which this request came in."""
    at = host.rfind(":", host.rfind("]") + 1)
    name, port = (host[:at], host[at + 1 :]) if at >= 0 else (host, "80")
    _, listening = scope.get("server") or ("", None)
    return name in _LOOPBACK_NAMES and port == str(listening)


def _with_headers(send: Send) -> Send:
    async def send_guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", ()))
            names = {name.lower() for name, _ in given}
            message["headers"] = given + [header for header in _HEADERS if header[0] not in names]
        await send(message)

    return send_guarded
