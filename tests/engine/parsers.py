"""argparse itself, made from a table of flags: what it prints and refuses is what ours must read and refuse."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from casemate.plan.recipe.flags import Flag, FlagTable


class RefusedError(ValueError):
    """The parser stopped."""


class Parser(argparse.ArgumentParser):
    """argparse that raises where it would end the process."""

    def error(self, message: str) -> NoReturn:
        raise RefusedError(message)


def parser(table: FlagTable) -> Parser:
    """A parser with the options of a table, in groups as the engine prints them."""
    made = Parser(prog="vllm serve", usage="vllm serve [model_tag] [options]")
    made.add_argument("model_tag", nargs="?", help="The model to serve.")
    group = made.add_argument_group("Engine", "What the engine takes.")
    for flag in table.flags:
        group.add_argument(*_spelled(flag), **_kind(flag), help=_help(flag))
    return made


@contextmanager
def columns(count: int) -> Iterator[None]:
    """A terminal so wide."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(count)
    try:
        yield
    finally:
        os.environ.pop("COLUMNS") if before is None else os.environ.__setitem__("COLUMNS", before)


def _spelled(flag: Flag) -> tuple[str, ...]:
    return (f"--{flag.name}", *flag.aliases)


def _kind(flag: Flag) -> dict[str, Any]:
    if flag.form == "switch":
        return {"action": "store_true"}
    if flag.form in ("pair", "twin"):
        return {"action": argparse.BooleanOptionalAction}
    kind: dict[str, Any] = {"type": _TYPES.get(flag.form, str)}
    if flag.arity:
        kind["nargs"] = flag.arity
    if flag.closed and flag.form != "word":
        values = [kind["type"](value) for value in flag.values]
        kind |= {"choices": values}
    return kind


_TYPES: dict[str, Callable[[str], Any]] = {"int": int, "float": float}


def _help(flag: Flag) -> str:
    said = f"What {flag.name} does, told over a line or two so that it has to be broken somewhere."
    told = f" (default: {flag.default})" if flag.default else ""
    return ("[DEPRECATED] " if flag.deprecated else "") + said + told
