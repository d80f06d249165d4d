"""The OpenAI API, as far as it is served: models and chat completions. Raw ASGI."""

from __future__ import annotations

import secrets
import time
from dataclasses import replace

from casemate.chat.model import ChatModel
from casemate.chat.wire import ChatRequest
from casemate.engine.interface import Starting
from casemate.errors import CasemateError
from casemate.gateway import sse
from casemate.gateway.completion import Completion
from casemate.gateway.grounding import ungrounded
from casemate.gateway.pipeline import Cited, Step, closing, prepare
from casemate.web.bodies import Call, Gone, parse, read_body
from casemate.web.replies import (
    Exchange,
    Header,
    Receive,
    Refused,
    Scope,
    Send,
    error_object,
    refusal,
    send_json,
    send_refusal,
)
from casemate.web.services import Services
from casemate.web.streams import EventStream, unless_gone

KEEP_ALIVE_S = 10.0
"""How long a client sees nothing before it gets a comment; proxies give up after 30 s to 60 s."""
_STARTING_RETRY_S = 5


class OpenAI:
    """The ASGI application under `/v1`.

    Args:
        services: the parts behind it.
        keep_alive_s: longest silence in a stream.
    """

    def __init__(self, services: Services, *, keep_alive_s: float = KEEP_ALIVE_S) -> None:
        self._services = services
        self._keep_alive_s = keep_alive_s
        self._created = int(time.time())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; every refusal is an OpenAI error object."""
        try:
            await self._route(Exchange(scope, receive, send))
        except Gone:
            return
        except Refused as refused:
            await send_refusal(send, refused)
        except CasemateError as error:
            await send_refusal(send, refusal(error, self._services.admission.retry_after_s))

    async def _route(self, exchange: Exchange) -> None:
        routes = {"/v1/models": ("GET", self._models), "/v1/chat/completions": ("POST", self._chat)}
        path = exchange.scope["path"]
        if path not in routes:
            served = ", ".join(routes)
            raise Refused(404, f"there is no {path[:100]!r} here; served are {served}", code="unknown_url")
        method, handler = routes[path]
        if exchange.scope["method"] != method:
            headers = [(b"allow", method.encode())]
            raise Refused(405, f"{path} wants {method}", code="method_not_allowed", headers=headers)
        await handler(exchange)

    async def _models(self, exchange: Exchange) -> None:
        services = self._services
        context = {"max_model_len": services.context} if services.context else {}
        model = {"id": services.model_name, "object": "model", "created": self._created, "owned_by": "casemate"}
        await send_json(exchange.send, {"object": "list", "data": [model | context]})

    async def _chat(self, exchange: Exchange) -> None:
        call = parse(await read_body(exchange.scope, exchange.receive), self._services.model_name)
        if isinstance(state := self._services.ready(), Starting):
            message = f"the engine is not ready yet ({state.phase}, {state.share:.0%})"
            retry = [(b"retry-after", b"%d" % _STARTING_RETRY_S)]
            raise Refused(503, message, code="engine_not_ready", headers=retry)
        await unless_gone(exchange.receive, self._answer(call, exchange.send))

    async def _answer(self, call: Call, send: Send) -> None:
        async with self._services.admission.slot():
            prepared = replace(call, request=await prepare(call.request, self._steps(call)))
            deliver = self._streamed if call.stream else self._whole
            await deliver(prepared, send)

    def _steps(self, call: Call) -> tuple[Step, ...]:
        return (self._services.grounding or ungrounded,) if call.ground else ()

    async def _streamed(self, call: Call, send: Send) -> None:
        async with EventStream(send, _headers(call.request), keep_alive_s=self._keep_alive_s) as events:
            try:
                await self._stream_into(events, call)
            except CasemateError as error:
                if not events.started:
                    raise  # it can still become a status
                await events.write(sse.event(error_object(refusal(error, 0))))

    async def _stream_into(self, events: EventStream, call: Call) -> None:
        created = int(time.time())
        encoder = sse.Encoder(_name(), call.request.model, created=created, include_usage=call.include_usage)
        lead = encoder.opening()
        async with closing(self._model(call).stream(call.request)) as deltas:
            async for delta in deltas:
                if data := encoder.encode(delta):
                    await events.write(lead + data)
                    lead = b""
        await events.write(sse.DONE)

    async def _whole(self, call: Call, send: Send) -> None:
        completion = Completion(_name(), call.request.model, created=int(time.time()))
        async with closing(self._model(call).stream(call.request)) as deltas:
            async for delta in deltas:
                completion.add(delta)
        await send_json(send, completion.value(), headers=_headers(call.request))

    def _model(self, call: Call) -> ChatModel:
        services = self._services
        return Cited(services.model, services.checker) if call.ground and services.checker else services.model


def _name() -> str:
    return f"chatcmpl-{secrets.token_hex(12)}"


def _headers(request: ChatRequest) -> list[Header]:
    """The notes as `X-Casemate-*` headers; only visible ASCII, for their values may come from data."""
    return [
        (f"x-casemate-{name.lower()}".encode(), "".join(sign for sign in value if "!" <= sign <= "~").encode())
        for name, value in request.notes
    ]
