"""Runs one file's statements over abstract values: branches, loops, functions, classes. The result is its summary."""

from __future__ import annotations

import ast
import functools
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from casemate.agents.audit.checks import defaults, secrets, weak
from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.scope import Frame, Scope
from casemate.agents.audit.facts.sink import Sink
from casemate.agents.audit.facts.summary import Module
from casemate.agents.audit.facts.syntax import Source, bound_names, imports, module_name, place
from casemate.agents.audit.facts.values import NOTHING, Attribute, Value, from_origin, gather, join
from casemate.agents.audit.flow import handlers
from casemate.agents.audit.flow.binding import bind
from casemate.agents.audit.flow.control import CONTROL, Control
from casemate.agents.audit.flow.promises import promise
from casemate.finding import Confidence

_Definition = ast.FunctionDef | ast.AsyncFunctionDef
_PLAIN_TYPES = ("text/plain", "application/json", "text/csv", "application/octet-stream")
_SESSION = Sink("trust-boundary", "session", confidence=Confidence.MEDIUM)
_PAGE = Sink("cross-site-scripting", "html")


def summarize(source: Source, *, snippet: bool = False) -> Module:
    """Analyse one file.

    Args:
        source: the parsed file.
        snippet: callers are unknown, so parameters count as untrusted.
    """
    name = module_name(source.path)
    names = imports(source.tree, name, package=source.path.endswith("__init__.py"))
    known = tuple({secret.text for secret in secrets.find(source.tree)})
    record = Record(source, name, names, snippet, secrets=known, assigned=bound_names(source.tree))
    Walker(record).module()
    return record.summary()


