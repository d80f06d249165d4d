"""What the beginning of a text shows: a path under its root, an address with its whole host, one slash and not two."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.syntax import place
from casemate.agents.audit.facts.values import Value

_HOST_KINDS = frozenset({"redirect", "ssrf"})
_SCHEMES = ("http://", "https://")
_WHOLE_HOST = re.compile(r"https?://[^/?#\\@]+/")


def settle(here: Point, node: ast.expr, *, kinds: Iterable[str]) -> None:
    """What stands here is harmless for these kinds, if it can be named again."""
    if where := place(node):
        here.scope.clear(where, here.value(node), kinds=kinds)


def under_root(here: Point, node: ast.expr) -> None:
    """A normal path was found to lie under a root."""
    if "normal" in here.value(node).marks:
        settle(here, node, kinds={"path"})


def starts(here: Point, node: ast.Call) -> None:
    """A prefix test: of a normal path with its separator, or of an address with its whole host."""
    if not isinstance(node.func, ast.Attribute) or not node.args:
        return
    tested, prefix = node.func.value, here.value(node.args[0])
    if _ends_with_separator(node.args[0], prefix):
        under_root(here, tested)
    if _names_whole_hosts(here, node.args[0], prefix=prefix):
        settle(here, tested, kinds=_HOST_KINDS)
    elif prefix.constant == "/":
        _both(here, tested, found="starts-with-slash", other="no-second-slash")


def does_not_start(here: Point, node: ast.Call) -> None:
    """A prefix test that failed: a path that does not begin with two slashes."""
    if not isinstance(node.func, ast.Attribute) or not node.args:
        return
    prefix = here.value(node.args[0])
    prefixes = [prefix.constant, *(item.constant for item in (prefix.items or {}).values())]
    if "//" in prefixes:
        _both(here, node.func.value, found="no-second-slash", other="starts-with-slash")
    if "/" in prefixes and "no-climb" in here.value(node.func.value).marks:
        settle(here, node.func.value, kinds={"path"})  # neither upwards nor from the root


def _names_whole_hosts(here: Point, node: ast.expr, *, prefix: Value) -> bool:
    """Whether every prefix goes on past its host: nothing of the client's can lengthen the name."""
    if isinstance(prefix.constant, str):
        return bool(_WHOLE_HOST.match(prefix.constant))
    if prefix.items:
        return all(bool(_WHOLE_HOST.match(str(item.constant))) for item in prefix.items.values())
    match node:
        case ast.JoinedStr(values=[ast.Constant(value=str(first)), *_, ast.Constant(value=str(last))]):
            fixed = not here.value(node).everything()
            return fixed and first.startswith(_SCHEMES) and last.startswith("/")
        case _:
            return False


def _both(here: Point, node: ast.expr, *, found: str, other: str) -> None:
    """Two tests that only together mean something: `/x` and not `//x`."""
    value = here.value(node)
    if other in value.marks:
        settle(here, node, kinds={"redirect"})
    else:
        here.scope.mark(place(node), value, mark=found)


def _ends_with_separator(node: ast.expr, prefix: Value) -> bool:
    if isinstance(prefix.constant, str):
        return prefix.constant.endswith(("/", "\\"))
    match node:
        case (
            ast.BinOp(op=ast.Add(), right=ast.Constant(value="/" | "\\"))
            | ast.BinOp(op=ast.Add(), right=ast.Attribute(attr="sep"))
        ):
            return True
        case ast.JoinedStr(values=[*_, ast.Constant(value=str(text))]):
            return text.endswith("/")
        case ast.JoinedStr(values=[*_, ast.FormattedValue(value=ast.Attribute(attr="sep"))]):
            return True
        case ast.Call(func=ast.Attribute(attr="join"), args=[_, ast.Constant(value="")]):
            return True
        case _:
            return False
