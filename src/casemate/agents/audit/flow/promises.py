"""What calling a function means to its callers: what it returns and changes, and what a return shows."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from casemate.agents.audit.facts.origins import Parameter
from casemate.agents.audit.facts.point import Point, Reader
from casemate.agents.audit.facts.scope import Frame, Scope
from casemate.agents.audit.facts.summary import Function
from casemate.agents.audit.facts.values import NOTHING, Value, join, of_elements, slim
from casemate.agents.audit.flow import guards

_Kinds = frozenset[str]


@dataclass(frozen=True, slots=True)
class Entry:
    """A function that was walked: its frame with every way out, what its parameters were at the start."""

    frame: Frame
    node: ast.FunctionDef | ast.AsyncFunctionDef
    values: Mapping[str, Value]
    method: bool = False
    computed: bool = False


def promise(reader: Reader, entry: Entry) -> Function:
    """The summary of a function."""
    frame, spec, record = entry.frame, entry.node.args, reader.record
    initial = frame.name == f"{frame.owner}.__init__"
    own = {name: value for (owner, name), value in record.initial.items() if owner == frame.owner} if initial else {}
    return Function(
        name=frame.name,
        parameters=frame.parameters,
        returns=slim(_given(frame), record.may_be_ours),
        guards=_guards(reader, frame, values=entry.values),
        ensures=_ensures(frame, entry.values),
        method=entry.method,
        variadic=spec.vararg.arg if spec.vararg else "",
        keywords=spec.kwarg.arg if spec.kwarg else "",
        changes=_changes(reader, entry),
        instance=own,
        abstract=_is_abstract(entry.node),
        computed=entry.computed,
    )


def _given(frame: Frame) -> Value:
    """What a call gives; a generator is a container of what it yields."""
    if frame.yields:
        return of_elements(_any(frame.yields))
    return _any(frame.returns)


def _any(values: list[Value]) -> Value:
    result = values[0] if values else NOTHING
    for value in values[1:]:
        result = join(result, value)
    return result


def _changes(reader: Reader, entry: Entry) -> Mapping[str, Value]:
    """What was put into arguments: they end as what they were, with more in them."""
    changes: dict[str, Value] = {}
    for name in entry.values:
        own = Parameter(entry.frame.name, name)
        ends = [scope.values.get(name, NOTHING) for _, scope in entry.frame.exits]
        more = _any([_without(end, own) for end in ends if end.items and (own in end.taints or not end.taints)])
        if more.everything():
            changes[name] = slim(more, reader.record.may_be_ours)
    return changes


def _without(value: Value, origin: Parameter) -> Value:
    return Value(taints={o: cleared for o, cleared in value.taints.items() if o != origin}, items=value.items)


def _is_abstract(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a body does nothing, or says that it is for others to do."""
    for statement in node.body:
        match statement:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                continue
            case ast.Raise(exc=ast.Name(id="NotImplementedError") | ast.Call(func=ast.Name(id="NotImplementedError"))):
                continue
            case _:
                return False
    return True


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
