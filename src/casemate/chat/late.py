"""A model that comes later: the gateway can serve while the engine still loads."""

from __future__ import annotations

from collections.abc import AsyncIterator

from casemate.chat.model import ChatModel
from casemate.chat.wire import ChatRequest, Delta
from casemate.errors import ModelError


class LateModel:
    """A ChatModel that refuses with 503 until `attach` gives it the model to pass on to."""

    def __init__(self) -> None:
        self._model: ChatModel | None = None

    def attach(self, model: ChatModel) -> None:
        """From now on, answer through `model`."""
        self._model = model

    def stream(self, request: ChatRequest) -> AsyncIterator[Delta]:
        """Answer through the attached model.

        Raises:
            ModelError: status 503, as long as none is attached.
        """
        if self._model is None:
            raise ModelError("the engine is not ready", status=503, remedy="ask again in a few seconds")
        return self._model.stream(request)
