"""What calling a function means to its callers: what it returns, and what a return shows about its arguments."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from casemate.agents.audit.facts.point import Point, Reader
from casemate.agents.audit.facts.scope import Frame, Scope
from casemate.agents.audit.facts.summary import Function
from casemate.agents.audit.facts.values import NOTHING, Value, gather
from casemate.agents.audit.flow import guards

_Kinds = frozenset[str]


def promise(reader: Reader, frame: Frame, *, values: Mapping[str, Value], method: bool) -> Function:
    """The summary of a function that was walked.

    Args:
        reader: who reads expressions.
        frame: the function, with every value that it returns and every scope in which it ends.
        values: what its parameters were at the start.
        method: whether its first parameter is the instance.
    """
    names = {value.name for value in frame.returns if value.name}
    return Function(
        name=frame.name,
        parameters=frame.parameters,
        returns=gather(*frame.returns).taints if frame.returns else NOTHING.taints,
        returned=names.pop() if len(names) == 1 else "",
        guards=_guards(reader, frame, values=values),
        ensures=_ensures(frame, values),
        method=method,
    )


def _guards(reader: Reader, frame: Frame, *, values: Mapping[str, Value]) -> Mapping[str, _Kinds]:
    """What a true result shows: every `return` that can be true must show it."""
    found: dict[str, _Kinds] | None = None
    for node, end in frame.exits:
        if node is None or (isinstance(node, ast.Constant) and not node.value):
            continue
        scope = end.copy()
        guards.refine(Point(reader, scope), node, outcome=True)
        shown = _shown(scope, values)
        found = shown if found is None else {name: found[name] & shown[name] for name in found.keys() & shown.keys()}
    return {name: kinds for name, kinds in (found or {}).items() if kinds}


def _ensures(frame: Frame, values: Mapping[str, Value]) -> Mapping[str, _Kinds]:
    exits = [_shown(scope, values) for _, scope in frame.exits]
    names = set(values).intersection(*exits) if exits else set()
    ensured = {name: _Kinds.intersection(*(shown[name] for shown in exits)) for name in names}
    return {name: kinds for name, kinds in ensured.items() if kinds}


def _shown(scope: Scope, values: Mapping[str, Value]) -> dict[str, _Kinds]:
    shown: dict[str, _Kinds] = {}
    for name, value in values.items():
        now = scope.values.get(name)
        if now is not None and value.taints and now.taints.keys() == value.taints.keys():
            shown[name] = _Kinds.intersection(*now.taints.values())
    return shown
