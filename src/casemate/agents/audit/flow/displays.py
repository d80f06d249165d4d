"""Values that are written out: lists, dictionaries, comprehensions, lambdas."""

from __future__ import annotations

import ast
from dataclasses import replace

from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.scope import Scope
from casemate.agents.audit.facts.summary import Function
from casemate.agents.audit.facts.values import NOTHING, Origin, Parameter, Source, Value, from_origin, of_elements, slim
from casemate.agents.audit.flow.sequences import exact, listed, united

_LITERAL = frozenset({"literal"})
_MAX_LITERAL = 128


def sequence(here: Point, node: ast.List | ast.Tuple | ast.Set) -> Value:
    """A list, tuple or set with its members by position."""
    result = Value(items={}, marks=_LITERAL if len(node.elts) <= _MAX_LITERAL else frozenset())
    for element in node.elts:
        value = here.value(element.value if isinstance(element, ast.Starred) else element)
        whole = exact(result)
        if not isinstance(element, ast.Starred):
            result = result.put(len(result.items or {}), value) if whole else result.put_somewhere(NOTHING, value)
        elif whole and exact(value):
            for item in listed(value):
                result = result.put(len(result.items or {}), item)
        else:
            result = result.put_somewhere(NOTHING, value.element())
    return result


def mapping(here: Point, node: ast.Dict) -> Value:
    """A dictionary with its members by constant key."""
    result = Value(items={}, marks=_LITERAL if len(node.keys) <= _MAX_LITERAL else frozenset())
    for key, element in zip(node.keys, node.values, strict=True):
        value = here.value(element)
        if key is None:
            result = united(result, value)
            continue
        named = here.value(key)
        if isinstance(named.constant, str | int | bytes | float | None):
            result = result.put(named.constant, value)
        else:
            result = result.put_somewhere(named, value)
    return result


def comprehension(here: Point, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
    """Members of a comprehension under its conditions; it is a container of unknown keys."""
    reader = here.reader
    inner = reader.iterated(node.generators, here.scope)
    if isinstance(node, ast.DictComp):
        chosen = reader.value(node.value, inner).clear({"mass"})  # a name that may be set is a key
        return of_elements(chosen, reader.value(node.key, inner))
    made = reader.value(node.elt, inner)
    return replace(of_elements(made), marks=made.marks & {"built"})


def function(here: Point, node: ast.Lambda) -> Value:
    """A lambda is a function that is called later."""
    name = f"{here.scope.frame.name}.<lambda:{node.lineno}:{node.col_offset}>"
    spec = node.args
    parameters = tuple(a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs))
    names = (*parameters, *(a.arg for a in (spec.vararg, spec.kwarg) if a is not None))
    inner = Scope(replace(here.scope.frame, name=name, returns=[], exits=[]), dict(here.scope.values))
    for parameter in names:
        inner.bind(parameter, from_origin(Parameter(name, parameter)))
    given = here.reader.value(node.body, inner)
    here.record.functions[name] = Function(
        name,
        parameters,
        returns=slim(given, here.record.may_be_ours),
        variadic=spec.vararg.arg if spec.vararg else "",
        keywords=spec.kwarg.arg if spec.kwarg else "",
    )
    kept: dict[Origin, frozenset[str]] = {o: c for o, c in given.everything().items() if isinstance(o, Source)}
    return Value(taints=kept, name=name)
