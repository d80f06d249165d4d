"""ask → parse → verify → retry: how every agent talks to a model.

What a model writes is never trusted and never fatal. An answer that cannot be read, or that fails a gate, is asked for
once more together with the complaint; after that the outcome is a `NoAnswer`, which is not the same as an empty answer.
A broken endpoint raises `ModelError` as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from casemate.chat.model import ChatModel
from casemate.chat.wire import ChatRequest, Delta, Usage

T = TypeVar("T")

_NOTHING = Usage(0, 0)
_ROUNDS = 2
"""The question, and one repair."""


@dataclass(frozen=True, slots=True)
class Said:
    """A collected answer. `cut` says that the engine stopped it at the token limit."""

    text: str
    reasoning: str = ""
    cut: bool = False
    usage: Usage = _NOTHING


@dataclass(frozen=True, slots=True)
class Complaint:
    """Why an answer was not accepted, in words that the model is shown."""

    text: str


@dataclass(frozen=True, slots=True)
class Accepted(Generic[T]):
    """A value that passed parser and gates; `usage` counts the tokens of all rounds."""

    value: T
    usage: Usage


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The model gave nothing usable, and why. Never to be shown as "nothing found"."""

    reason: str
    usage: Usage = _NOTHING


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """How an agent reads answers: `parse` makes a value of the text, `verify` is the gate that it must pass."""

    parse: Callable[[Said], T | Complaint]
    verify: Callable[[T], T | Complaint]


def _unwatched(_delta: Delta) -> None:
    """Nobody watches the stream."""


async def converse(
    request: ChatRequest, model: ChatModel, *, reading: Reading[T], watch: Callable[[Delta], None] = _unwatched
) -> Accepted[T] | NoAnswer:
    """Ask until an answer passes, at most twice.

    Args:
        request: the question; its last message is the user's; the repair round adds the complaint to it.
        model: who answers.
        reading: parser and gate.
        watch: sees every increment as it comes, of the repair round too.

    Raises:
        ModelError: the endpoint refused or broke off.
    """
    spent = _NOTHING
    reason = ""
    again = request
    for _ in range(_ROUNDS):
        said = await listen(again, model, watch=watch)
        spent = _sum(spent, said.usage)
        outcome = _read(said, reading, echo=reason)
        if not isinstance(outcome, Complaint):
            return Accepted(outcome, spent)
        reason = outcome.text
        again = _repair(request, reason)
    return NoAnswer(reason, spent)


async def listen(request: ChatRequest, model: ChatModel, *, watch: Callable[[Delta], None] = _unwatched) -> Said:
    """Collect one streamed answer."""
    content: list[str] = []
    reasoning: list[str] = []
    said = Said("")
    async for delta in model.stream(request):
        watch(delta)
        content.append(delta.content)
        reasoning.append(delta.reasoning)
        said = replace(said, cut=said.cut or delta.finish_reason == "length", usage=delta.usage or said.usage)
    return replace(said, text="".join(content), reasoning="".join(reasoning))


def _read(said: Said, reading: Reading[T], *, echo: str) -> T | Complaint:
    if not said.text.strip():
        where = "only in the reasoning" if said.reasoning.strip() else "empty"
        return Complaint(f"the answer was {where}; write the answer itself, briefly and without thinking aloud")
    if echo and echo in said.text:
        return Complaint("the answer repeated the complaint")  # the smallest models do
    value = reading.parse(said)
    return value if isinstance(value, Complaint) else reading.verify(value)


def _repair(request: ChatRequest, reason: str) -> ChatRequest:
    # The refused answer is not shown again: small models go on where it ended, and a planted text would speak twice.
    *before, question = request.messages
    hint = f"{question.content}\n(An earlier answer was refused: {reason}.)"
    return replace(request, messages=(*before, replace(question, content=hint)))


def _sum(a: Usage, b: Usage) -> Usage:
    return Usage(a.prompt_tokens + b.prompt_tokens, a.completion_tokens + b.completion_tokens)
