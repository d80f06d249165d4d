"""Calls that may lead into the project, also those of functions that are handed over as values."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Mapping
from dataclasses import replace

from casemate.agents.audit.facts.origins import CHANGED, Lost, Source
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.syntax import place
from casemate.agents.audit.facts.values import (
    NOTHING,
    Result,
    Taints,
    Unknown,
    Value,
    from_origin,
    join,
    merge,
    of_elements,
    of_list,
)
from casemate.agents.audit.flow.binding import change
from casemate.agents.audit.flow.sequences import exact, listed

_Arguments = Mapping[str, Value]
BOUND = "<bound>"
"""As a key: the arguments that a partial function was given."""
_TEXTUAL = frozenset(dir(str)) | frozenset(dir(bytes)) | frozenset(dir(dict)) | frozenset(dir(list))
_ELEMENTS, _REST, _TUPLE = "elements", "rest", "tuple"
_HANDED: Mapping[str, tuple[int, str, str]] = {
    "map": (0, "", _ELEMENTS),
    "filter": (0, "", _ELEMENTS),
    "functools.reduce": (0, "", _ELEMENTS),
    "itertools.starmap": (0, "", _TUPLE),
    "sorted": (-1, "key", _ELEMENTS),
    "threading.Thread": (1, "target", _TUPLE),
    "multiprocessing.Process": (1, "target", _TUPLE),
    "threading.Timer": (1, "function", _TUPLE),
    "asyncio.to_thread": (0, "", _REST),
    ".submit": (0, "", _REST),
    ".run_in_executor": (1, "", _REST),
    ".call_soon": (0, "", _REST),
    ".call_later": (1, "", _REST),
    ".apply_async": (0, "", _TUPLE),
    ".starmap": (0, "", _TUPLE),
    ".imap": (0, "", _ELEMENTS),
    ".map": (0, "", _ELEMENTS),
}
"""Calls that call a function: its position or keyword, and where its arguments are."""


def of_project(here: Point, invocation: Invocation) -> Value | None:
    """A call that may lead into the project: its result is resolved when the project is linked."""
    names = [name for name in _names(invocation) if here.record.may_be_ours(name)]
    if not names:
        return _by_value(here, invocation)
    read = [origin for origin in invocation.function.taints if isinstance(origin, Source)]
    if read and not invocation.receiver.taints.keys() & {*read}:
        return None  # what is called is itself what a client sent
    arguments = _arguments(here, invocation)
    receiver = invocation.receiver if isinstance(invocation.node.func, ast.Attribute) else invocation.function
    found = NOTHING
    for index, name in enumerate(names):
        part = f"#{index}" if index else ""
        key = here.record.call(invocation.node, name, arguments=arguments, receiver=receiver, part=part)
        _changes(here, invocation, key=key)
        given = from_origin(Result(key))
        found = given if not index else join(found, given)
    if len(names) == 1:
        _ensured(here, invocation, name=names[0])
    name = f"{names[0]}()"
    return replace(found, name=name, others=tuple(f"{other}()" for other in names[1:]), marks=frozenset({"whole"}))


def handed(here: Point, invocation: Invocation) -> Value | None:
    """A library is given a function to call: it is called here."""
    row = _HANDED.get(invocation.name) or _HANDED.get("." + invocation.name.rpartition(".")[2])
    if invocation.name == "functools.partial" and invocation.args:
        return _partial(invocation)
    if row is None:
        return None
    at, keyword, style = row
    function = invocation.argument(at, keyword)
    names = [name for name in function.names() if here.record.may_be_ours(name)]
    if not names and not symbolic(function):
        return None
    arguments = _given(invocation, at, style=style)
    result = NOTHING
    for index, name in enumerate(names or [""]):
        key = here.record.call(invocation.node, name, arguments=arguments, receiver=function, part=f"#called{index}")
        result = join(result, from_origin(Result(key)))
    last = invocation.name.rpartition(".")[2]
    if last in {"filter", "sorted"}:
        return of_elements(invocation.argument(1 if last == "filter" else 0).element())
    return of_elements(result) if style != _REST and last != "reduce" else result


def symbolic(value: Value) -> bool:
    """Whether only the whole project tells what a value is."""
    return any(not isinstance(origin, Source | Lost) for origin in value.taints)


def _names(invocation: Invocation) -> tuple[str, ...]:
    node = invocation.node.func
    if isinstance(node, ast.Attribute) and not invocation.function.others:
        return (invocation.name, *(f"{other}.{node.attr}" for other in invocation.receiver.others))
    return (invocation.name, *invocation.function.others)


def _by_value(here: Point, invocation: Invocation) -> Value | None:
    """What is called is a parameter, a result or an attribute; or a method of such."""
    node, record = invocation.node, here.record
    if isinstance(node.func, ast.Attribute):
        name = f".{node.func.attr}"
        if node.func.attr in _TEXTUAL or not symbolic(invocation.receiver) or "." in invocation.receiver.name:
            return None
        key = record.call(node, name, arguments=_arguments(here, invocation), receiver=invocation.receiver)
        return Value(taints={Result(key): frozenset()}, name=invocation.name)
    if not symbolic(invocation.function):
        return None
    key = record.call(node, "", arguments=_arguments(here, invocation), receiver=invocation.function)
    return from_origin(Result(key))


def _arguments(here: Point, invocation: Invocation) -> dict[str, Value]:
    found: dict[str, Value] = {}
    at = 0
    before = len(invocation.args) - len(invocation.node.args)
    nodes = [*[None] * before, *invocation.node.args]
    for node, value in zip(nodes, invocation.args, strict=True):
        if not isinstance(node, ast.Starred):
            found[str(at)] = value
            at += 1
            continue
        spread = here.value(node.value)
        if exact(spread):
            found |= {str(at + index): item for index, item in enumerate(listed(spread))}
            at += len(listed(spread))
        else:
            found[f"*{at}"] = spread
    for name, value in invocation.keywords.items():
        if name == "**" and value.items and not value.taints:
            found |= {str(key): item for key, item in value.items.items() if isinstance(key, str)}
        else:
            found[name] = value
    return found


def _ensured(here: Point, invocation: Invocation, *, name: str) -> None:
    """What the function shows of its arguments by coming back holds from here on."""
    positions = [(str(i), node) for i, node in enumerate(invocation.node.args)]
    named = [(keyword.arg or "", keyword.value) for keyword in invocation.node.keywords]
    values = (*invocation.args, *(invocation.keywords.get(at, NOTHING) for at, _ in named))
    for (at, node), value in zip([*positions, *named], values, strict=False):
        if at and value.taints and (where := place(node)):
            here.scope.clear(where, value, kinds={f"ensure:{name}:{at}"})


def _changes(here: Point, invocation: Invocation, *, key: str) -> None:
    """A container that is handed over may come back with more in it."""
    before = len(invocation.args) - len(invocation.node.args)
    for index, node in enumerate(invocation.node.args, before):
        value = invocation.args[index]
        if not isinstance(node, ast.Name | ast.Attribute) or value.items is None or not place(node):
            continue
        if value.items and all(not isinstance(item.constant, Unknown) or item.name for item in value.items.values()):
            continue
        more: Taints = {Result(key, (CHANGED, str(index))): frozenset[str]()}
        change(
            here,
            node,
            changed=replace(value, taints=merge(value.taints, more), marks=value.marks - {"literal", "whole"}),
        )


def _given(invocation: Invocation, at: int, *, style: str) -> _Arguments:
    args = invocation.args
    if style == _REST:
        found = {str(index): value for index, value in enumerate(args[at + 1 :])}
        return found | {name: value for name, value in invocation.keywords.items() if name != "**"}
    if style == _TUPLE:
        given = invocation.argument(at + 1 if len(args) > at + 1 else -1, "args")
        named = invocation.argument(-1, "kwargs").items or {}
        return {"*0": given, **{str(name): value for name, value in named.items() if isinstance(name, str)}}
    return {str(index): value.element() for index, value in enumerate(args[at + 1 :])}


def _partial(invocation: Invocation) -> Value | None:
    """`partial(f, x)`: a function that is called later, with these arguments before its others."""
    function = invocation.args[0]
    bound = of_list(invocation.args[1:])
    keywords = dict[Hashable, Value](invocation.keywords.items())
    given: dict[Hashable, Value] = {"args": bound, "keywords": Value(items=keywords)}
    items: dict[Hashable, Value] = {BOUND: Value(items=given)}
    return Value(function.taints, function.name, items=items, others=function.others)


def resumed(
    function: Value, args: tuple[Value, ...], *, keywords: Mapping[str, Value]
) -> tuple[tuple[Value, ...], dict[str, Value]]:
    """The arguments of a call of such a function, those that were bound before included."""
    bound = (function.items or {})[BOUND]
    before = listed(bound.take("args"))
    named = {str(key): value for key, value in (bound.take("keywords").items or {}).items()}
    return (*before, *args), named | dict(keywords)
