"""Methods of containers and texts: which member comes out, and what putting one in changes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace

from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.values import (
    NOTHING,
    UNKNOWN,
    Unknown,
    Value,
    gather,
    in_order,
    join,
    merge,
    of_elements,
    of_list,
)
from casemate.agents.audit.flow.binding import change
from casemate.agents.audit.flow.sequences import exact, listed, united
from casemate.agents.audit.flow.texts import is_module

_Method = Callable[[Point, Invocation], Value | None]


def of_container(here: Point, invocation: Invocation) -> Value | None:
    """Lists, dictionaries and configuration objects keep their members apart."""
    node = invocation.node.func
    if not isinstance(node, ast.Attribute) or is_module(here, node.value):
        return None
    if _is_instance(here, invocation.receiver.name):
        return None
    method = _CONTAINER.get(node.attr)
    return method(here, invocation) if method is not None else None


def remove(here: Point, target: ast.Subscript) -> None:
    """`del container[key]`."""
    held, key = here.value(target.value), here.value(target.slice).constant
    if held.items and not isinstance(target.slice, ast.Slice):
        change(here, target.value, changed=_without(held, key))


def _is_instance(here: Point, name: str) -> bool:
    """Whether a value is an object of a class of the project, whose methods are its own."""
    made_by = name.removesuffix("()")
    last = made_by.rpartition(".")[2]
    return (
        name.endswith("()") and here.record.may_be_ours(name) and (made_by in here.record.bases or last[:1].isupper())
    )


def _changed(here: Point, invocation: Invocation, *, value: Value) -> Value:
    if isinstance(invocation.node.func, ast.Attribute):
        change(here, invocation.node.func.value, changed=value)
    return NOTHING


def _without(held: Value, key: Hashable) -> Value:
    if exact(held) and isinstance(key, int) and held.items:
        at = key % len(held.items)
        return replace(held, items=of_list([*listed(held)[:at], *listed(held)[at + 1 :]]).items)
    return replace(held, items={other: item for other, item in (held.items or {}).items() if other != key})


def _append(here: Point, invocation: Invocation) -> Value | None:
    if not invocation.args:
        return None
    held, item = invocation.receiver, invocation.args[-1]
    if held.items is not None and exact(held):
        return _changed(here, invocation, value=held.put(len(held.items), item))
    return _changed(here, invocation, value=held.put_somewhere(NOTHING, item))


def _prepend(here: Point, invocation: Invocation) -> Value | None:
    """`insert(0, x)` and `appendleft(x)`."""
    held, args = invocation.receiver, invocation.args
    if not args:
        return None
    at = args[0].constant if len(args) > 1 else 0
    if held.items is None or not exact(held) or not isinstance(at, int) or not 0 <= at <= len(held.items):
        return _changed(here, invocation, value=held.put_somewhere(NOTHING, args[-1]))
    found = listed(held)
    return _changed(here, invocation, value=replace(held, items=of_list([*found[:at], args[-1], *found[at:]]).items))


def _extend(here: Point, invocation: Invocation) -> Value | None:
    held, more = invocation.receiver, invocation.argument(0)
    if held.items is not None and exact(held) and more.items is not None and exact(more):
        items = of_list([*listed(held), *listed(more)]).items
        return _changed(here, invocation, value=replace(held, items=items, constant=UNKNOWN))
    return _changed(here, invocation, value=held.put_somewhere(NOTHING, more.element()))


def _reverse(here: Point, invocation: Invocation) -> Value | None:
    held = invocation.receiver
    if held.items is None:
        return None
    if exact(held):
        return _changed(here, invocation, value=replace(held, items=of_list(reversed(listed(held))).items))
    return _changed(here, invocation, value=of_elements(held.take(UNKNOWN)))


def _sort(here: Point, invocation: Invocation) -> Value | None:
    held = invocation.receiver
    return _changed(here, invocation, value=of_elements(held.element())) if held.items and in_order(held) else None


def _empty(here: Point, invocation: Invocation) -> Value | None:
    held = invocation.receiver
    return _changed(here, invocation, value=Value(name=held.name, items={})) if held.items is not None else None


def _discard(here: Point, invocation: Invocation) -> Value | None:
    """`remove(x)`: which member that is, is known where all are constants."""
    held, gone = invocation.receiver, invocation.argument(0).constant
    if held.items is None:
        return None
    at = next((i for i, item in held.items.items() if not isinstance(gone, Unknown) and item.constant == gone), None)
    if exact(held) and isinstance(at, int):
        return _changed(here, invocation, value=_without(held, at))
    return _changed(here, invocation, value=of_elements(held.take(UNKNOWN)))


def _update(here: Point, invocation: Invocation) -> Value | None:
    held, other = invocation.receiver, invocation.argument(0)
    if held.items is None and not other.items and not invocation.keywords:
        return None
    return _changed(here, invocation, value=united(held, other, dict(invocation.keywords)))


def _set_option(here: Point, invocation: Invocation) -> Value | None:
    """`ConfigParser.set(section, option, value)`."""
    if len(invocation.args) != 3:
        return None
    section, option, item = invocation.args
    held = invocation.receiver
    if not isinstance(section.constant, str) or not isinstance(option.constant, str):
        return _changed(here, invocation, value=held.put_somewhere(NOTHING, item))
    inner = (held.items or {}).get(section.constant, Value(items={}))
    return _changed(here, invocation, value=held.put(section.constant, inner.put(option.constant, item)))


def _read_all(here: Point, invocation: Invocation) -> Value | None:
    return _changed(here, invocation, value=united(invocation.receiver, invocation.argument(0)))


def _section(here: Point, invocation: Invocation) -> Value | None:
    held, name = invocation.receiver, invocation.argument(0).constant
    if not isinstance(name, str) or "onfigParser" not in held.name:
        return None
    return _changed(here, invocation, value=held.put(name, Value(items={})))


def _get(here: Point, invocation: Invocation) -> Value | None:
    held, args = invocation.receiver, invocation.args
    if not args:
        return None
    if held.items is None:
        return _looked_up(here, invocation)
    if len(args) >= 2 and "onfigParser" in held.name:
        return _or_default(held.take(args[0].constant), args[1].constant, default=invocation.argument(-1, "fallback"))
    return _or_default(held, args[0].constant, default=invocation.argument(1, "default"))


def _set_default(here: Point, invocation: Invocation) -> Value | None:
    held, key = invocation.receiver, invocation.argument(0).constant
    if held.items is None or not isinstance(key, str | int):
        return _get(here, invocation)
    found = _or_default(held, key, default=invocation.argument(1))
    _changed(here, invocation, value=held.put(key, found))
    return found


def _looked_up(here: Point, invocation: Invocation) -> Value | None:
    """What lies under a key is not the key; a library's own `get` is something else."""
    receiver = invocation.receiver
    own = f"{here.scope.frame.owner}()."
    given = receiver.name.endswith("()") and here.record.may_be_ours(receiver.name)
    if receiver.name and not given and not (here.scope.frame.owner and receiver.name.startswith(own)):
        return None
    default = invocation.argument(1, "default").everything()
    found = receiver.take(args[0].constant) if (args := invocation.args) else receiver
    return Value(taints=merge(found.everything(), default), marks=receiver.marks & {"json", "built"})


