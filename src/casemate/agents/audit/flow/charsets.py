"""Tests of a text as characters: of a kind, of a fixed set, none that a pattern names, not too many."""

from __future__ import annotations

import ast

from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.values import Value
from casemate.agents.audit.flow.folding import constant
from casemate.agents.audit.flow.prefixes import settle
from casemate.agents.audit.sinks.cleaning import lacking, without

SAME_TEXT = frozenset({"lower", "upper", "strip", "casefold", "lstrip", "rstrip"})
"""Methods whose result is one of a fixed set only if the text is, letters' case and blanks apart."""


def whole_text(here: Point, tested: ast.expr, *, kinds: frozenset[str]) -> None:
    """`x.isalnum()`, also of `x` without some harmless characters (`x.replace("-", "")`)."""
    left_out = ""
    while isinstance(tested, ast.Call) and isinstance(tested.func, ast.Attribute):
        args = [here.value(arg).constant for arg in tested.args]
        if tested.func.attr == "replace" and len(args) == 2 and isinstance(args[0], str):
            left_out += args[0]
        elif tested.func.attr not in SAME_TEXT:
            break
        tested = tested.func.value
    settle(here, tested, kinds=lacking(left_out) & kinds if left_out else kinds)


def none_of(here: Point, node: ast.Call) -> None:
    """`re.search("[^a-z]", x)` that finds nothing."""
    owner = here.value(node.func.value) if isinstance(node.func, ast.Attribute) else Value()
    by_module = owner.name == "re" and len(node.args) >= 2
    pattern = here.value(node.args[0]).constant if by_module and node.args else owner.constant
    if isinstance(pattern, str) and node.args:
        settle(here, node.args[1 if by_module else 0], kinds=without(pattern, ""))


def subset(here: Point, part: ast.expr, *, whole: ast.expr) -> None:
    """`set(x) <= set("abc")`: text of these characters only."""
    if isinstance(part, ast.Call) and len(part.args) == 1 and here.value(part.func).name in {"set", "frozenset"}:
        allowed = _characters(here, whole)
        if allowed is not None:
            settle(here, part.args[0], kinds=lacking(allowed))


def _characters(here: Point, node: ast.expr) -> str | None:
    """The characters of a fixed text or set of characters; None where they are not known."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and here.value(node.func).name in {"set", "frozenset"}:
        node = node.args[0]
    value = here.value(node)
    known = constant(value)
    if isinstance(known, str):
        return known
    if isinstance(known, list) and known and all(isinstance(item, str) for item in known):
        return "".join(known)
    return None


def bounds(here: Point, test: ast.Compare, *, outcome: bool) -> None:
    """`n <= LIMIT`, `len(text) < LIMIT`, `0 < n < LIMIT`: what was measured is not beyond a limit."""
    sides = [test.left, *test.comparators]
    for left, operator, right in zip(sides, test.ops, sides[1:], strict=False):
        if isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
            small, large = (left, right) if isinstance(operator, ast.Lt | ast.LtE) == outcome else (right, left)
            if not here.value(large).everything():
                _bounded(here, small)
            if outcome and isinstance(operator, ast.LtE | ast.GtE):
                subset(here, small, whole=large)


def _bounded(here: Point, node: ast.expr) -> None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and node.args:
        settle(here, node.args[0], kinds={"long"})
    else:
        settle(here, node, kinds={"amount"})
