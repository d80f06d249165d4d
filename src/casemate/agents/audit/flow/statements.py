"""Runs one file's statements over abstract values: branches, loops, functions, classes. The result is its summary."""

from __future__ import annotations

import ast

from casemate.agents.audit.checks import defaults, hiding, weak
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.scope import CONTENT_TYPE, Frame, Scope
from casemate.agents.audit.facts.sink import Sink
from casemate.agents.audit.facts.summary import Module
from casemate.agents.audit.facts.syntax import Source, bound_names, imports, module_name, place, stars
from casemate.agents.audit.facts.values import NOTHING, Value, gather
from casemate.agents.audit.flow import guards, handlers, members
from casemate.agents.audit.flow.binding import bind
from casemate.agents.audit.flow.control import CONTROL
from casemate.agents.audit.flow.definitions import Definer
from casemate.agents.audit.sinks import places

_PLAIN_TYPES = ("text/plain", "application/json", "text/csv", "application/octet-stream")
_PAGE = Sink("cross-site-scripting", "html")


def summarize(source: Source, *, snippet: bool = False) -> Module:
    """Analyse one file.

    Args:
        source: the parsed file.
        snippet: callers are unknown, so parameters count as untrusted.
    """
    name = module_name(source.path)
    names = imports(source.tree, name, package=source.path.endswith("__init__.py"))
    record = Record(source, name, names, snippet, secrets=hiding.texts(source), assigned=bound_names(source.tree))
    record.handed_over = handlers.handed_over(record)
    record.clean_options = handlers.clean_options(record)
    Walker(record).module()
    return record.summary()


class Walker(Definer):
    """Walks statements in order; functions are walked after the module's body, so that they see its globals."""

    def module(self) -> None:
        """Walk the whole file."""
        record = self.record
        weak.module(record)
        record.stars = stars(record.source.tree, record.name, package=record.source.path.endswith("__init__.py"))
        record.aliases.update({f"{record.name}.{name}": dotted for name, dotted in record.names.items() if name != "*"})
        scope = self.block(record.source.tree.body, Scope(Frame(record.name)))
        for name, value in scope.values.items():
            if name.isidentifier():
                record.store(record.name, name, value=value)
                if value.name and "(" not in value.name and value.name != f"{record.name}.{name}":
                    record.aliases[f"{record.name}.{name}"] = value.name
        self.finish()

    def assign(self, node: ast.Assign, scope: Scope) -> Scope:
        """`a = b = value`."""
        value = self.evaluator.value(node.value, scope)
        for target in node.targets:
            self._store(target, scope, value=value)
            if isinstance(target, ast.Name) and isinstance(
                node.value, ast.Compare | ast.Call | ast.BoolOp | ast.UnaryOp
            ):
                scope.remember(target.id, node.value)
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
        bind(Point(self.evaluator, scope), target, value=value)

    def _into_attribute(self, target: ast.Attribute, scope: Scope, *, value: Value) -> None:
        owner = self.evaluator.value(target.value, scope)
        sends = str(scope.values.get(CONTENT_TYPE, NOTHING).constant)
        sink = places.attribute(place(target.value), target.attr, sends=sends)
        if sink is not None:
            self.record.sink(sink, target, reached=value)
        if target.attr in {"content_type", "media_type"}:
            html = value.name == "falcon.MEDIA_HTML"
            scope.bind(CONTENT_TYPE, Value(constant="text/html") if html else value)
        if target.attr in {"content_type", "mimetype"} and str(value.constant).startswith(_PLAIN_TYPES):
            scope.clear(place(target.value), owner, kinds={"html"})

    def _into_member(self, target: ast.Subscript, scope: Scope, *, value: Value) -> None:
        container = self.evaluator.value(target.value, scope)
        key = self.evaluator.value(target.slice, scope)
        if str(key.constant).lower() == "content-type" and str(value.constant).startswith(_PLAIN_TYPES):
            owner = target.value.value if isinstance(target.value, ast.Attribute) else target.value
            scope.clear(place(owner), self.evaluator.value(owner, scope), kinds={"html"})
        sink = places.member(container.name, place(target.value), key=key.constant)
        if sink is not None:
            self.record.sink(sink, target, reached=gather(value, key) if sink.rule == "trust-boundary" else value)

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
        self.record.sink(_PAGE, node, reached=places.answer(value))
        self.record.sink(places.REDIRECT, node, reached=places.location(value))
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
            if isinstance(target, ast.Subscript):
                members.remove(Point(self.evaluator, scope), target)
            scope.values.pop(place(target), None)
        return scope

    def demand(self, node: ast.Assert, scope: Scope) -> Scope:
        """`assert`: what it tests holds behind it, as the program is run without `-O`."""
        self.evaluator.value(node.test, scope)
        guards.refine(Point(self.evaluator, scope), node.test, outcome=True)
        return scope


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
    ast.Assert: Walker.demand,
    ast.FunctionDef: Walker.define,
    ast.AsyncFunctionDef: Walker.define,
    ast.ClassDef: Walker.make,
}