class Walker(Control):
    """Walks statements in order; functions are walked after the module's body, so that they see its globals."""

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self._pending: deque[Callable[[], None]] = deque()

    def module(self) -> None:
        """Walk the whole file."""
        record = self.record
        for secret in secrets.find(record.source.tree):
            record.weak("hard-coded-secret", secret.node, confidence=secret.confidence)
        record.aliases.update({f"{record.name}.{name}": dotted for name, dotted in record.names.items()})
        scope = self.block(record.source.tree.body, Scope(Frame(record.name)))
        for name, value in scope.values.items():
            if name.isidentifier():
                record.store(record.name, name, value=value)
                if value.name and value.name != f"{record.name}.{name}":
                    record.aliases[f"{record.name}.{name}"] = value.name
        while self._pending:
            self._pending.popleft()()

    def assign(self, node: ast.Assign, scope: Scope) -> Scope:
        """`a = b = value`."""
        value = self.evaluator.value(node.value, scope)
        for target in node.targets:
            self._store(target, scope, value=value)
        return scope

    def annotated(self, node: ast.AnnAssign, scope: Scope) -> Scope:
        """`name: type = value`."""
        if node.value is not None:
            self._store(node.target, scope, value=self.evaluator.value(node.value, scope))
        return scope

    def augmented(self, node: ast.AugAssign, scope: Scope) -> Scope:
        """`name += value`."""
        combined = ast.copy_location(ast.BinOp(_as_load(node.target), node.op, node.value), node)
        self._store(node.target, scope, value=self.evaluator.value(combined, scope))
        return scope

    def _store(self, target: ast.expr, scope: Scope, *, value: Value) -> None:
        defaults.assigned(self.record, target, value=value)
        if isinstance(target, ast.Attribute):
            self._into_attribute(target, scope, value=value)
        elif isinstance(target, ast.Subscript):
            self._into_member(target, scope, value=value)
        elif isinstance(target, ast.Name) and target.id in scope.frame.shared:
            self.record.store(self.record.name, target.id, value=value)
        bind(target, value, scope=scope)

    def _into_attribute(self, target: ast.Attribute, scope: Scope, *, value: Value) -> None:
        owner = self.evaluator.value(target.value, scope)
        if owner.name.endswith("()") and owner.name.count("(") == 1:
            self.record.store(owner.name[:-2], target.attr, value=value)
        if target.attr in {"content_type", "mimetype"} and str(value.constant).startswith(_PLAIN_TYPES):
            scope.clear(place(target.value), owner, kinds={"html"})

    def _into_member(self, target: ast.Subscript, scope: Scope, *, value: Value) -> None:
        container = self.evaluator.value(target.value, scope)
        key = self.evaluator.value(target.slice, scope)
        if str(key.constant).lower() == "content-type" and str(value.constant).startswith(_PLAIN_TYPES):
            owner = target.value.value if isinstance(target.value, ast.Attribute) else target.value
            scope.clear(place(owner), self.evaluator.value(owner, scope), kinds={"html"})
        if container.name in {"flask.session", "session", "web.request.session"}:
            self.record.sink(_SESSION, target, reached=gather(value, key))

    def expression(self, node: ast.Expr, scope: Scope) -> Scope:
        """A call for its effect; some never come back."""
        value = self.evaluator.value(node.value, scope)
        if isinstance(node.value, ast.Call) and value.name.partition("(")[0] in handlers.NEVER_RETURN:
            scope.alive = False
        return scope

    def give_back(self, node: ast.Return, scope: Scope) -> Scope:
        """`return`; what a page handler returns goes to a browser."""
        value = self.evaluator.value(node.value, scope)
        scope.frame.returns.append(value)
        if node.value is not None:
            self._page(node.value, scope, value=value)
        scope.frame.exits.append((node.value, scope.copy()))
        scope.alive = False
        return scope

    def _page(self, node: ast.expr, scope: Scope, *, value: Value) -> None:
        if not scope.frame.html or isinstance(node, ast.Dict | ast.List):
            return
        if isinstance(node, ast.Tuple):
            plain = any(_plain_header(part) for part in node.elts[1:])
            value = NOTHING if plain else value.take(0)
        if value.items is not None or ("json" in value.marks - {"built"} and "built" not in value.marks):
            return
        self.record.sink(_PAGE, node, reached=value)

    def stop(self, node: ast.Raise, scope: Scope) -> Scope:
        """`raise`."""
        self.evaluator.value(node.exc, scope)
        scope.alive = False
        return scope

    def forget(self, node: ast.Delete, scope: Scope) -> Scope:
        """`del`."""
        for target in node.targets:
            scope.values.pop(place(target), None)
        return scope

    def define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> Scope:
        """A function is walked later, with the names that it can see."""
        inside = scope.frame.name if scope.frame.name == self.record.name else f"{scope.frame.name}.<locals>"
        name = f"{scope.frame.owner or inside}.{node.name}" if _in_class(scope) else f"{inside}.{node.name}"
        owner = scope.frame.owner if _in_class(scope) else ""
        for decorator in node.decorator_list:
            self.evaluator.value(decorator, scope)
        weak.function(self.record, node)
        if not owner:
            scope.bind(node.name, Value(name=name))
        outer = scope if not _in_class(scope) else Scope(scope.frame, dict(scope.values))
        later = functools.partial(self._function, node, scope=outer, name=name, owner=owner)
        if node.name == "__init__":
            self._pending.appendleft(later)  # other methods read what it stores
        else:
            self._pending.append(later)
        return scope

    def _function(self, node: _Definition, *, scope: Scope, name: str, owner: str) -> None:
        role = handlers.role(self.record, node)
        shared = frozenset(n for s in ast.walk(node) if isinstance(s, ast.Global) for n in s.names)
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        method = bool(owner) and not handlers.is_static(node)
        parameters = tuple(argument.arg for argument in arguments)
        frame = Frame(name, owner, html=role.html, route=role.web, parameters=parameters, shared=shared)
        scope = Scope(frame, dict(scope.values))
        for key in shared:
            known = scope.values.get(key, NOTHING)
            scope.values[key] = replace(
                join(known, from_origin(Attribute(self.record.name, key))), constant=known.constant
            )
        values = handlers.arguments(self.record, node, frame=frame, role=role)
        for argument, value in values.items():
            scope.bind(argument, value)
        if method and parameters:
            scope.bind(parameters[0], Value(name=f"{owner}()"))
        end = self.block(node.body, scope)
        if end.alive:
            frame.exits.append((None, end))
        self.record.functions[name] = promise(self.evaluator, frame, values=values, method=method)

    def make(self, node: ast.ClassDef, scope: Scope) -> Scope:
        """A class: its body is walked now, its methods later."""
        name = f"{scope.frame.owner or scope.frame.name}.{node.name}"
        self.record.bases[name] = tuple(self.evaluator.value(base, scope).name for base in node.bases)
        self.record.fields[f"{name}()"] = handlers.fields(node)
        inner = Scope(Frame(name, owner=name), dict(scope.values))
        inner = self.block(node.body, inner)
        for key, value in inner.values.items():
            if key.isidentifier() and value is not scope.values.get(key):
                self.record.store(name, key, value=value)
        scope.bind(node.name, Value(name=name))
        return scope


def _in_class(scope: Scope) -> bool:
    return bool(scope.frame.owner) and scope.frame.name == scope.frame.owner


def _as_load(target: ast.expr) -> ast.expr:
    twin = ast.parse(ast.unparse(target), mode="eval").body
    return ast.copy_location(twin, target)


def _plain_header(node: ast.expr) -> bool:
    text = ast.unparse(node).lower()
    return "content-type" in text and any(kind in text for kind in _PLAIN_TYPES)


Walker.steps = {
    **CONTROL,
    ast.Assign: Walker.assign,
    ast.AnnAssign: Walker.annotated,
    ast.AugAssign: Walker.augmented,
    ast.Expr: Walker.expression,
    ast.Return: Walker.give_back,
    ast.Raise: Walker.stop,
    ast.Delete: Walker.forget,
    ast.FunctionDef: Walker.define,
    ast.AsyncFunctionDef: Walker.define,
    ast.ClassDef: Walker.make,
}
