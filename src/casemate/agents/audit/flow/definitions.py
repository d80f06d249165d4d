"""Functions and classes: walked after the module's body, so that they see its globals; each leaves a summary."""

from __future__ import annotations

import ast
import functools
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.scope import Frame, Scope
from casemate.agents.audit.facts.summary import constructor
from casemate.agents.audit.facts.syntax import walk
from casemate.agents.audit.facts.values import NOTHING, UNKNOWN, Attribute, Value, from_origin, join
from casemate.agents.audit.flow import handlers
from casemate.agents.audit.flow.control import Control
from casemate.agents.audit.flow.parameters import passed
from casemate.agents.audit.flow.promises import Entry, promise

_Definition = ast.FunctionDef | ast.AsyncFunctionDef
_CHANGING = frozenset(
    {
        *("append", "extend", "insert", "remove", "pop", "clear", "update", "setdefault", "add", "discard", "put"),
        *("appendleft", "extendleft", "popitem", "popleft", "reverse", "sort", "write", "set", "read_dict"),
    }
)
_RECORDS = frozenset({"dataclass", "dataclasses.dataclass", "attr.s", "attrs.define", "attr.define", "attrs.frozen"})
_RECORD_BASES = frozenset({"typing.NamedTuple", "pydantic.BaseModel", "msgspec.Struct", "typing.TypedDict"})
_COMPUTED = frozenset({"property", "functools.cached_property", "cached_property", "abc.abstractproperty"})


@dataclass(frozen=True, slots=True)
class Bindings:
    """Names that a function binds itself, takes from outside to bind them, and changes in place."""

    own: frozenset[str]
    globals: frozenset[str]
    nonlocals: frozenset[str]
    changed: frozenset[str]

    @classmethod
    def of(cls, node: _Definition) -> Bindings:
        """Read a function once, inner functions with it."""
        own, shared, outer, changed = set[str](), set[str](), set[str](), set[str]()
        for inner in walk(node):
            match inner:
                case ast.Name(id=name, ctx=ast.Store()):
                    own.add(name)
                case ast.arg(arg=name):
                    own.add(name)
                case ast.Global(names=names):
                    shared.update(names)
                case ast.Nonlocal(names=names):
                    outer.update(names)
                case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store()):
                    changed.add(_root(inner))
                case ast.Call(func=ast.Attribute(attr=method, value=owner)) if method in _CHANGING:
                    changed.add(_root(owner))
        return cls(frozenset(own), frozenset(shared), frozenset(outer), frozenset(changed - own | shared))


