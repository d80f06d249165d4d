"""The budgets of AGENTS.md as measures: each yields what is over its limit, with the figure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from pathlib import PurePosixPath

from house.source import PACKAGE, Function, Source, functions

MODULE_LINES = 300
MODULE_LINES_NEVER = 500
FUNCTION_LINES_NEVER = 60
FUNCTION_LINES_P90 = 30
PARAMETERS = 5
POSITIONAL = 2
NESTING = 3
PRIVATE_TOO = True
"""Whether private functions also take at most two arguments by position; their callers stand beside them."""
DEPTH = 2
DEPTH_OF_AGENTS = 3

_ROOM_COUNTS_FROM = 10
"""A room with fewer functions has no 90th percentile to speak of; it counts in its tree only."""
_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.Match)


@dataclass(frozen=True, slots=True)
class Offence:
    """Something over a budget: which one, where, by what figure."""

    budget: str
    where: str
    figure: int

    def __str__(self) -> str:
        return f"{self.budget} = {self.figure} at {self.where}"


def all_offences(sources: Iterable[Source]) -> Iterator[Offence]:
    """What is over a budget that the list of offenders may hold."""
    everything = list(sources)
    for source in everything:
        yield from module_lines(source)
        yield from folder_depth(source)
        for function in functions(source):
            yield from nesting(function)
            if not source.path.startswith("tests/"):  # a test's parameters are its fixtures
                yield from parameters(function)
    yield from function_lines_p90(everything)


def hard_offences(sources: Iterable[Source]) -> Iterator[Offence]:
    """What no list excuses."""
    for source in sources:
        yield from module_lines(source, limit=MODULE_LINES_NEVER)
        for function in functions(source):
            if function.lines > FUNCTION_LINES_NEVER:
                yield Offence("function lines", function.where, function.lines)


def module_lines(source: Source, *, limit: int = MODULE_LINES) -> Iterator[Offence]:
    lines = len(source.text.splitlines())
    if lines > limit:
        yield Offence("module lines", source.path, lines)


def folder_depth(source: Source) -> Iterator[Offence]:
    """Folders below the package (or below tests, which mirror it)."""
    path = source.path.removeprefix(f"{PACKAGE}/").removeprefix("tests/")
    folders = PurePosixPath(path).parts[:-1]
    if len(folders) > (DEPTH_OF_AGENTS if folders[:1] == ("agents",) else DEPTH):
        yield Offence("folder depth", source.path, len(folders))


def function_lines_p90(sources: Iterable[Source]) -> Iterator[Offence]:
    """The 90th percentile (nearest rank) of the lengths of each tree, and of each room of the package."""
    every = [function for source in sources for function in functions(source)]
    for name_of in (_tree, _room):
        for name, members in groupby(sorted(every, key=name_of), key=name_of):
            lengths = sorted(function.lines for function in members)
            if name_of is _room and len(lengths) < _ROOM_COUNTS_FROM:
                continue
            if (p90 := lengths[ceil(0.9 * len(lengths)) - 1]) > FUNCTION_LINES_P90:
                yield Offence("function lines p90", name, p90)


def parameters(function: Function) -> Iterator[Offence]:
    """How many, and how many may be given by position; self and cls do not count."""
    given = function.node.args
    positional = len(given.posonlyargs) + len(given.args) - function.method
    if positional > POSITIONAL and (PRIVATE_TOO or not re.search(r"(?:^|\.)_", function.name)):
        yield Offence("positional parameters", function.where, positional)
    if positional + len(given.kwonlyargs) > PARAMETERS:
        yield Offence("parameters", function.where, positional + len(given.kwonlyargs))


def nesting(function: Function) -> Iterator[Offence]:
    depth = _deepest(function.node.body)
    if depth > NESTING:
        yield Offence("nesting", function.where, depth)


def _deepest(statements: Iterable[ast.stmt]) -> int:
    return max((_depth(statement) for statement in statements), default=0)


def _depth(statement: ast.stmt) -> int:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return 0  # measured by itself
    if isinstance(statement, ast.If) and len(statement.orelse) == 1 and isinstance(statement.orelse[0], ast.If):
        return max(1 + _deepest(statement.body), _depth(statement.orelse[0]))  # elif stays on its level
    below = _deepest(child for child in _statements(statement))
    return below + isinstance(statement, _BLOCKS)


def _statements(statement: ast.stmt) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from child.body


def _tree(function: Function) -> str:
    return PurePosixPath(function.source.path).parts[0]


def _room(function: Function) -> str:
    path = PurePosixPath(function.source.path)
    if not path.is_relative_to(PACKAGE):
        return path.parts[0]
    return f"{PACKAGE}/{path.parts[2]}" if len(path.parts) > 3 else f"{PACKAGE}/*.py"
