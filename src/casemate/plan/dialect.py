"""How a family of models talks, and which of the engine's parsers reads it: by the config's `model_type`. Pure.

Only families are listed of which the config alone tells the dialect. Many do not: `qwen3_moe` are models with Hermes
calls and models with XML calls, `deepseek_v3` are V3, R1 and V3.1. There a wrong parser would swallow answers, so none
is chosen. Source: docs/features/tool_calling.md and reasoning_outputs.md of vLLM, its recipes, and the parsers' own
modules in its wheels (0.20 to 0.33).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from casemate.checkpoint.facts import Checkpoint
from casemate.plan.recipe.flags import FlagTable


@dataclass(frozen=True, slots=True)
class Dialect:
    """The engine's words for how a model talks; empty: none is needed, or none is known.

    `template` are the values that every request's chat template gets unless it sends its own.
    """

    tokenizer_mode: str = ""
    reasoning_parser: str = ""
    tool_call_parser: str = ""
    template: tuple[tuple[str, str | bool], ...] = ()
    notes: tuple[str, ...] = ()


_THINKING: tuple[tuple[str, str | bool], ...] = (("thinking", True), ("reasoning_effort", "low"))
"""One meaning in every release: thinking without a prefix. Unset, it is off until 0.27 and on from 0.28, there with the
prefix that 0.27 had for `max`; `low` is `high` without a prefix until 0.27 (`tokenizers/deepseek_v4.py`)."""
_FAMILIES = {
    "deepseek_v4": Dialect("deepseek_v4", "deepseek_v4", "deepseek_v4", _THINKING),
    "deepseek_v41": Dialect("", "deepseek_v41", "deepseek_v41"),
    "deepseek_v32": Dialect("deepseek_v32", "deepseek_v3", "deepseek_v32"),
    "gemma4": Dialect("", "gemma4", "gemma4"),
    "glm4_moe": Dialect(
        reasoning_parser="glm45",
        notes=("GLM-4.5 and 4.6 write tool calls otherwise than 4.7: add --tool-call-parser glm45 or glm47",),
    ),
    "gpt_oss": Dialect("", "openai_gptoss", "openai"),
    "granitemoehybrid": Dialect("", "", "granite4"),
    "kimi_k2": Dialect(
        tool_call_parser="kimi_k2",
        notes=("of this type only some models think: for one that does, add --reasoning-parser kimi_k2",),
    ),
    "longcat_flash": Dialect("", "", "longcat"),
    "minimax_m2": Dialect("", "minimax_m2", "minimax_m2"),
    "seed_oss": Dialect("", "seed_oss", "seed_oss"),
    "step3_vl": Dialect("", "step3", "step3"),
}


def dialect(checkpoint: Checkpoint, table: FlagTable) -> Dialect:
    """How this model talks, as far as this release of the engine understands it.

    Args:
        checkpoint: the model; its `model_type` decides.
        table: the release's flags; a parser that it has not is left out, with a note.
    """
    family = _FAMILIES.get(checkpoint.model_type)
    if family is None:
        kind = checkpoint.model_type or "unknown"
        says = (
            f"no parser for reasoning or tools is set: a config of type {kind} does not tell the model's dialect; its"
            " card does (--reasoning-parser; --tool-call-parser with --enable-auto-tool-choice)"
        )
        return Dialect(notes=(says,))
    found = replace(
        family,
        tokenizer_mode=_known(table, "tokenizer-mode", value=family.tokenizer_mode),
        reasoning_parser=_known(table, "reasoning-parser", value=family.reasoning_parser),
        tool_call_parser=_known(table, "tool-call-parser", value=family.tool_call_parser),
        template=family.template if table.get("default-chat-template-kwargs") else (),
    )
    return replace(found, notes=tuple(_notes(family, found, table=table)))


def _known(table: FlagTable, name: str, *, value: str) -> str:
    flag = table.get(name)
    return value if flag and value in flag.values else ""


def _notes(family: Dialect, found: Dialect, *, table: FlagTable) -> Iterator[str]:
    engine = f"vLLM {table.version}"
    if family.reasoning_parser and not found.reasoning_parser:
        yield f"{engine} has no reasoning parser for this model: its thinking stays in the answer's text"
    if family.tool_call_parser and not found.tool_call_parser:
        yield f"{engine} has no tool parser for this model: calls stay in the answer's text"
    if family.template and not found.template:
        yield f"{engine} takes no default for the chat template: each request must say whether to think"
    yield from family.notes
