"""The words of a conversation, as frozen values. No transport, no JSON.

`ChatRequest` goes down the river, `Delta`s come up. Names follow the OpenAI chat-completions API
(https://platform.openai.com/docs/api-reference/chat).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

Role = Literal["system", "developer", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. `extra` keeps what we do not read (tool calls, names, content parts) exactly as it came."""

    role: Role
    content: str
    extra: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrieved piece of text; `node` is the graph id that it comes from (`CWE-89`), `version` that of the source."""

    node: str
    title: str
    text: str
    source: str
    version: str
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Citation:
    """An identifier in an answer, checked against the graph.

    `grade` is H0 (right) to H7, see `knowledge.citations`; `cited` whether the answer itself names the id (otherwise it
    was only offered to the model).
    """

    id: str
    name: str
    source: str
    version: str
    grade: str
    cited: bool


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that the engine counted."""

    prompt_tokens: int
    completion_tokens: int

    @property
    def total_tokens(self) -> int:
        """Prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What is asked of a model.

    `options` holds every further field of the OpenAI body by its own name (`max_tokens`, `temperature`, `stop`,
    `response_format`, …), passed on untouched. `passages` were added by grounding; `notes` become `X-Casemate-*`
    response headers.
    """

    messages: tuple[Message, ...]
    model: str = ""
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    passages: tuple[Passage, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Delta:
    """One increment of an answer. A stream ends with a Delta whose `finish_reason` is set; `usage` comes once.

    `extra` carries further fields of the choice's delta (tool calls) exactly as the engine sent them. `citations` is
    only on the trailing Delta of a grounded answer.
    """

    content: str = ""
    reasoning: str = ""
    finish_reason: str | None = None
    usage: Usage | None = None
    extra: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    citations: tuple[Citation, ...] | None = None
