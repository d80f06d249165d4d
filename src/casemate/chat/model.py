"""The one port both wings speak, and the value in which they meet."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from casemate.chat.wire import ChatRequest, Delta


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model answers. Never holds a secret: keys travel beside it.

    `url` is the base that ends before `/v1` (`http://127.0.0.1:8080`), `model` the name to ask for, `context` its
    context window in tokens (0: unknown).
    """

    url: str
    model: str
    context: int = 0


class ChatModel(Protocol):
    """Anything that answers a conversation.

    Implementations: `chat.http.HttpModel` (an OpenAI-compatible endpoint), `chat.scripted.ScriptedModel` (the shipped
    fake), `gateway.pipeline.Cited` (another model, its citations checked).
    """

    def stream(self, request: ChatRequest) -> AsyncIterator[Delta]:
        """Answer in increments; closing the iterator early stops the generation.

        Raises:
            ModelError: the endpoint refused, broke off, or answered nonsense.
        """
        ...
