"""Values of expressions: names, members, string building, conditions. Calls are in `calls`."""

from __future__ import annotations

import ast
import builtins
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from casemate.agents.audit.checks import weak
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.scope import Scope
from casemate.agents.audit.facts.syntax import place
from casemate.agents.audit.facts.values import (
    NOTHING,
    UNKNOWN,
    Attribute,
    Unknown,
    Value,
    from_origin,
    gather,
    join,
    merge,
)
from casemate.agents.audit.flow import calls, effects, guards
from casemate.agents.audit.flow.binding import bind, element_of
from casemate.agents.audit.flow.strings import combine, folded, rooted
from casemate.agents.audit.vocabulary.lexicon import HANDLER_DATA, HOST_PARTS, REQUEST_DATA, SOURCES

_BUILT_IN = frozenset(dir(builtins)) | {"request", "session", "self", "cls"}
_NUMERIC = re.compile(r"[,_]?\.?\d*[bcdeEfFgGnoxX%]$")
_COMPARISON: Mapping[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class Evaluator:
    """Evaluates expressions of one file and notes what it sees in the Record."""

    def __init__(self, record: Record) -> None:
        self.record = record

    def value(self, node: ast.expr | None, scope: Scope) -> Value:
        """The abstract value of an expression; names that it binds are bound in `scope`."""
        if node is None:
            return NOTHING
        method = _EVALUATE.get(type(node))
        return method(self, node, scope) if method else NOTHING

    def name(self, node: ast.Name, scope: Scope) -> Value:
        """A local or global value, an imported name, or a built-in."""
        known = scope.values.get(node.id)
        if known is not None:
            return known
        record = self.record
        if (
            record.snippet
            and node.id.islower()
            and not (node.id in record.names or node.id in _BUILT_IN | record.assigned)
        ):
            unknown = record.untrusted(node.id, node, kind="parameter", note=f"from outside the snippet: {node.id}")
            return replace(unknown, name=node.id)
        return Value(name=record.names.get(node.id, node.id))

    def attribute(self, node: ast.Attribute, scope: Scope) -> Value:
        """A member: request data, what methods of the class stored, or part of the whole."""
        known = scope.values.get(place(node))
        if known is not None:
            return known
        return self.member(node, scope, base=self.value(node.value, scope))

    def member(self, node: ast.Attribute, scope: Scope, *, base: Value) -> Value:
        """The member of a value that is already known."""
        name = f"{base.name}.{node.attr}"
        if node.attr in REQUEST_DATA and effects.is_request(base.name):
            return effects.request_data(self.record, name, node=node)
        if name in SOURCES:
            return self.record.untrusted(name, node, kind=SOURCES[name])
        if base.name and base.name == f"{scope.frame.owner}()":
            return self._of_self(node, scope)
        marks = frozenset[str]()
        if "url" in base.marks and node.attr in HOST_PARTS:
            marks = frozenset({"host"})
        if node.attr in {"suffix", "content_type", "mimetype"}:
            marks = frozenset({"extension"})
        taints = base.everything()
        if node.attr == "name" and "pathlib" in base.name:
            return Value(taints=taints, name=name).clear({"path"})
        return Value(taints=taints, name=name, marks=marks | (base.marks & {"json", "built", "normal"}))

    def _of_self(self, node: ast.Attribute, scope: Scope) -> Value:
        owner = scope.frame.owner
        if node.attr in HANDLER_DATA and any("HTTPRequestHandler" in base for base in self.record.bases.get(owner, ())):
            return self.record.untrusted(f"self.{node.attr}", node, note=f"client's {node.attr}")
        if node.attr == "request":
            return Value(name="web.request")
        stored = self.record.attribute_names.get((owner, node.attr), f"{owner}().{node.attr}")
        return from_origin(Attribute(owner, node.attr), stored)

    def subscript(self, node: ast.Subscript, scope: Scope) -> Value:
        """A member by key; the key itself never gets into the value."""
        known = scope.values.get(place(node))
        if known is not None:
            return known
        base = self.value(node.value, scope)
        if isinstance(node.slice, ast.Slice):
            return replace(base, constant=UNKNOWN, items=None, taints=base.everything())
        key = self.value(node.slice, scope).constant
        if isinstance(base.constant, str) and isinstance(key, int):
            return Value(constant=base.constant[key]) if -len(base.constant) <= key < len(base.constant) else NOTHING
        keyed = effects.keyed(self.record, base, key=key, node=node)
        if keyed is not None:
            return keyed
        found = base.take(key)
        marks = found.marks | (base.marks & {"json", "extension", "built"})
        return replace(found, name=found.name or (f"{base.name}[]" if base.name else ""), marks=marks)

    def binary(self, node: ast.BinOp, scope: Scope) -> Value:
        """Arithmetic and string building; long chains are walked without recursion."""
        operands: list[tuple[ast.operator, ast.expr]] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp):
            operands.append((left.op, left.right))
            left = left.left
        result = self.value(left, scope)
        for op, right in reversed(operands):
            result = combine(result, self.value(right, scope), op=op)
        return result

    def text(self, node: ast.JoinedStr, scope: Scope) -> Value:
        """A formatted string; `!r` and numeric formats make their part harmless for some sinks."""
        parts = [self.value(part, scope) for part in node.values]
        texts = [part.constant for part in parts]
        if all(isinstance(text, str | int) for text in texts) and parts:
            return Value(constant="".join(map(str, texts)), marks=frozenset({"built"}))
        prefix = texts[0] if texts and isinstance(texts[0], str) else ""
        return rooted(gather(*parts).marked("built"), prefix)

    def formatted(self, node: ast.FormattedValue, scope: Scope) -> Value:
        """One replacement field of a formatted string."""
        value = self.value(node.value, scope)
        if node.conversion in {ord("r"), ord("a")}:
            value = value.clear({"log", "header"})
        match node.format_spec:
            case ast.JoinedStr(values=[ast.Constant(value=str(spec))]) if _NUMERIC.search(spec):
                return NOTHING
        return value

    def condition(self, node: ast.BoolOp, scope: Scope) -> Value:
        """`and` and `or`: each operand is evaluated under what the ones before it have shown."""
        inner = scope.copy()
        values: list[Value] = []
        for operand in node.values:
            values.append(self.value(operand, inner))
            guards.refine(Point(self, inner), operand, outcome=isinstance(node.op, ast.And))
        constants = [value.constant for value in values]
        if not any(isinstance(constant, Unknown) for constant in constants):
            pick = all if isinstance(node.op, ast.And) else any
            return Value(constant=pick(constants)) if all(isinstance(c, bool) for c in constants) else values[-1]
        result = values[0]
        for value in values[1:]:
            result = join(result, value)
        return result

    def choice(self, node: ast.IfExp, scope: Scope) -> Value:
        """`a if test else b`; a constant test leaves one of them."""
        test = self.value(node.test, scope)
        yes, no = scope.copy(), scope.copy()
        guards.refine(Point(self, yes), node.test, outcome=True)
        guards.refine(Point(self, no), node.test, outcome=False)
        if not isinstance(test.constant, Unknown):
            return self.value(node.body if test.constant else node.orelse, yes if test.constant else no)
        return join(self.value(node.body, yes), self.value(node.orelse, no))

    def compare(self, node: ast.Compare, scope: Scope) -> Value:
        """A comparison carries no data; two constants decide it."""
        left = self.value(node.left, scope)
        others = [self.value(other, scope) for other in node.comparators]
        weak.comparison(self.record, node, values=[left, *others])
        if len(others) == 1 and (compare := _COMPARISON.get(type(node.ops[0]))):
            return Value(constant=folded(left.constant, others[0].constant, by=compare))
        return NOTHING

    def unary(self, node: ast.UnaryOp, scope: Scope) -> Value:
        """`not` and signs."""
        value = self.value(node.operand, scope)
        if isinstance(value.constant, Unknown):
            return NOTHING if isinstance(node.op, ast.Not) else Value(taints=value.taints)
        if isinstance(node.op, ast.Not):
            return Value(constant=not value.constant)
        if isinstance(node.op, ast.USub) and isinstance(value.constant, int | float):
            return Value(constant=-value.constant)
        return NOTHING

    def sequence(self, node: ast.List | ast.Tuple | ast.Set, scope: Scope) -> Value:
        """A list, tuple or set with its members by position."""
        items: dict[object, Value] = {}
        rest = NOTHING
        for index, element in enumerate(node.elts):
            value = self.value(element, scope)
            if isinstance(element, ast.Starred) or len(items) >= 64:
                rest = gather(rest, value)
            else:
                items[index] = value
        return Value(taints=rest.taints, items=items)

    def mapping(self, node: ast.Dict, scope: Scope) -> Value:
        """A dictionary with its members by constant key."""
        result = Value(items={})
        for key, element in zip(node.keys, node.values, strict=True):
            value = self.value(element, scope)
            constant = self.value(key, scope).constant if key is not None else UNKNOWN
            if key is None:
                result = replace(
                    result,
                    taints=merge(result.taints, value.taints),
                    items={**(result.items or {}), **(value.items or {})},
                )
            elif isinstance(constant, str | int | bytes | bool | float | None):
                result = result.put(constant, value)
            else:
                result = replace(result, taints=merge(result.taints, value.everything(), self.value(key, scope).taints))
        return result

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scope: Scope) -> Value:
        """Members of a comprehension under its conditions; it is a container of unknown keys."""
        inner = scope.copy()
        for generator in node.generators:
            bind(generator.target, element_of(self.value(generator.iter, inner)), scope=inner)
            for test in generator.ifs:
                self.value(test, inner)
                guards.refine(Point(self, inner), test, outcome=True)
        if isinstance(node, ast.DictComp):
            key = self.value(node.key, inner)
            return Value(taints=merge(key.everything(), self.value(node.value, inner).everything()))
        made = self.value(node.elt, inner)
        return Value(taints=made.everything(), marks=made.marks & {"built"})

    def function(self, node: ast.Lambda, scope: Scope) -> Value:
        """A lambda stands for what it would return."""
        inner = scope.copy()
        for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
            inner.bind(argument.arg, NOTHING)
        return Value(taints=self.value(node.body, inner).everything())

    def walrus(self, node: ast.NamedExpr, scope: Scope) -> Value:
        """`name := value`."""
        value = self.value(node.value, scope)
        bind(node.target, value, scope=scope)
        return value

    def inner(self, node: ast.Await | ast.Starred, scope: Scope) -> Value:
        """What is awaited or unpacked."""
        value = self.value(node.value, scope)
        return value if isinstance(node, ast.Await) else element_of(value)

    def given(self, node: ast.Yield | ast.YieldFrom, scope: Scope) -> Value:
        """A generator returns what it yields."""
        scope.frame.returns.append(self.value(node.value, scope))
        return NOTHING