class Definer(Control):
    """Walks definitions."""

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self._pending: deque[Callable[[], None]] = deque()
        self._changed: dict[str, bool] = {}

    def finish(self) -> None:
        """Walk the functions that wait."""
        while self._pending:
            self._pending.popleft()()

    def define(self, node: _Definition, scope: Scope) -> Scope:
        """A function is walked later, with the names that it can see."""
        method = _in_class(scope)
        inside = scope.frame.name if scope.frame.name == self.record.name else f"{scope.frame.name}.<locals>"
        name = f"{scope.frame.owner or inside}.{node.name}" if method else f"{inside}.{node.name}"
        owner = scope.frame.owner if method else ""
        for decorator in node.decorator_list:
            self.evaluator.value(decorator, scope)
        if not owner:
            scope.bind(node.name, Value(name=name))
        bindings = Bindings.of(node)
        for key in bindings.changed:
            self._changed[key] = self._changed.get(key, False) or key in bindings.globals
        for key in bindings.nonlocals:
            scope.frame.outside[key] = f"{scope.frame.name}.<locals>"
        outer = scope if not method else Scope(scope.frame, dict(scope.values))
        later = functools.partial(self._function, node, scope=outer, name=name, bindings=bindings)
        if node.name == "__init__":
            self._pending.appendleft(later)  # other methods read what it stores
        else:
            self._pending.append(later)
        return scope

    def _function(self, node: _Definition, *, scope: Scope, name: str, bindings: Bindings) -> None:
        record = self.record
        owner = scope.frame.owner if _in_class(scope) else ""
        role = handlers.role(record, node, owner=owner)
        decorators = frozenset(record.dotted(decorator) for decorator in node.decorator_list)
        method = bool(owner) and not handlers.is_static(node)
        parameters = tuple(a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))
        frame = Frame(name, owner, html=role.html, route=role.web, parameters=parameters)
        outer = f"{scope.frame.name}.<locals>"
        frame.shared = dict.fromkeys(bindings.changed, record.name) | dict.fromkeys(bindings.nonlocals, outer)
        inner = Scope(frame, self._seen(scope, bindings))
        values = passed(record, node, frame=frame, role=role)
        for argument, value in values.items():
            inner.bind(argument, value.marked("whole") if value.taints and value.name != "web.request" else value)
        if method and parameters:
            inner.bind(parameters[0], Value(name=owner if "classmethod" in decorators else f"{owner}()"))
        values = {key: inner.values[key] for key in values}
        end = self.block(node.body, inner)
        if end.alive:
            frame.exits.append((None, end))
        entry = Entry(frame, node, values=values, method=method, computed=bool(decorators & _COMPUTED))
        known = record.functions.get(name)
        made = promise(self.evaluator, entry)
        record.functions[name] = made if known is None or not known.computed else replace(known, computed=True)

    def _seen(self, scope: Scope, bindings: Bindings) -> dict[str, Value]:
        """What a function sees of outside; globals that functions change may hold more than the module put in."""
        values = dict(scope.values)
        for key, again in self._changed.items():
            known = values.get(key)
            if key in bindings.own - bindings.globals or (known is None and key not in bindings.globals):
                continue
            known = known or NOTHING
            more = from_origin(Attribute(self.record.name, key))
            values[key] = replace(
                join(known, more),
                constant=UNKNOWN if again else known.constant,
                items=None if again or known.name in self.record.bases else known.items,
            )
        return values

    def make(self, node: ast.ClassDef, scope: Scope) -> Scope:
        """A class: its body is walked now, its methods later."""
        record = self.record
        name = f"{scope.frame.owner or scope.frame.name}.{node.name}"
        bases = tuple(self.evaluator.value(base, scope).name for base in node.bases)
        record.bases[name] = bases
        record.fields[f"{name}()"] = handlers.fields(record, node)
        for decorator in node.decorator_list:
            self.evaluator.value(decorator, scope)
        made = {record.dotted(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list}
        if made & _RECORDS or set(bases) & _RECORD_BASES or any(f"{base}.__init__" in self._records for base in bases):
            self._records[f"{name}.__init__"] = fields = (*self._inherited(bases), *_declared(node))
            record.functions[f"{name}.__init__"] = constructor(name, fields)
        inner = Scope(Frame(name, owner=name), dict(scope.values))
        inner = self.block(node.body, inner)
        held: dict[Hashable, Value] = {}
        for key, value in inner.values.items():
            if key.isidentifier() and value is not scope.values.get(key):
                record.store(name, key, value=value)
                held[f".{key}"] = value
        if any(base.startswith("enum.") for base in bases):
            held = {key: value if value.name else _member(name, value) for key, value in held.items()}
        scope.bind(node.name, Value(name=name, items=held or None))
        return scope

    @functools.cached_property
    def _records(self) -> dict[str, tuple[str, ...]]:
        return {}

    def _inherited(self, bases: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for base in bases for name in self._records.get(f"{base}.__init__", ()))


def _declared(node: ast.ClassDef) -> tuple[str, ...]:
    targets = (item.target for item in node.body if isinstance(item, ast.AnnAssign))
    return tuple(target.id for target in targets if isinstance(target, ast.Name))


def _member(owner: str, value: Value) -> Value:
    """A member of an enumeration; it is known by its value."""
    items: dict[Hashable, Value] = {".value": value}
    return Value(constant=(owner, value.constant) if isinstance(value.constant, str | int) else UNKNOWN, items=items)


def _in_class(scope: Scope) -> bool:
    return bool(scope.frame.owner) and scope.frame.name == scope.frame.owner


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
