"""A chat model that answers from a script: for tests, rehearsals and the simulator. Ships with the product."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

from casemate.chat.wire import ChatRequest, Delta, Usage
from casemate.errors import UsageError

Answer = str | Exception | Sequence[Delta | Exception]
"""A whole text, an error raised before the first increment, or the exact increments (an error may break in)."""

Script = Sequence[Answer] | Callable[[ChatRequest], Answer]


class ScriptedModel:
    """Implements `chat.model.ChatModel`; the same script gives the same stream.

    A text is streamed word by word and ends with `finish_reason` "stop" and a usage that counts words; with a
    `max_tokens` option smaller than the text it is cut there and ends with "length", as an engine would.

    Args:
        script: answers in order, or a function of the request; a list too short for the conversation is an error.

    Attributes:
        requests: every request received, oldest first.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self.requests: list[ChatRequest] = []

    async def stream(self, request: ChatRequest) -> AsyncIterator[Delta]:
        """Answer in increments.

        Raises:
            UsageError: the script has no answer left.
        """
        answer = self._next(request)
        for step in _steps(answer, request):
            if isinstance(step, Exception):
                raise step
            yield step

    def _next(self, request: ChatRequest) -> Answer:
        turn = len(self.requests)
        self.requests.append(request)
        if callable(self._script):
            return self._script(request)
        if turn >= len(self._script):
            raise UsageError(f"the script has {len(self._script)} answers, one more was asked for")
        return self._script[turn]


def _steps(answer: Answer, request: ChatRequest) -> Iterator[Delta | Exception]:
    if isinstance(answer, str):
        yield from _words(answer, request)
    elif isinstance(answer, Exception):
        yield answer
    else:
        yield from answer


def _words(text: str, request: ChatRequest) -> Iterator[Delta]:
    words = re.findall(r"\s*\S+|\s+$", text)
    limit = int(request.options.get("max_tokens") or len(words))
    for word in words[:limit]:
        yield Delta(content=word)
    prompt = sum(len(message.content.split()) for message in request.messages)
    yield Delta(
        finish_reason="length" if len(words) > limit else "stop",
        usage=Usage(prompt_tokens=prompt, completion_tokens=min(limit, len(words))),
    )
