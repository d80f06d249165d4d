"""Which of the offered passages an answer rests on, asked of the model as a choice among their identifiers.

The schema lets the model pick only what was retrieved, so it cannot invent an identifier; names are the graph's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from types import MappingProxyType

import orjson

from casemate.agents.loop import Accepted, Complaint, Reading, Said, converse
from casemate.chat.model import ChatModel
from casemate.chat.wire import ChatRequest, Message, Passage

_MOST_TOKENS = 80


async def named(
    request: ChatRequest, answer: str, *, model: ChatModel, passages: Sequence[Passage]
) -> tuple[Passage, ...]:
    """The passages that the model says its answer rests on; none where it gives no readable choice.

    Args:
        request: what the answer was asked by.
        answer: the accepted answer, which names no source itself.
        model: who wrote it.
        passages: what was offered.

    Raises:
        ModelError: the endpoint is broken.
    """
    offered = {passage.node: passage for passage in passages}
    ask = Message("user", f"Which of these sources does the answer rest on? {', '.join(offered)}")
    choice = replace(
        request,
        messages=(*request.messages, Message("assistant", answer), ask),
        options=MappingProxyType({"max_tokens": _MOST_TOKENS, "temperature": 0, "response_format": _form(offered)}),
    )

    def parse(said: Said) -> tuple[Passage, ...] | Complaint:
        try:
            picked = orjson.loads(said.text)["sources"]
            return tuple(offered[id_] for id_ in dict.fromkeys(picked))
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return Complaint(f"it was no JSON object with `sources` from {', '.join(offered)}")

    outcome = await converse(choice, model, reading=Reading(parse=parse, verify=lambda chosen: chosen))
    return outcome.value if isinstance(outcome, Accepted) else ()


def _form(ids: Collection[str]) -> dict[str, object]:
    """A JSON schema that admits the identifiers alone (https://platform.openai.com/docs/guides/structured-outputs)."""
    item = {"type": "string", "enum": list(ids)}
    schema = {
        "type": "object",
        "properties": {"sources": {"type": "array", "items": item, "minItems": 1, "maxItems": len(ids)}},
        "required": ["sources"],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": "sources", "strict": True, "schema": schema}}
