"""What calls pass to functions, and small things about known values. Pure."""

from __future__ import annotations

import ast
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from casemate.agents.audit.facts.origins import ELEMENT
from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.values import UNKNOWN, Unknown, Value

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Where:
    """The function that an expression stands in, and what its parameters are there."""

    function: Function | None
    known: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)


class Asker(Protocol):
    """Anything that says what an expression may stand for."""

    @property
    def record(self) -> Record:
        """The file that is asked about."""
        ...

    def of(self, node: ast.expr, where: Where) -> tuple[Value, ...]:
        """The values that an expression may stand for."""
        ...


def parameters(function: Function) -> list[str]:
    """The names of a function's parameters, in order."""
    spec = function.args
    return [a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]


def default(name: str, function: Function) -> ast.expr | None:
    """What a parameter is where nothing is passed."""
    spec = function.args
    plain = [*spec.posonlyargs, *spec.args]
    for argument, value in zip(reversed(plain), reversed(spec.defaults), strict=False):
        if argument.arg == name:
            return value
    for argument, given in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
        if argument.arg == name:
            return given
    return None


def given(name: str, function: Function, *, call: ast.Call) -> ast.expr | None:
    """What a call passes for a parameter."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    names = parameters(function)
    position = names.index(name) - (1 if names[:1] in (["self"], ["cls"]) else 0)
    if 0 <= position < len(call.args) and not any(isinstance(argument, ast.Starred) for argument in call.args):
        return call.args[position]
    return None


def member(base: Value, key: object) -> Iterator[Value]:
    """The member of a known container under a known key."""
    if isinstance(key, Unknown) or base.items is None:
        return
    if type(key) is int and key < 0:
        key += len(base.items)
    try:
        found = base.items.get(key, base.items.get(ELEMENT))
    except TypeError:
        found = None
    if found is not None:
        yield found


def only(ways: tuple[Value, ...]) -> Value:
    """The one value that an expression stands for; unknown where there are several."""
    return ways[0] if ways and all(way == ways[0] for way in ways) else Value()


def is_added(node: ast.expr) -> bool:
    """Whether a binding is `name += …`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "+="


def is_number(value: Value) -> bool:
    """Whether a value is a known integer."""
    return type(value.constant) is int


def united(values: list[Value]) -> Value:
    """Bits put together by `|`; unknown where one of them is."""
    bits = 0
    for value in values:
        if type(value.constant) is not int:
            return Value()
        bits |= value.constant
    return Value(constant=bits)


def with_number(name: str) -> Value:
    """A name, and its number where it is one of the rights of `stat`."""
    owner, _, last = name.rpartition(".")
    number = getattr(stat, last, UNKNOWN) if owner == "stat" and last.startswith("S_I") else UNKNOWN
    return Value(name=name, constant=number if type(number) is int else UNKNOWN)
