"""Values built from pieces: constants fold, text knows that it was built, fixed prefixes count. Pure."""

from __future__ import annotations

import ast
import itertools
import operator
import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from casemate.agents.audit.facts.values import NOTHING, UNKNOWN, Unknown, Value, gather, join, of_elements, of_list
from casemate.agents.audit.flow.sequences import exact, listed, united

MARKUP = frozenset({"markupsafe.Markup()", "flask.Markup()", "jinja2.Markup()"})
_MAX_TEXT = 4096
_FORMATTER = string.Formatter()
_STEPS = re.compile(r"^[^.\[]+|\.[^.\[]+|\[[^\]]*\]")
NUMERIC = re.compile(r"[,_]?\.?\d*[bcdeEfFgGnoxX%]$")
_MAX_NUMBER = 1 << 62
_CONVERSION = re.compile(r"%(?:\((\w+)\))?[-#0 +]*\d*(?:\.\d+)?([diouxXeEfFgGcrsa%])")
_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Div: operator.truediv,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: lambda left, right: left << right if right < 64 else UNKNOWN,
    ast.RShift: operator.rshift,
    ast.Pow: lambda left, right: left**right if 0 <= right < 64 and abs(left) < 64 else UNKNOWN,
}


def combine(left: Value, right: Value, *, op: ast.operator) -> Value:
    """The value of `left op right`."""
    if left.name in MARKUP and isinstance(op, ast.Add | ast.Mod):
        right = right.clear({"html"})  # markup escapes what is put into it
    compute = _ARITHMETIC.get(type(op))
    if compute is not None:
        constant = folded(left.constant, right.constant, by=compute)
        if not isinstance(constant, Unknown):
            return Value(constant=constant, marks=frozenset({"built"}))
    if isinstance(op, ast.BitAnd) and not (left.everything() and right.everything()):
        return NOTHING  # of two sets, or of a number and a mask, only what the program itself named
    if isinstance(op, ast.Mod) and isinstance(left.constant, str):
        return percent(left.constant, right)
    held = _of_containers(left, right, op=op)
    if held is not None:
        return held
    if isinstance(left.constant, str) and left.constant and "no-climb" in right.marks:
        right = right.clear({"path"})  # behind a fixed beginning only `..` leads out
    result = gather(left, right)
    name = left.name if isinstance(op, ast.Div) and "pathlib" in left.name else ""
    result = replace(result, name=name, marks=(left.marks | right.marks) & {"json"} | {"built"})
    return rooted(result, left.constant if isinstance(left.constant, str) else "", left=left)


def _of_containers(left: Value, right: Value, *, op: ast.operator) -> Value | None:
    """`{…} | {…}`, `[…] * n`, `[…] + […]`."""
    if isinstance(op, ast.BitOr) and (left.items is not None or right.items is not None):
        return united(left, right)
    if isinstance(op, ast.Mult) and left.items is not None:
        return of_elements(left.element())
    if isinstance(op, ast.Add) and left.items is not None and right.items is not None:
        return _concatenated(left, right)
    return None


def percent(template: str, right: Value) -> Value:
    """`template % values`: numeric conversions let nothing but numbers through."""
    kinds = _CONVERSION.findall(template)
    named = [name for name, kind in kinds if kind != "%"]
    kinds = [kind for _, kind in kinds if kind != "%"]
    if named and all(named) and right.items and right.items.keys() == {0}:
        right = right.items[0]  # a logger takes its mapping as the only argument
    pieces = list(right.items.values()) if right.items is not None else [right]
    if named and all(named) and right.items is not None and not right.taints:
        pieces = [right.take(name) for name in named]
    fixed = [piece.constant for piece in pieces]
    if len(kinds) == len(pieces) and not any(named) and all(isinstance(text, str | int) for text in fixed):
        return Value(constant=folded_text(template, tuple(fixed)), marks=frozenset({"built"}))
    if len(kinds) == len(pieces):
        pieces = [
            NOTHING if kind in "diouxXeEfFgGc" else piece.clear({"log", "header"} if kind in "ra" else ())
            for kind, piece in zip(kinds, pieces, strict=True)
        ]
    return rooted(gather(*pieces).marked("built"), template.partition("%")[0])


def folded_text(template: str, values: tuple[object, ...]) -> object:
    """`template % values` of constants."""
    try:
        return template % values if len(template) < _MAX_TEXT else UNKNOWN
    except (TypeError, ValueError):
        return UNKNOWN


def _field(name: str, args: Sequence[Value], *, named: Mapping[str, Value]) -> Value:
    """What a field names: `0`, `user`, `user.name`, `row[key]`."""
    first, *members = _STEPS.findall(name) or [name]
    value = args[int(first)] if first.isdigit() and int(first) < len(args) else named.get(first, NOTHING)
    for step in members:
        value = value.attribute(step[1:]) if step.startswith(".") else value.take(step[1:-1])
    return value


def filled(template: str, args: Sequence[Value], *, named: Mapping[str, Value]) -> Value:
    """`template.format(*args, **named)`: the fields that it names; numeric ones let nothing but numbers through."""
    pieces: list[Value] = []
    try:
        fields = [(name, spec or "", how) for _, name, spec, how in _FORMATTER.parse(template) if name is not None]
    except ValueError:
        return gather(*args, *named.values()).marked("built")
    for index, (name, spec, how) in enumerate(fields):
        value = _field(name or str(index), args, named=named)
        if not (spec and NUMERIC.search(spec)):
            pieces.append(value.clear({"log", "header"}) if how in {"r", "a"} else value)
    if not fields:
        return Value(constant=template)
    return rooted(gather(*pieces).marked("built"), template.partition("{")[0])


def interpolated(parts: Sequence[Value]) -> Value:
    """The value of a formatted string by its parts in order."""
    texts = [part.constant for part in parts]
    if all(isinstance(text, str | int) for text in texts) and parts:
        return Value(constant="".join(map(str, texts)), marks=frozenset({"built"}))
    prefix = "".join(str(text) for text in itertools.takewhile(lambda text: isinstance(text, str), texts))
    if prefix:
        parts = [part.clear({"path"}) if "no-climb" in part.marks else part for part in parts]
    return rooted(gather(*parts).marked("built"), prefix)


def rooted(value: Value, prefix: str, *, left: Value = NOTHING) -> Value:
    """An address whose host is fixed by the text before the untrusted part cannot lead elsewhere."""
    if "fixed-host" in left.marks or re.match(r"https?://[^/?#\s]+[/?#]", prefix):
        return value.clear({"ssrf", "redirect"}).marked("fixed-host")
    if re.match(r"/[^/\\]|[?#]", prefix):
        return value.clear({"redirect"})
    return value


def _concatenated(left: Value, right: Value) -> Value:
    if exact(left) and exact(right):
        return of_list([*listed(left), *listed(right)])
    return of_elements(join(left.element(), right.element()))


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
