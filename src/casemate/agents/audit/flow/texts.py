"""Methods of strings that decide something: joins, splits, replacements of line breaks, tables of characters."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.values import UNKNOWN, Value, gather
from casemate.agents.audit.flow.sequences import elements
from casemate.agents.audit.sinks.cleaning import without

_Method = Callable[[Point, Invocation], Value | None]


def of_text(here: Point, invocation: Invocation) -> Value | None:
    """Methods of strings that decide something: joins, splits, replacements of line breaks."""
    node = invocation.node.func
    if not isinstance(node, ast.Attribute) or is_module(here, node.value):
        return None
    method = _TEXT.get(node.attr)
    return method(here, invocation) if method is not None else None


def is_module(here: Point, node: ast.expr) -> bool:
    """Whether an expression is an imported module, whose functions are no methods."""
    return isinstance(node, ast.Name) and node.id in here.record.names and node.id not in here.scope.values


def _replaced(here: Point, invocation: Invocation) -> Value | None:
    del here
    old, new = invocation.argument(0).constant, invocation.argument(1)
    whole = gather(invocation.receiver, new)
    if old == "<" and invocation.receiver.name == "json.dumps()":
        return whole.clear({"html"})
    if isinstance(old, str) and {"\n", "\r"} & {*old}:
        return whole.clear({"log", "header"})
    return whole.marked(*(invocation.receiver.marks & {"built", "json", "extension"})) if new.taints else None


def _translated(here: Point, invocation: Invocation) -> Value | None:
    """`text.translate(table)` with a table that `str.maketrans` made of constants."""
    del here
    table = invocation.argument(0)
    gone = [key for key in table.items or {} if isinstance(key, str) and len(key) == 1]
    if not gone:
        return None
    put_in = "".join(str(item.constant) for item in (table.items or {}).values() if item.constant is not None)
    kinds = without(f"[{re.escape(''.join(gone))}]", put_in.replace("\\", ""))
    if "<" in gone and invocation.receiver.name == "json.dumps()":
        kinds |= {"html"}  # a script cannot be left, and its texts stay quoted
    return Value(
        taints=invocation.receiver.clear(kinds).everything(), marks=invocation.receiver.marks & {"json", "built"}
    )


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
        return Value(taints=invocation.receiver.everything(), marks=frozenset({"extension"}))
    return None


def _joined(here: Point, invocation: Invocation) -> Value | None:
    """`separator.join(…)`."""
    del here
    separator = invocation.receiver
    if not (isinstance(separator.constant, str | bytes) or separator.taints or separator.marks):
        return None
    return gather(separator, *(elements(arg) for arg in invocation.args)).marked("built")


_TEXT: Mapping[str, _Method] = {
    **dict.fromkeys(("lower", "upper", "strip", "lstrip", "rstrip", "casefold", "title", "decode", "copy"), _same),
    "encode": _encoded,
    "replace": _replaced,
    "translate": _translated,
    "rsplit": _split,
    "rpartition": _split,
    "join": _joined,
}
