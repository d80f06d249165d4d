"""The process that `simulator` starts: an OpenAI-compatible server that plays a script.

    python -P -m casemate.engine.simulator_server MODEL SLOTS CONTEXT PORT SCRIPT

A token is a word with the space before it, a sign, or one CJK character; joined, tokens are the text. Its clock counts
from 0 in `created`, so that equal requests in equal order give equal bytes.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import secrets
import signal
import socket
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from casemate import process, settings
from casemate.engine.simulator import Faults, Script

_TOKEN = re.compile(r"\s*(?:[A-Za-z0-9_]+|\S)|\s+")
_ORPHAN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)"
_DIED_AT_START = 3
_DIED_OF_TOKENS = 4
_BODY_BYTES = 64 << 20


def main(argv: list[str]) -> None:
    """Serve on loopback until somebody ends us."""
    model, slots, context, port, script = argv
    play = Script.from_json(script)
    _misbehave(play.faults)
    theatre = _Theatre(model, int(context), script=play, slots=int(slots))
    asyncio.run(_serve(theatre, int(port), load_s=play.load_ms / 1000))


def tokens(text: str) -> list[str]:
    """The simulator's tokens of a text; joined they are the text."""
    return _TOKEN.findall(text)


class _Theatre:
    """The server: routes, key, queue, counters."""

    def __init__(self, model: str, context: int, *, script: Script, slots: int) -> None:
        self._model = model
        self._context = context
        self._script = script
        self._slots = asyncio.Semaphore(slots)
        self._numbers = itertools.count()
        self._key = settings.engine_key()
        self._counts = dict.fromkeys(("running", "waiting", "prompt", "generation"), 0)

    def application(self) -> web.Application:
        """The routes of vLLM that matter to us."""
        application = web.Application(middlewares=[self._door], client_max_size=_BODY_BYTES)
        application.router.add_get("/health", self._health)
        application.router.add_get("/metrics", self._metrics)
        application.router.add_get("/v1/models", self._models)
        application.router.add_post("/v1/chat/completions", self._chat)
        return application

    @web.middleware
    async def _door(self, request: web.Request, handler: Any) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        opened = self._script.faults.open_door or not self._key or not request.path.startswith("/v1")
        if not opened and not secrets.compare_digest(given.encode(), self._key.encode()):
            return _error(401, "Unauthorized", kind="authentication_error")
        response: web.StreamResponse = await handler(request)
        return response

    async def _health(self, _: web.Request) -> web.Response:
        return web.Response()

    async def _models(self, _: web.Request) -> web.Response:
        card = {"id": self._model, "object": "model", "created": 0, "owned_by": "casemate"}
        return _json({"object": "list", "data": [card | {"max_model_len": self._context}]})

    async def _metrics(self, _: web.Request) -> web.Response:
        names = {
            "vllm:num_requests_running": ("gauge", "running"),
            "vllm:num_requests_waiting": ("gauge", "waiting"),
            "vllm:prompt_tokens_total": ("counter", "prompt"),
            "vllm:generation_tokens_total": ("counter", "generation"),
        }
        lines = (
            f'# TYPE {name} {kind}\n{name}{{model_name="{self._model}"}} {float(self._counts[count])}\n'
            for name, (kind, count) in names.items()
        )
        return web.Response(text="".join(lines), content_type="text/plain")

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        if self._script.faults.never_ready:
            return _error(503, "Loading model", kind="unavailable_error")
        try:
            wanted = _Wanted.read(await request.read())
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            return _error(400, f"the body is no chat request: {error!r}", kind="BadRequestError")
        if wanted.model not in {"", self._model}:
            return _error(404, f"The model `{wanted.model}` does not exist.", kind="NotFoundError")
        if wanted.prompt_tokens >= self._context:
            return _error(400, f"maximum context length is {self._context} tokens", kind="BadRequestError")
        answer = _Answer(f"chatcmpl-{next(self._numbers)}", self._model, wanted=wanted)
        async with aclosing(self._play(wanted)) as played:
            return await answer.stream(request, played) if wanted.stream else await answer.whole(played)

    async def _play(self, wanted: _Wanted) -> AsyncGenerator[str, None]:
        """The answer's tokens, each at its time, when a slot is free."""
        with self._counted("waiting"):
            await self._slots.acquire()
        try:
            with self._counted("running"):
                self._counts["prompt"] += wanted.prompt_tokens
                for index, token in enumerate(self._tokens(wanted)):
                    await asyncio.sleep((self._script.token_ms if index else self._script.first_token_ms) / 1000)
                    self._counts["generation"] += 1
                    yield token
                    if self._counts["generation"] == self._script.faults.die_after_tokens:
                        _end("the simulator ran out of tokens", _DIED_OF_TOKENS)
        finally:
            self._slots.release()

    def _tokens(self, wanted: _Wanted) -> list[str]:
        found = (answer for words, answer in self._script.answers if words in wanted.question)
        return tokens(next(found, self._script.otherwise))

    @contextmanager
    def _counted(self, what: str) -> Iterator[None]:
        self._counts[what] += 1
        try:
            yield
        finally:
            self._counts[what] -= 1


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What of a request's body matters to the play."""

    model: str
    question: str
    prompt_tokens: int
    max_tokens: int | None
    stream: bool
    usage: bool

    @classmethod
    def read(cls, body: bytes) -> _Wanted:
        fields = orjson.loads(body)
        messages = fields["messages"]
        texts = [str(message["content"]) for message in messages]
        asked = [text for text, message in zip(texts, messages, strict=True) if message["role"] == "user"]
        return cls(
            model=fields.get("model", ""),
            question=asked[-1] if asked else "",
            prompt_tokens=sum(len(tokens(text)) for text in texts),
            max_tokens=fields.get("max_completion_tokens", fields.get("max_tokens")),
            stream=bool(fields.get("stream")),
            usage=bool((fields.get("stream_options") or {}).get("include_usage")),
        )


