"""Constants: what built-in functions, methods of texts and comparisons give where all that they see is known. Pure."""

from __future__ import annotations

import ast
import operator
import string
from collections.abc import Callable, Mapping
from typing import Any

from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.values import UNKNOWN, Unknown, Value
from casemate.agents.audit.flow.sequences import exact, listed

_MAX_TEXT = 4096
_PLAIN = (str, bytes, int, float, bool, type(None))
_FUNCTIONS: Mapping[str, Callable[..., object]] = {
    **{f.__name__: f for f in (len, str, int, float, bool, abs, max, min, ord, chr, sum, round, hex, sorted, any, all)},
}
_TYPES: Mapping[str, type] = {t.__name__: t for t in (str, bytes, int, float, bool, list, dict, tuple, set)}
_METHODS = frozenset(
    {
        *("lower", "upper", "strip", "lstrip", "rstrip", "title", "casefold", "startswith", "endswith", "isdigit"),
        *("isalpha", "isalnum", "replace", "find", "index", "count", "capitalize", "swapcase", "removeprefix"),
        *("removesuffix", "isupper", "islower", "encode", "decode", "isidentifier"),
    }
)
_COMPARISON: Mapping[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}
NAMED: Mapping[str, object] = {
    f"string.{name}": getattr(string, name)
    for name in (
        "ascii_letters",
        "ascii_lowercase",
        "ascii_uppercase",
        "digits",
        "hexdigits",
        "octdigits",
        "punctuation",
    )
} | {"os.sep": "/", "typing.TYPE_CHECKING": False}
"""Constants of the standard library, by name."""


def constant(value: Value) -> object:
    """The constant that a value is, containers of constants as lists and dictionaries; UNKNOWN if any part is not."""
    if not isinstance(value.constant, Unknown) or value.items is None or "literal" not in value.marks:
        return value.constant
    if exact(value):
        found = [constant(item) for item in listed(value)]
        return UNKNOWN if any(isinstance(item, Unknown) for item in found) else found
    if value.taints or not all(isinstance(key, str | int | bytes) for key in value.items):
        return UNKNOWN
    pairs = {key: constant(item) for key, item in value.items.items()}
    return UNKNOWN if any(isinstance(item, Unknown) for item in pairs.values()) else pairs


def truth(value: Value) -> object:
    """Whether a value counts as true; UNKNOWN where that is not known."""
    if not isinstance(value.constant, Unknown):
        return bool(value.constant)
    return bool(value.items) if "literal" in value.marks and value.items is not None and not value.taints else UNKNOWN


def called(invocation: Invocation) -> Value | None:
    """The constant that a call gives; None where it is not known."""
    args = [constant(arg) for arg in invocation.args]
    if invocation.name == "isinstance" and len(args) == 2:
        kind = _TYPES.get(invocation.args[1].name)
        known = kind is not None and not isinstance(args[0], Unknown)
        return Value(constant=isinstance(args[0], kind)) if known and kind is not None else None
    if invocation.keywords or any(isinstance(arg, Unknown) for arg in args):
        return None
    if invocation.name == "len" and args and not isinstance(args[0], str | bytes | list | dict):
        return None
    function = _FUNCTIONS.get(invocation.name)
    if function is not None and args:
        return _computed(function, args)
    owner, node = constant(invocation.receiver), invocation.node.func
    if isinstance(node, ast.Attribute) and node.attr in _METHODS and isinstance(owner, str | bytes):
        return _computed(getattr(owner, node.attr), args) if hasattr(owner, node.attr) else None
    return None


def compared(node: ast.Compare, values: list[Value]) -> object:
    """Whether a chain of comparisons holds, if that is known."""
    known = [constant(value) for value in values]
    result: object = True
    for op, left, right in zip(node.ops, known, known[1:], strict=False):
        one = _holds(op, left, right=right)
        if one is False:
            return False
        result = one if isinstance(one, Unknown) else result
    return result


def _holds(op: ast.cmpop, left: object, *, right: object) -> object:
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return UNKNOWN
    if isinstance(op, ast.Is | ast.IsNot):
        plain = left is None or right is None or (isinstance(left, bool) and isinstance(right, bool))
        return (left is right) == isinstance(op, ast.Is) if plain else UNKNOWN
    try:
        return bool(_COMPARISON[type(op)](left, right))
    except TypeError:
        return UNKNOWN


def _computed(function: Callable[..., object], args: list[object]) -> Value | None:
    if any(isinstance(arg, str | bytes | list) and len(arg) > _MAX_TEXT for arg in args):
        return None
    try:
        result = function(*args)
    except (TypeError, ValueError, ArithmeticError, LookupError):
        return None
    return Value(constant=result) if isinstance(result, _PLAIN) else None
