"""Values built from pieces: constants fold, text knows that it was built, fixed prefixes count. Pure."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from casemate.agents.audit.facts.values import NOTHING, UNKNOWN, Unknown, Value, gather, merge

_MAX_TEXT = 4096
_MAX_NUMBER = 1 << 62
_CONVERSION = re.compile(r"%(?:\(\w+\))?[-#0 +]*\d*(?:\.\d+)?([diouxXeEfFgGcrsa%])")
_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Div: operator.truediv,
}


def combine(left: Value, right: Value, *, op: ast.operator) -> Value:
    """The value of `left op right`."""
    compute = _ARITHMETIC.get(type(op))
    if compute is not None:
        constant = folded(left.constant, right.constant, by=compute)
        if not isinstance(constant, Unknown):
            return Value(constant=constant, marks=frozenset({"built"}))
    if isinstance(op, ast.Mod) and isinstance(left.constant, str):
        return percent(left.constant, right)
    if isinstance(op, ast.Add) and left.items is not None and right.items is not None:
        return _concatenated(left, right)
    result = gather(left, right)
    name = left.name if isinstance(op, ast.Div) and "pathlib" in left.name else ""
    result = replace(result, name=name, marks=(left.marks | right.marks) & {"json"} | {"built"})
    return rooted(result, left.constant if isinstance(left.constant, str) else "", left=left)


def percent(template: str, right: Value) -> Value:
    """`template % values`: numeric conversions let nothing but numbers through."""
    kinds = _CONVERSION.findall(template)
    kinds = [kind for kind in kinds if kind != "%"]
    pieces = list(right.items.values()) if right.items is not None else [right]
    if len(kinds) == len(pieces):
        pieces = [
            NOTHING if kind in "diouxXeEfFgGc" else piece.clear({"log", "header"} if kind in "ra" else ())
            for kind, piece in zip(kinds, pieces, strict=True)
        ]
    return rooted(gather(*pieces).marked("built"), template.partition("%")[0])


def rooted(value: Value, prefix: str, *, left: Value = NOTHING) -> Value:
    """An address whose host is fixed by the text before the untrusted part cannot lead elsewhere."""
    if "fixed-host" in left.marks or re.match(r"https?://[^/?#\s]+[/?#]", prefix):
        return value.clear({"ssrf", "redirect"}).marked("fixed-host")
    if re.match(r"/[^/\\]|[?#]", prefix):
        return value.clear({"redirect"})
    return value


def _concatenated(left: Value, right: Value) -> Value:
    items = dict(left.items or {})
    start = len(items)
    items |= {start + index: item for index, item in enumerate((right.items or {}).values())}
    return Value(taints=merge(left.taints, right.taints), items=items)


def folded(left: object, right: object, *, by: Callable[[Any, Any], object]) -> object:
    """The result of constants; UNKNOWN where one is not known or the result would be large."""
    small = all(
        (isinstance(side, int) and abs(side) < _MAX_NUMBER) or (isinstance(side, str) and len(side) < _MAX_TEXT)
        for side in (left, right)
    )
    numbers = isinstance(left, int) and isinstance(right, int)
    if not small or not (numbers or (type(left) is type(right) and by is not operator.mod)):
        return UNKNOWN
    try:
        return by(left, right)
    except (ArithmeticError, TypeError, ValueError):
        return UNKNOWN