def _pop(here: Point, invocation: Invocation) -> Value | None:
    held = invocation.receiver
    if not held.items:
        return None
    first = invocation.name.endswith("popleft")
    key = 0 if first else invocation.args[0].constant if invocation.args else len(held.items) - 1
    if not exact(held) or not isinstance(key, int):
        return held.take(UNKNOWN) if in_order(held) else _or_default(held, key, default=invocation.argument(1))
    found = held.take(key)
    _changed(here, invocation, value=_without(held, key))
    return found


def _or_default(held: Value, key: object, *, default: Value) -> Value:
    found = held.take(key)
    if isinstance(key, Unknown):
        return replace(join(found, default), constant=UNKNOWN)
    if key in (held.items or {}):
        return found
    return join(found, default) if found.taints or found.name else default


def _keys(here: Point, invocation: Invocation) -> Value | None:
    del here
    held = invocation.receiver
    return of_elements(held.element()) if held.items is not None else None


def _values(here: Point, invocation: Invocation) -> Value | None:
    del here
    held = invocation.receiver
    return of_elements(held.take(UNKNOWN)) if held.items is not None else None


def _pairs(here: Point, invocation: Invocation) -> Value | None:
    del here
    held = invocation.receiver
    if held.items is None or invocation.args:
        return None
    return of_elements(Value(items={0: held.element(), 1: held.take(UNKNOWN)}))


def _write(here: Point, invocation: Invocation) -> Value | None:
    """A file in memory holds what is written into it."""
    held = invocation.receiver
    if held.name not in {"io.StringIO()", "io.BytesIO()"}:
        return None
    return _changed(here, invocation, value=replace(gather(held, *invocation.args), name=held.name))


_CONTAINER: Mapping[str, _Method] = {
    **dict.fromkeys(("append", "add", "put", "push", "put_nowait"), _append),
    **dict.fromkeys(("insert", "appendleft"), _prepend),
    **dict.fromkeys(("extend", "extendleft"), _extend),
    **dict.fromkeys(("write", "writelines"), _write),
    **dict.fromkeys(("remove", "discard"), _discard),
    **dict.fromkeys(("pop", "popleft"), _pop),
    "reverse": _reverse,
    "sort": _sort,
    "clear": _empty,
    "update": _update,
    "read_dict": _read_all,
    "add_section": _section,
    "set": _set_option,
    "get": _get,
    "setdefault": _set_default,
    "keys": _keys,
    "values": _values,
    "items": _pairs,
}
