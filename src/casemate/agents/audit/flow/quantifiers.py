"""What a test of every member shows of the whole: loops that let none through, `all(…)`, `any(…)`."""

from __future__ import annotations

import ast

from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.scope import Scope
from casemate.agents.audit.facts.syntax import place, walk
from casemate.agents.audit.facts.values import Value

_Kinds = frozenset[str]


def every_one(here: Point, node: ast.For | ast.AsyncFor | ast.While, *, after: Scope) -> None:
    """A loop that goes on only past harmless members shows that all of what it walks over is harmless."""
    if isinstance(node, ast.While) or not isinstance(node.target, ast.Name) or not after.alive:
        return
    end = after.values.get(node.target.id)
    whole = here.value(node.iter)
    if end is None or not whole.everything():
        return
    kinds = _more(whole.element(), end)
    left_early = kinds and any(isinstance(inner, ast.Break) for inner in walk(node))
    if kinds and not left_early and (where := place(node.iter)):
        here.scope.clear(where, here.value(node.iter), kinds=kinds)


def quantified(here: Point, node: ast.GeneratorExp | ast.ListComp, *, inner: Scope) -> None:
    """`all(test for x in xs)` and `not any(…)`; `inner` is what is known where the test came out so."""
    generator = node.generators[0]
    if generator.ifs or not isinstance(generator.target, ast.Name):
        return
    end = inner.values.get(generator.target.id)
    whole = here.value(generator.iter)
    kinds = _more(whole.element(), end) if end is not None else frozenset[str]()
    if kinds and (where := place(generator.iter)):
        here.scope.clear(where, whole, kinds=kinds)


def _more(before: Value, after: Value) -> _Kinds:
    """Kinds for which a member was made harmless on every way."""
    old, new = before.everything(), after.everything()
    if not new or old.keys() != new.keys():
        return frozenset()
    return frozenset.intersection(*(new[origin] - old[origin] for origin in new))
