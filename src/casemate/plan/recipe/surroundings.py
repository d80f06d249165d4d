"""Judgements on what stands around the options: the program that is started, the model's place, the variables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from casemate.finding import Severity
from casemate.plan.recipe.advice import Advice
from casemate.plan.recipe.flags import FlagTable, History, numbers
from casemate.plan.recipe.masking import hidden, masked
from casemate.plan.recipe.problem import VARIABLE, Kind, Problem
from casemate.plan.recipe.situation import Situation

_MAIN = "vllm.entrypoints.cli.main"
_DEMO = "vllm.entrypoints.api_server"
_CLI = "https://docs.vllm.ai/en/stable/cli/serve/"
_PARSER = "vllm 0.33.0 wheel, vllm/utils/argparse_utils.py"
_MOST_SHOWN = 40


def program(situation: Situation, history: History) -> Iterator[Problem]:
    """What is started, and where the model is named."""
    launch = situation.launch
    if launch.module == _MAIN and _MAIN in (situation.table.modules or (_MAIN,)):
        says = "It is the same program; vllm serve is its short form."
        yield Problem(Kind.BELIEF, Severity.INFO, says, _CLI, ("vllm", "serve"))
    elif launch.module:
        yield from _module(situation, history)
    model = next((use for use in situation.used if use.name == "model"), None)
    if model and launch.kind == "serve":
        says = "vllm serve takes the model as its first word; --model there is to be removed."
        problem = Problem(Kind.DEPRECATED, Severity.LOW, says, _PARSER, (model.value,))
        yield replace(problem, flag=model.typed, value=masked(model.value), position=model.position)
    named = model or any(not use.typed for use in situation.used) or "config" in situation.options
    if not named and launch.kind in ("serve", "module", "image"):
        says = "No model is named, so a small default one is served."
        yield Problem(Kind.REFUSED, Severity.MEDIUM, says, _CLI, None)


def variables(situation: Situation, history: History, *, advice: Iterable[Advice]) -> Iterator[Problem]:
    """Environment variables that the recipe sets."""
    rows = [row for row in advice if row.when == "variable"]
    read = frozenset(situation.table.variables or history.table(history.versions[-1]).variables)
    for name, word in situation.launch.environment:
        value = hidden(name, word.text)[:_MOST_SHOWN]
        row = next((row for row in rows if row.name == name and _applies(row, word.text, known=word.known)), None)
        if row is not None and not (name in read and row.kind in (Kind.REMOVED, Kind.NEEDLESS)):
            there = not row.needs or situation.table.get(row.needs)
            fits = word.known and word.text and row.needs not in situation.options
            mend = row.words(word.text) if there and fits else ()
            yield Problem(row.kind, row.severity, row.says, row.source, mend, name, value, VARIABLE)
        elif name.startswith("VLLM_") and name not in read and not name.startswith("VLLM_PLUGIN"):
            yield replace(_unread(name, situation.table, history=history), value=value)


def _module(situation: Situation, history: History) -> Iterator[Problem]:
    module = situation.launch.module
    there = situation.table.modules or history.table(history.versions[-1]).modules
    known = [entry for entry in history.modules if entry[0] == module]
    mend = ("vllm", "serve")
    if module in there and module == _DEMO:
        says = "This is a demonstration without the OpenAI interface; vllm serve is the server."
        yield Problem(Kind.HARMFUL, Severity.MEDIUM, says, "vllm 0.6.3 wheel, vllm/entrypoints/api_server.py", mend)
    elif module in there and module != _MAIN:
        says = "It is the same server; vllm serve is its short form."
        yield Problem(Kind.BELIEF, Severity.INFO, says, _CLI, mend)
    elif known:
        last = max((entry[2] for entry in known), key=numbers)
        says = f"This program was removed: {last} is the last recorded version that has it. Use vllm serve."
        yield Problem(Kind.REMOVED, Severity.HIGH, says, f"vllm {last} wheel, {module.replace('.', '/')}.py", mend)
    else:
        says = "No recorded version starts a server by this name. Use vllm serve."
        yield Problem(Kind.NEVER, Severity.HIGH, says, _CLI, mend)


def _applies(row: Advice, value: str, *, known: bool) -> bool:
    return not row.pattern or (known and re.fullmatch(row.pattern, value, re.IGNORECASE) is not None)


def _unread(name: str, table: FlagTable, *, history: History) -> Problem:
    ends = [entry[2] for entry in history.variables if entry[0] == name]
    version = table.version or "this engine"
    if ends:
        last = max(ends, key=numbers)
        says = f"{version} does not read it; {last} is the last recorded version that does."
        return Problem(Kind.REMOVED, Severity.LOW, says, f"vllm {last} wheel, vllm/envs.py", (), name, "", VARIABLE)
    says = "No recorded version reads a variable of this name; the engine warns of it and goes on."
    return Problem(Kind.NEVER, Severity.LOW, says, "vllm 0.33.0 wheel, vllm/envs.py", (), name, "", VARIABLE)
