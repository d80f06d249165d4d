"""Values of expressions: names, members, string building, conditions. Calls are in `calls`."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping
from dataclasses import replace

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
    join,
)
from casemate.agents.audit.flow import calls, displays, effects, guards, handlers
from casemate.agents.audit.flow.binding import bind
from casemate.agents.audit.flow.folding import NAMED, compared, truth
from casemate.agents.audit.flow.sequences import sliced
from casemate.agents.audit.flow.strings import NUMERIC, combine, interpolated
from casemate.agents.audit.vocabulary.frameworks import client_data
from casemate.agents.audit.vocabulary.lexicon import HOST_PARTS

_BUILT_IN = frozenset(dir(builtins)) | {"request", "session", "self", "cls"}


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
            owner = scope.frame.outside.get(node.id)
            return known if owner is None else join(known, from_origin(Attribute(owner, node.id)))
        record = self.record
        if node.id == "super" and scope.frame.owner:
            return Value(name="super")
        if (
            record.snippet
            and node.id.islower()
            and not (node.id in record.names or node.id in _BUILT_IN | record.assigned)
        ):
            unknown = record.untrusted(node.id, node, kind="parameter", note=f"from outside the snippet: {node.id}")
            return replace(unknown, name=node.id)
        name = record.names.get(node.id)
        if name is None:
            if not record.stars or node.id in _BUILT_IN | record.assigned:
                return Value(name=node.id)
            return Value(name=f"{min(record.stars) if len(record.stars) == 1 else record.name}.{node.id}")
        return self._imported(name)

    def _imported(self, name: str) -> Value:
        """A global of another module, of which only the whole project tells what is in it."""
        owner, _, last = name.rpartition(".")
        if name in NAMED:
            return Value(name=name, constant=NAMED[name])
        if not self.record.may_be_ours(name) or (last[:1].isupper() and not last.isupper()):
            return Value(name=name)
        return Value(taints={Attribute(owner, last): frozenset()}, name=name)

    def attribute(self, node: ast.Attribute, scope: Scope) -> Value:
        """A member: request data, what methods of the class stored, or part of the whole."""
        known = scope.values.get(place(node))
        if known is not None:
            return known
        return self.member(node, scope, base=self.value(node.value, scope))

    def member(self, node: ast.Attribute, scope: Scope, *, base: Value) -> Value:
        """The member of a value that is already known."""
        name = f"{base.name}.{node.attr}"
        outside = effects.read(self.record, base.name, node=node)
        known = outside if outside is not None else self._named(node, scope, base=base)
        if known is not None:
            return known
        marks = frozenset[str]()
        if "url" in base.marks and node.attr in HOST_PARTS:
            marks = frozenset({"host"})
        if node.attr == "suffix":
            marks = frozenset({"extension"})
        found = base.attribute(node.attr)
        if found.name or found.items is not None or not isinstance(found.constant, Unknown):
            return found if found.name else replace(found, name=name)
        taints = base.everything() if "url" in base.marks or "pathlib" in base.name else found.taints
        if node.attr == "name" and "pathlib" in base.name:
            return Value(taints=taints, name=name).clear({"path"})
        return Value(taints=taints, name=name, marks=marks | (base.marks & {"json", "built", "normal"}))

    def _named(self, node: ast.Attribute, scope: Scope, *, base: Value) -> Value | None:
        """A member of this object, of a class of this file, of a module; None for any other."""
        name = f"{base.name}.{node.attr}"
        if base.name and base.name == f"{scope.frame.owner}()":
            return self._of_self(node, scope)
        if name in NAMED:
            return Value(name=name, constant=NAMED[name])
        if base.name in self.record.bases and f".{node.attr}" not in (base.items or {}):
            return from_origin(Attribute(base.name, node.attr), name)
        return self._imported(name) if base.name in self.record.modules else None

    def _of_self(self, node: ast.Attribute, scope: Scope) -> Value:
        owner = scope.frame.owner
        if client_data(handlers.ancestry(self.record, owner), node.attr):
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
            short = {"long"} if isinstance(node.slice.upper, ast.Constant | ast.Name) else ()
            parts = [self.value(part, scope) for part in (node.slice.lower, node.slice.upper, node.slice.step)]
            return sliced(base, _slice([None if part is NOTHING else part.constant for part in parts])).clear(short)
        asked = self.value(node.slice, scope)
        key = asked.constant
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
            other = self.value(right, scope)
            if isinstance(op, ast.Mult):
                weak.repeated(self.record, node, left=result, right=other)
            result = combine(result, other, op=op)
        return result

    def text(self, node: ast.JoinedStr, scope: Scope) -> Value:
        """A formatted string; `!r` and numeric formats make their part harmless for some sinks."""
        parts = [self.value(part, scope) for part in node.values]
        return interpolated(parts)

    def formatted(self, node: ast.FormattedValue, scope: Scope) -> Value:
        """One replacement field of a formatted string."""
        value = self.value(node.value, scope)
        if node.conversion in {ord("r"), ord("a")}:
            value = value.clear({"log", "header"})
        match node.format_spec:
            case ast.JoinedStr(values=[ast.Constant(value=str(spec))]) if NUMERIC.search(spec):
                return NOTHING
        return value

    def condition(self, node: ast.BoolOp, scope: Scope) -> Value:
        """`and` and `or`: each operand is evaluated under what the ones before it have shown."""
        inner = scope
        values: list[Value] = []
        for index, operand in enumerate(node.values):
            value = self.value(operand, inner)
            inner = inner if index else scope.copy()  # the first operand is always evaluated, and what it binds stays
            holds = truth(value)
            guards.refine(Point(self, inner), operand, outcome=isinstance(node.op, ast.And))
            if holds is isinstance(node.op, ast.And) and operand is not node.values[-1]:
                continue  # it is never what comes out
            values.append(value)
            if holds is isinstance(node.op, ast.Or):
                break
        if isinstance(node.op, ast.And):
            return (
                join(Value(), values[-1]) if len(values) > 1 else values[0]
            )  # what is false and comes out holds nothing
        result = values[0]
        for value in values[1:]:
            result = join(result, value)
        return result

    def choice(self, node: ast.IfExp, scope: Scope) -> Value:
        """`a if test else b`; a constant test leaves one of them."""
        test = truth(self.value(node.test, scope))
        yes, no = scope.copy(), scope.copy()
        guards.refine(Point(self, yes), node.test, outcome=True)
        guards.refine(Point(self, no), node.test, outcome=False)
        if not isinstance(test, Unknown):
            return self.value(node.body if test else node.orelse, yes if test else no)
        return join(self.value(node.body, yes), self.value(node.orelse, no))

    def compare(self, node: ast.Compare, scope: Scope) -> Value:
        """A comparison carries no data; two constants decide it."""
        left = self.value(node.left, scope)
        others = [self.value(other, scope) for other in node.comparators]
        weak.comparison(self.record, node, values=[left, *others])
        return Value(constant=compared(node, [left, *others]))

    def unary(self, node: ast.UnaryOp, scope: Scope) -> Value:
        """`not` and signs."""
        value = self.value(node.operand, scope)
        if isinstance(node.op, ast.Not):
            holds = truth(value)
            return NOTHING if isinstance(holds, Unknown) else Value(constant=not holds)
        if isinstance(value.constant, Unknown):
            return Value(taints=value.taints)
        if isinstance(node.op, ast.USub) and isinstance(value.constant, int | float):
            return Value(constant=-value.constant)
        return NOTHING

    def iterated(self, generators: list[ast.comprehension], scope: Scope) -> Scope:
        """What is known inside a comprehension."""
        inner = scope.copy()
        for generator in generators:
            bind(Point(self, inner), generator.target, value=self.value(generator.iter, inner).element())
            for test in generator.ifs:
                self.value(test, inner)
                guards.refine(Point(self, inner), test, outcome=True)
        return inner

    def walrus(self, node: ast.NamedExpr, scope: Scope) -> Value:
        """`name := value`."""
        value = self.value(node.value, scope)
        bind(Point(self, scope), node.target, value=value)
        return value

    def inner(self, node: ast.Await | ast.Starred, scope: Scope) -> Value:
        """What is awaited or unpacked."""
        value = self.value(node.value, scope)
        return value if isinstance(node, ast.Await) else value.element()

    def given(self, node: ast.Yield | ast.YieldFrom, scope: Scope) -> Value:
        """A generator returns what it yields."""
        value = self.value(node.value, scope)
        scope.frame.yields.append(value.element() if isinstance(node, ast.YieldFrom) else value)
        return NOTHING


def _slice(parts: list[object]) -> slice | None:
    low, high, step = (part if part is None or isinstance(part, int) else UNKNOWN for part in parts)
    if isinstance(low, Unknown) or isinstance(high, Unknown) or isinstance(step, Unknown) or step == 0:
        return None
    return slice(low, high, step)


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
    ast.List: lambda self, node, scope: displays.sequence(Point(self, scope), node),
    ast.Tuple: lambda self, node, scope: displays.sequence(Point(self, scope), node),
    ast.Set: lambda self, node, scope: displays.sequence(Point(self, scope), node),
    ast.Dict: lambda self, node, scope: displays.mapping(Point(self, scope), node),
    ast.ListComp: lambda self, node, scope: displays.comprehension(Point(self, scope), node),
    ast.SetComp: lambda self, node, scope: displays.comprehension(Point(self, scope), node),
    ast.GeneratorExp: lambda self, node, scope: displays.comprehension(Point(self, scope), node),
    ast.DictComp: lambda self, node, scope: displays.comprehension(Point(self, scope), node),
    ast.Lambda: lambda self, node, scope: displays.function(Point(self, scope), node),
    ast.NamedExpr: Evaluator.walrus,
    ast.Await: Evaluator.inner,
    ast.Starred: Evaluator.inner,
    ast.Yield: Evaluator.given,
    ast.YieldFrom: Evaluator.given,
}