_EVALUATE: Mapping[type[ast.expr], Callable[..., Value]] = {
    ast.Constant: lambda _self, node, _scope: Value(constant=node.value),
    ast.Name: Evaluator.name,
    ast.Attribute: Evaluator.attribute,
    ast.Subscript: Evaluator.subscript,
    ast.Call: lambda self, node, scope: calls.call(Point(self, scope), node),
    ast.BinOp: Evaluator.binary,
    ast.JoinedStr: Evaluator.text,
    ast.FormattedValue: Evaluator.formatted,
    ast.BoolOp: Evaluator.condition,
    ast.IfExp: Evaluator.choice,
    ast.Compare: Evaluator.compare,
    ast.UnaryOp: Evaluator.unary,
    ast.List: Evaluator.sequence,
    ast.Tuple: Evaluator.sequence,
    ast.Set: Evaluator.sequence,
    ast.Dict: Evaluator.mapping,
    ast.ListComp: Evaluator.comprehension,
    ast.SetComp: Evaluator.comprehension,
    ast.GeneratorExp: Evaluator.comprehension,
    ast.DictComp: Evaluator.comprehension,
    ast.Lambda: Evaluator.function,
    ast.NamedExpr: Evaluator.walrus,
    ast.Await: Evaluator.inner,
    ast.Starred: Evaluator.inner,
    ast.Yield: Evaluator.given,
    ast.YieldFrom: Evaluator.given,
}
