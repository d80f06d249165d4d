"""A plan for cards as the command that starts it: `vllm serve …` in the words of one release. Pure.

A flag stands in it only where the plan's value is not the engine's own, or where the memory and the answers rest on a
default that changed between releases or cards: context, batched tokens, sequences and graph sizes, thinking. What the
release does not know is left out. Never in it: `--trust-remote-code`, `--disable-log-stats`, a key.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from casemate.errors import UsageError
from casemate.plan.decision import CardsPlan
from casemate.plan.dialect import Dialect
from casemate.plan.recipe.flags import FlagTable

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8000
_NAME = re.compile(r"[A-Za-z0-9][\w.:/@+-]{0,127}", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Serving:
    """How a plan is served.

    Attributes:
        table: the flags of the engine's release.
        dialect: how the model talks.
        folder: where the model's files lie, absolute.
        port: of the engine, on loopback.
        served_name: what requests call the model.
        peer_writes_lost: PCIe peer traffic is redirected, so that no direct all-reduce may be used.
        dtype: the model's type of number where the cards lack its own (`half`); empty: its own.
    """

    table: FlagTable
    dialect: Dialect
    folder: str
    port: int
    served_name: str
    peer_writes_lost: bool = False
    dtype: str = ""


def argv(plan: CardsPlan, serving: Serving) -> tuple[str, ...]:
    """The words of the command, the program first.

    Args:
        plan: what was decided.
        serving: by what release, where, under which name.

    Raises:
        UsageError: the folder, the port or the name cannot stand in a command.
    """
    _refuse(serving)
    return ("vllm", "serve", serving.folder, *(word for option in options(plan, serving) for word in option))


def options(plan: CardsPlan, serving: Serving) -> tuple[tuple[str, ...], ...]:
    """The same behind the model, one tuple for each option with its value."""
    return (
        ("--served-model-name", serving.served_name),
        ("--host", LOOPBACK),
        ("--port", str(serving.port)),
        *_layout(plan, serving),
        *((("--dtype", serving.dtype),) if serving.dtype else ()),
        *_cache(plan, serving.table),
        *_batches(plan, serving.table),
        *_talk(serving.dialect),
        *_quiet(serving.table),
    )


def command(words: Iterable[str], variables: Iterable[tuple[str, str]] = ()) -> str:
    """A command for a shell, one option a line, variables before it; it can be pasted as it is."""
    lines = [f"{name}={shlex.quote(value)}" for name, value in variables]
    return " \\\n".join([*lines, *broken(shlex.quote(word) for word in words)])


def broken(words: Iterable[str]) -> list[str]:
    """Quoted words as lines, each option with its values on one, indented behind the program."""
    lines: list[str] = []
    for word in words:
        if word.startswith("--"):
            lines.append(f"  {word}")
        elif lines:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _refuse(serving: Serving) -> None:
    if not 1 <= serving.port <= 65535:
        raise UsageError(f"{serving.port} is no port", remedy="give one from 1 to 65535")
    if not _NAME.fullmatch(serving.served_name):
        raise UsageError(
            f"{serving.served_name[:40]!r} is no name for a served model", remedy="take letters, digits, . _ - / : @ +"
        )
    if not serving.folder.startswith("/") or _CONTROL.search(serving.folder):
        raise UsageError(
            "the model's folder cannot stand in a command",
            where=serving.folder[:200],
            remedy="give an absolute path without control characters",
        )


def _layout(plan: CardsPlan, serving: Serving) -> Iterator[tuple[str, ...]]:
    for name, size in (
        ("--tensor-parallel-size", plan.tensor_parallel),
        ("--pipeline-parallel-size", plan.pipeline_parallel),
        ("--data-parallel-size", plan.data_parallel),
    ):
        if size > 1:
            yield name, str(size)
    if plan.expert_parallel:
        yield ("--enable-expert-parallel",)
    if plan.nodes > 1:
        yield "--distributed-executor-backend", "ray"
    if serving.peer_writes_lost:
        yield ("--disable-custom-all-reduce",)
    if plan.moe_backend != "auto" and serving.table.get("moe-backend"):
        yield "--moe-backend", plan.moe_backend


def _cache(plan: CardsPlan, table: FlagTable) -> Iterator[tuple[str, ...]]:
    share = table.get("gpu-memory-utilization")
    if share is None or not share.default or float(share.default) != plan.gpu_memory_utilization:
        yield "--gpu-memory-utilization", f"{plan.gpu_memory_utilization:g}"
    if plan.kv_cache_dtype != "auto":
        yield "--kv-cache-dtype", plan.kv_cache_dtype
    if plan.block_size is not None:
        yield "--block-size", str(plan.block_size)
    yield "--max-model-len", str(plan.max_model_len)


def _batches(plan: CardsPlan, table: FlagTable) -> Iterator[tuple[str, ...]]:
    yield "--max-num-batched-tokens", str(plan.max_num_batched_tokens)
    yield "--max-num-seqs", str(plan.max_num_seqs)
    if plan.enforce_eager:
        yield ("--enforce-eager",)
    elif plan.max_cudagraph_capture_size > 0:
        yield from _graphs(plan.max_cudagraph_capture_size, table)
    if plan.speculation is not None:
        keys: dict[str, str | int] = {
            "method": plan.speculation.method,
            "num_speculative_tokens": plan.speculation.tokens,
        }
        if plan.speculation.method == "dspark":
            keys["draft_sample_method"] = (
                "probabilistic"  # as vLLM's recipe has it: greedy drafts fail at temperature 1
            )
        yield "--speculative-config", json.dumps(keys)


def _graphs(largest: int, table: FlagTable) -> Iterator[tuple[str, ...]]:
    """The largest captured batch, in the words of the release: a flag of its own since 0.11."""
    for name in ("max-cudagraph-capture-size", "cuda-graph-sizes"):
        if table.get(name):
            yield f"--{name}", str(largest)
            return


def _talk(dialect: Dialect) -> Iterator[tuple[str, ...]]:
    if dialect.tokenizer_mode:
        yield "--tokenizer-mode", dialect.tokenizer_mode
    if dialect.reasoning_parser:
        yield "--reasoning-parser", dialect.reasoning_parser
    if dialect.tool_call_parser:
        yield "--tool-call-parser", dialect.tool_call_parser
        yield ("--enable-auto-tool-choice",)
    if dialect.template:
        yield "--default-chat-template-kwargs", json.dumps(dict(dialect.template))


def _quiet(table: FlagTable) -> Iterator[tuple[str, ...]]:
    """Prompts stay out of the log: since 0.10 they do by themselves."""
    if not table.get("enable-log-requests") and table.get("disable-log-requests"):
        yield ("--disable-log-requests",)
