"""Putting values under names, and taking them out of what is iterated."""

from __future__ import annotations

import ast
from dataclasses import replace

from casemate.agents.audit.facts.scope import Scope
from casemate.agents.audit.facts.syntax import place
from casemate.agents.audit.facts.values import Value, join, merge


def bind(target: ast.expr, value: Value, *, scope: Scope) -> None:
    """Assign a value to names, members or a pattern of them."""
    match target:
        case ast.Name(id=name):
            scope.bind(name, value)
        case ast.Starred(value=inner):
            bind(inner, Value(taints=value.everything()), scope=scope)
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            for index, element in enumerate(elements):
                bind(element, replace(value.take(index), marks=value.marks | value.take(index).marks), scope=scope)
        case ast.Attribute() if where := place(target):
            scope.bind(where, value)
        case ast.Subscript(value=container, slice=key):
            root = place(container)
            known = scope.values.get(root)
            if root and isinstance(key, ast.Constant) and known is not None:
                scope.bind(root, known.put(key.value, value))
            elif root and known is not None:
                scope.bind(root, replace(known, taints=merge(known.taints, value.everything())))
            elif root and value.everything():
                scope.bind(root, Value(taints=value.everything(), name=known.name if known else ""))
        case _:
            pass


def element_of(container: Value) -> Value:
    """What iterating over a container gives; constant keys of a dictionary are harmless."""
    items = container.items
    if items and all(isinstance(key, int) for key in items):
        values = list(items.values())
        result = values[0]
        for value in values[1:]:
            result = join(result, value)
        return replace(result, taints=merge(result.taints, container.taints))
    name = f"{container.name}[]" if container.name else ""
    return Value(taints=container.taints, name=name, marks=container.marks & {"json", "built"})
