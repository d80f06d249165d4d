"""What an expression stands for where the walk over values does not know: by tables, defaults, attributes, callers.

Looks backwards over the syntax of one file, for questions whose answer decides a check. An answer is a value that the
source itself writes down; what else may come in is not answered.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping

from casemate.agents.audit.checks.making import called, comprehended, keywords
from casemate.agents.audit.checks.passing import (
    Function,
    Where,
    default,
    given,
    is_added,
    is_number,
    member,
    only,
    parameters,
    united,
    with_number,
)
from casemate.agents.audit.facts.definitions import Binding, key_of, name_of, own_expressions
from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.values import Unknown, Value

_MAX_STEPS = 400
_MAX_WAYS, _MAX_DEPTH = 6, 16


def meanings(record: Record, node: ast.expr) -> tuple[Value, ...]:
    """The values that an expression may stand for; empty where that is not written in this file."""
    function = record.definitions.around(getattr(node, "lineno", 0))
    return _Reader(record).of(node, Where(function))


class _Reader:
    def __init__(self, record: Record) -> None:
        self._record = record
        self._steps = 0
        self._asked: list[int] = []

    @property
    def record(self) -> Record:
        return self._record

    def of(self, node: ast.expr, where: Where) -> tuple[Value, ...]:
        self._steps += 1
        read = _READERS.get(type(node))
        if read is None or self._steps > _MAX_STEPS or len(self._asked) > _MAX_DEPTH or id(node) in self._asked:
            return ()
        self._asked.append(id(node))
        found = tuple(itertools.islice(read(self, node, where), _MAX_WAYS))
        self._asked.pop()
        return found

    def name(self, node: ast.Name, where: Where) -> Iterator[Value]:
        if node.id in where.known:
            yield from where.known[node.id]
            return
        bindings = self._record.definitions.bindings.get(node.id, [])
        here = [b for b in bindings if b.function is where.function] or [b for b in bindings if b.function is None]
        if here:
            yield from self._bound(here, where, place=node.id)
        elif where.function is not None and node.id in parameters(where.function):
            yield from self._passed(node.id, where.function)
        elif node.id in self._record.names:
            yield Value(name=self._record.names[node.id])
        elif not bindings:
            ours = any(known.name == node.id for known in self._record.definitions.classes)
            yield Value(name=f"{self._record.name}.{node.id}" if ours else node.id)

    def _bound(self, bindings: list[Binding], where: Where, *, place: str) -> Iterator[Value]:
        added = [(b.value.args[0], b.function) for b in bindings if isinstance(b.value, ast.Call) and is_added(b.value)]
        plain = [b for b in bindings if not is_added(b.value)]
        found = [v for b in plain for v in self.of(b.value, Where(b.function, where.known))]
        if added:
            more = [v for node, function in added for v in self.of(node, Where(function, where.known))]
            found = [united([*found, *more])]
        for value in found:
            yield self._updated(value, Where(bindings[0].function, where.known), place=place)

    def _updated(self, value: Value, where: Where, *, place: str) -> Value:
        """A dictionary after the `.update(…)` calls of the same function."""
        if value.items is None:
            return value
        items = dict(value.items)
        for line, inside in self._record.definitions.callers.get("update", []):
            call = line.value if isinstance(line, ast.Expr) else None
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            if key_of(call.func.value) == place and (inside is where.function or place.startswith(".")):
                layers = [layer for argument in call.args for layer in self.of(argument, Where(inside, where.known))]
                items |= keywords(self, call, where=Where(inside, where.known))
                items |= {key: item for layer in layers for key, item in (layer.items or {}).items()}
        return Value(items=items)

    def _passed(self, name: str, function: Function) -> Iterator[Value]:
        """What the callers in this file pass; where one passes nothing, the default."""
        definitions = self._record.definitions
        holder = definitions.class_around(function.lineno)
        called = holder.name if function.name == "__init__" and holder is not None else function.name
        calls = [
            (call, inside)
            for line, inside in definitions.callers.get(called, [])[:_MAX_WAYS]
            for expression in own_expressions(line)
            for call in ast.walk(expression)
            if isinstance(call, ast.Call) and name_of(call.func) == called and not self._is_of_library(call.func)
        ]
        otherwise = default(name, function)
        for call, inside in calls:
            passed = given(name, function, call=call)
            if passed is not None:
                yield from self.of(passed, Where(inside))
            elif otherwise is not None:
                yield from self.of(otherwise, Where(None))
        if not calls and otherwise is not None:
            yield from self.of(otherwise, Where(None))

    def _is_of_library(self, node: ast.expr) -> bool:
        return (
            isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self._record.names
        )

    def attribute(self, node: ast.Attribute, where: Where) -> Iterator[Value]:
        root = node.value
        imported = isinstance(root, ast.Name) and root.id in self._record.names and root.id not in where.known
        bindings = self._record.definitions.bindings.get(f".{node.attr}", [])
        if bindings and not imported:
            yield from self._bound(bindings, where, place=f".{node.attr}")
            return
        for base in self.of(root, where):
            if base.name:
                yield with_number(f"{base.name}.{node.attr}")

    def subscript(self, node: ast.Subscript, where: Where) -> Iterator[Value]:
        if isinstance(node.slice, ast.Slice):
            return
        each = isinstance(node.slice, ast.Name) and not hasattr(node.slice, "lineno")  # what a loop takes
        keys = self.of(node.slice, where)
        for base in self.of(node.value, where):
            for key in keys if not each else ():
                yield from member(base, key.constant)
            if each or not any(not isinstance(key.constant, Unknown) for key in keys):
                yield from (base.items or {}).values()

    def mapping(self, node: ast.Dict, where: Where) -> Iterator[Value]:
        items: dict[Hashable, Value] = {}
        for key, element in zip(node.keys, node.values, strict=True):
            found = self.of(element, where)
            if key is None:
                for spread in found[:1]:
                    items |= spread.items or {}
            elif isinstance(key, ast.Constant):
                items[key.value] = only(found)
            elif isinstance(key, ast.Attribute | ast.Name):
                items[name_of(key)] = only(found)
        yield Value(items=items)

    def sequence(self, node: ast.List | ast.Tuple, where: Where) -> Iterator[Value]:
        found = [self.of(element, where) for element in node.elts[:64]]
        yield Value(items={index: only(ways) for index, ways in enumerate(found)})

    def binary(self, node: ast.BinOp, where: Where) -> Iterator[Value]:
        for left in self.of(node.left, where):
            for right in self.of(node.right, where):
                if left.items is not None and right.items is not None:
                    yield Value(items={**left.items, **right.items})
                elif isinstance(left.constant, str) and isinstance(right.constant, str):
                    yield Value(constant=left.constant + right.constant)
                elif isinstance(node.op, ast.BitOr) and is_number(left) and is_number(right):
                    yield united([left, right])

    def signed(self, node: ast.UnaryOp, where: Where) -> Iterator[Value]:
        for value in self.of(node.operand, where) if isinstance(node.op, ast.USub) else ():
            if isinstance(value.constant, int):
                yield Value(constant=-value.constant)

    def choice(self, node: ast.IfExp, where: Where) -> Iterator[Value]:
        yield from self.of(node.body, where)
        yield from self.of(node.orelse, where)

    def either(self, node: ast.BoolOp, where: Where) -> Iterator[Value]:
        if isinstance(node.op, ast.Or):
            yield from self.of(node.values[-1], where)

    def comparison(self, node: ast.Compare, where: Where) -> Iterator[Value]:
        if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq | ast.NotEq):
            return
        for left in self.of(node.left, where):
            for right in self.of(node.comparators[0], where):
                if not isinstance(left.constant, Unknown) and not isinstance(right.constant, Unknown):
                    yield Value(constant=(left.constant == right.constant) == isinstance(node.ops[0], ast.Eq))

    def text(self, node: ast.JoinedStr, where: Where) -> Iterator[Value]:
        parts = [self.of(part.value if isinstance(part, ast.FormattedValue) else part, where) for part in node.values]
        if all(len(ways) == 1 and isinstance(ways[0].constant, str | int) for ways in parts):
            yield Value(constant="".join(str(ways[0].constant) for ways in parts))


_COMPREHENSIONS = (ast.DictComp, ast.ListComp, ast.SetComp, ast.GeneratorExp)
_READERS: Mapping[type[ast.expr], Callable[..., Iterator[Value]]] = {
    ast.Constant: lambda _self, node, _where: iter((Value(constant=node.value),)),
    ast.Name: _Reader.name,
    ast.Attribute: _Reader.attribute,
    ast.Subscript: _Reader.subscript,
    ast.Dict: _Reader.mapping,
    ast.JoinedStr: _Reader.text,
    ast.List: _Reader.sequence,
    ast.Tuple: _Reader.sequence,
    ast.BinOp: _Reader.binary,
    ast.UnaryOp: _Reader.signed,
    ast.IfExp: _Reader.choice,
    ast.BoolOp: _Reader.either,
    ast.Compare: _Reader.comparison,
    ast.Call: lambda self, node, where: called(self, node, where=where),
    **dict.fromkeys(_COMPREHENSIONS, lambda self, node, where: comprehended(self, node, where=where)),
}
