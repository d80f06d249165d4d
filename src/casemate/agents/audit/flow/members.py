"""Methods of containers and texts: which member comes out, and what putting one in changes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace

from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.syntax import place
from casemate.agents.audit.facts.values import NOTHING, UNKNOWN, Unknown, Value, gather, merge

_Method = Callable[[Point, Invocation], Value | None]


def of_container(here: Point, invocation: Invocation) -> Value | None:
    """Lists, dictionaries and configuration objects keep their members apart."""
    if not isinstance(invocation.node.func, ast.Attribute):
        copies = invocation.name in {"list", "dict", "tuple"} and len(invocation.args) == 1
        return Value(taints=invocation.args[0].taints, items=invocation.args[0].items) if copies else None
    if here.record.may_be_ours(invocation.receiver.name):
        return None
    method = _CONTAINER.get(invocation.node.func.attr)
    return method(here, invocation) if method is not None else None


def of_text(here: Point, invocation: Invocation) -> Value | None:
    """Methods of strings that decide something: joins, splits, replacements of line breaks."""
    if not isinstance(invocation.node.func, ast.Attribute):
        return None
    method = _TEXT.get(invocation.node.func.attr)
    return method(here, invocation) if method is not None else None


def _owner(invocation: Invocation) -> str:
    """The place of what a method belongs to."""
    return place(invocation.node.func.value) if isinstance(invocation.node.func, ast.Attribute) else ""


def _grow(here: Point, invocation: Invocation) -> Value | None:
    if not invocation.args:
        return None
    receiver, item = invocation.receiver, invocation.args[-1]
    in_order = receiver.items is not None and all(isinstance(key, int) for key in receiver.items)
    if in_order and invocation.name.endswith((".append", ".add")):
        grown = receiver.put(len(receiver.items or {}), item)
    else:
        grown = replace(receiver, taints=merge(receiver.everything(), item.everything()), items=None)
    if where := _owner(invocation):
        here.scope.bind(where, grown)
    return NOTHING


def _update(here: Point, invocation: Invocation) -> Value | None:
    receiver, where = invocation.receiver, _owner(invocation)
    if receiver.items is None or not where:
        return None
    other = invocation.argument(0)
    items: dict[Hashable, Value] = {**receiver.items, **(other.items or {})}
    items.update(invocation.keywords.items())
    here.scope.bind(where, replace(receiver, items=items, taints=merge(receiver.taints, other.taints)))
    return NOTHING


def _set_option(here: Point, invocation: Invocation) -> Value | None:
    """`ConfigParser.set(section, option, value)`."""
    where = _owner(invocation)
    if len(invocation.args) != 3 or not where:
        return None
    section, option, item = invocation.args
    here.scope.bind(where, invocation.receiver.put((section.constant, option.constant), item))
    return NOTHING


def _get(here: Point, invocation: Invocation) -> Value | None:
    items, args = invocation.receiver.items, invocation.args
    if not items or not args:
        return None
    if len(args) >= 2 and (pair := (args[0].constant, args[1].constant)) in items:
        return items[pair]
    del here
    return _or_default(invocation, args[0].constant)


def _pop(here: Point, invocation: Invocation) -> Value | None:
    items = invocation.receiver.items
    if not items:
        return None
    in_order = items.keys() == set(range(len(items)))
    key = invocation.args[0].constant if invocation.args else len(items) - 1
    if not in_order or not isinstance(key, int):
        return _or_default(invocation, key)
    key %= len(items)
    rest = [item for index, item in items.items() if index != key]
    if where := _owner(invocation):
        here.scope.bind(where, replace(invocation.receiver, items=dict(enumerate(rest))))
    return items[key]


def _or_default(invocation: Invocation, key: object) -> Value:
    found = invocation.receiver.take(key)
    present = not isinstance(key, Unknown) and key in (invocation.receiver.items or {})
    default = invocation.argument(1, "default").everything()
    return found if present else replace(found, taints=merge(found.everything(), default))


def _keys(here: Point, invocation: Invocation) -> Value | None:
    del here
    return Value(taints=invocation.receiver.taints) if invocation.receiver.items is not None else None


def _replaced(here: Point, invocation: Invocation) -> Value | None:
    del here
    old = invocation.argument(0).constant
    if isinstance(old, str) and {"\n", "\r"} & {*old}:
        return replace(invocation.receiver, taints=invocation.receiver.clear({"log", "header"}).taints)
    return None


def _encoded(here: Point, invocation: Invocation) -> Value | None:
    if str(invocation.argument(0).constant).replace("-", "_") == "unicode_escape":
        return invocation.receiver.clear({"log", "header"})
    return _same(here, invocation)


def _same(here: Point, invocation: Invocation) -> Value | None:
    """Another writing of the same text."""
    del here
    return replace(invocation.receiver, constant=UNKNOWN)


def _split(here: Point, invocation: Invocation) -> Value | None:
    """`name.rsplit(".")` is how the extension is found."""
    del here
    if invocation.argument(0).constant == ".":
        return Value(taints=invocation.function.everything(), marks=frozenset({"extension"}))
    return None


def _built(here: Point, invocation: Invocation) -> Value | None:
    """`template.format(…)` and `separator.join(…)`."""
    del here
    if invocation.name.endswith(".join") and not isinstance(invocation.receiver.constant, str):
        return None
    return gather(invocation.receiver, *invocation.args, *invocation.keywords.values()).marked("built")


_CONTAINER: Mapping[str, _Method] = {
    **dict.fromkeys(("append", "add", "insert", "appendleft", "put", "extend", "push"), _grow),
    "update": _update,
    "set": _set_option,
    "get": _get,
    "setdefault": _get,
    "pop": _pop,
    "keys": _keys,
}
_TEXT: Mapping[str, _Method] = {
    **dict.fromkeys(("lower", "upper", "strip", "lstrip", "rstrip", "casefold", "title", "decode", "copy"), _same),
    "encode": _encoded,
    "replace": _replaced,
    "rsplit": _split,
    "rpartition": _split,
    "format": _built,
    "join": _built,
}