class _Answer:
    """One answer on the wire, in vLLM's form."""

    def __init__(self, number: str, model: str, *, wanted: _Wanted) -> None:
        self._card = {"id": number, "created": 0, "model": model}
        self._wanted = wanted
        self._sent = 0
        self._reason = "stop"

    async def whole(self, played: AsyncGenerator[str, None]) -> web.Response:
        """All of it in one object."""
        message = {"role": "assistant", "content": "".join([token async for token in self._cut(played)])}
        choice = {"index": 0, "message": message, "finish_reason": self._reason}
        return _json({**self._card, "object": "chat.completion", "choices": [choice], "usage": self._usage()})

    async def stream(self, request: web.Request, played: AsyncGenerator[str, None]) -> web.StreamResponse:
        """As server-sent events: the role, the tokens, the reason, the usage if asked for, `[DONE]`."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        await response.write(self._chunk({"role": "assistant", "content": ""}))
        async for token in self._cut(played):
            await response.write(self._chunk({"content": token}))
        await response.write(self._chunk({}, self._reason))
        if self._wanted.usage:
            await response.write(self._event(choices=[], usage=self._usage()))
        await response.write(b"data: [DONE]\n\n")
        return response

    async def _cut(self, played: AsyncGenerator[str, None]) -> AsyncIterator[str]:
        """The tokens up to the limit, counted."""
        async for token in played:
            self._sent += 1
            yield token
            if self._sent == self._wanted.max_tokens:
                self._reason = "length"
                return

    def _usage(self) -> dict[str, int]:
        prompt = self._wanted.prompt_tokens
        return {"prompt_tokens": prompt, "total_tokens": prompt + self._sent, "completion_tokens": self._sent}

    def _chunk(self, delta: dict[str, str], reason: str | None = None) -> bytes:
        return self._event(choices=[{"index": 0, "delta": delta, "finish_reason": reason}])

    def _event(self, **fields: Any) -> bytes:
        return b"data: " + orjson.dumps({**self._card, "object": "chat.completion.chunk", **fields}) + b"\n\n"


def _error(status: int, message: str, *, kind: str) -> web.Response:
    return _json({"error": {"message": message, "type": kind, "param": None, "code": status}}, status)


def _json(body: object, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json")


def _misbehave(faults: Faults) -> None:
    """The faults that come before anything is served."""
    for stream in (sys.stdout, sys.stderr):
        stream.write("noise " * (faults.noise_bytes // 6))
        stream.flush()
    if faults.deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if faults.orphan:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            process.start([sys.executable, "-c", _ORPHAN], stdin=theirs, environment=settings.child_environment())
    if faults.die_at_start:
        _end(faults.die_at_start, _DIED_AT_START)


def _end(message: str, status: int) -> None:
    """End at once, as a crash does."""
    sys.stderr.write(f"\n{message}\n")
    sys.stderr.flush()
    os._exit(status)


async def _serve(theatre: _Theatre, port: int, *, load_s: float) -> None:
    await asyncio.sleep(load_s)
    runner = web.AppRunner(theatre.application(), handler_cancellation=True, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    sys.stdout.write("simulator: serving\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1:])
