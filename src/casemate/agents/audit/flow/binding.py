"""Putting values under names, into attributes and members; a container that changes does so under all its names."""

from __future__ import annotations

import ast

from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.syntax import place
from casemate.agents.audit.facts.values import NOTHING, Value


def bind(here: Point, target: ast.expr, *, value: Value) -> None:
    """Assign a value to names, attributes, members or a pattern of them."""
    match target:
        case ast.Name(id=name):
            _keep(here, name, value=value)
            here.scope.bind(name, value)
        case ast.Starred(value=inner):
            bind(here, inner, value=value)
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            _unpack(here, elements, value=value)
        case ast.Attribute():
            _into_attribute(here, target, value=value)
        case ast.Subscript(value=container):
            change(here, container, changed=_with_member(here, target, value=value))
        case _:
            pass


def change(here: Point, target: ast.expr, *, changed: Value) -> None:
    """The container that stands here was changed in place: so is everything that is the same or holds it."""
    scope = here.scope
    match target:
        case ast.Name(id=name):
            known = scope.values.get(name)
            _keep(here, name, value=changed)
            scope.bind(name, changed)
            if known is not None and known.items is not None:
                scope.replace(known, changed)
        case ast.Attribute():
            known = scope.values.get(place(target))
            _into_attribute(here, target, value=changed)
            if known is not None and known.items is not None:
                scope.replace(known, changed)
        case ast.Subscript(value=container):
            change(here, container, changed=_with_member(here, target, value=changed))
            if (where := place(target)) and where in scope.values:
                scope.bind(where, changed)
        case _:
            pass


def _keep(here: Point, name: str, *, value: Value) -> None:
    """A global that a function sets is seen by all others; so is a name of an outer function."""
    owner = here.scope.frame.shared.get(name)
    if owner is not None:
        here.record.store(owner, name, value=value)


def _with_member(here: Point, target: ast.Subscript, *, value: Value) -> Value:
    held = here.value(target.value)
    if isinstance(target.slice, ast.Slice):
        return held.put_somewhere(NOTHING, value.element())
    key = here.value(target.slice)
    if isinstance(key.constant, str | int | bytes | float | None):
        return held.put(key.constant, value)
    return held.put_somewhere(key, value)


def _into_attribute(here: Point, target: ast.Attribute, *, value: Value) -> None:
    scope, record = here.scope, here.record
    owner = here.value(target.value)
    name = owner.name.removesuffix("()")
    own = name == scope.frame.owner and owner.name.endswith("()")
    if "(" not in name and (owner.name.endswith("()") or name in record.bases or name in record.names.values()):
        initial = own and scope.frame.name == f"{name}.__init__"
        record.store(name, target.attr, value=value, initial=initial)
    where = place(target)
    if not own and isinstance(target.value, ast.Name) and (owner.items is not None or _is_ours(record, owner.name)):
        held = owner.put(f".{target.attr}", value)
        scope.values[target.value.id] = held
        scope.replace(owner, held)
    if where:
        scope.bind(where, value)


def _is_ours(record: Record, name: str) -> bool:
    return name.endswith("()") and record.may_be_ours(name)


def _unpack(here: Point, elements: list[ast.expr], *, value: Value) -> None:
    """`a, *b, c = value`: members before a star by position from the front, those behind it from the end."""
    star = next((i for i, element in enumerate(elements) if isinstance(element, ast.Starred)), None)
    items = value.items or {}
    exact = bool(items) and not value.taints and set(items) == set(range(len(items)))
    for index, element in enumerate(elements):
        if star is None or index < star:
            given = value.take(index)
        elif not exact:
            given = Value(taints=value.everything())
        elif index == star:
            stop = len(items) - (len(elements) - star - 1)
            given = Value(items={i - star: items[i] for i in range(star, stop)})
        else:
            given = items.get(len(items) - len(elements) + index, NOTHING)
        bind(here, element, value=given if given.marks >= value.marks - {"whole", "literal"} else _marked(given, value))


def _marked(given: Value, value: Value) -> Value:
    return given.marked(*(value.marks - {"whole", "literal"}))
