"""The source of an engine as syntax: names are looked up across modules, constants evaluated. Nothing of it runs.

Where something is not static, the answer is None, never a guess.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

_STEPS = 40
"""Imports that a name is followed through before it counts as endless."""


@dataclass(frozen=True, slots=True)
class Place:
    """A definition and the module that it stands in."""

    module: str
    node: ast.AST


@dataclass(slots=True)
class Tree:
    """Modules by dotted name, parsed when they are first looked at."""

    texts: Mapping[str, str]
    _scopes: dict[str, dict[str, ast.AST]] = field(default_factory=dict)

    def scope(self, module: str) -> dict[str, ast.AST]:
        """What a module binds at its top level, branches included; a name's last binding counts."""
        if module not in self._scopes:
            text = self.texts.get(module, "")
            try:
                self._scopes[module] = dict(_bound(ast.parse(text).body))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                self._scopes[module] = {}
        return self._scopes[module]

    def find(self, module: str, name: str) -> Place | None:
        """Where a name that a module uses is defined, followed through imports."""
        for _ in range(_STEPS):
            node = self.scope(module).get(name)
            if not isinstance(node, ast.ImportFrom):
                return Place(module, node) if node is not None else None
            original = next(alias.name for alias in node.names if name in (alias.asname, alias.name))
            module, name = self._target(module, node, name=original)
        return None

    def classes(self, name: str) -> Iterator[Place]:
        """Every class of that name, in any module that mentions it."""
        for module, text in self.texts.items():
            if f"class {name}" in text and isinstance(node := self.scope(module).get(name), ast.ClassDef):
                yield Place(module, node)

    def method(self, place: Place, name: str) -> Place | None:
        """A class's function of that name, its own or the nearest base's."""
        if not isinstance(place.node, ast.ClassDef):
            return None
        for child in place.node.body:
            if isinstance(child, ast.FunctionDef) and child.name == name:
                return Place(place.module, child)
        found = (self.method(base, name) for base in self.bases(place))
        return next((method for method in found if method), None)

    def bases(self, place: Place) -> Iterator[Place]:
        """The classes that a class names as its bases, as far as they are found."""
        for base in place.node.bases if isinstance(place.node, ast.ClassDef) else ():
            if isinstance(base, ast.Name) and (found := self.find(place.module, base.id)):
                yield found

    def constant(self, module: str, node: ast.AST | None) -> Any:
        """The value of a literal, or of a name or `Class.field` that stands for one; None where it is not static."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                found = self.find(module, name)
                return self.constant(found.module, _assigned(found.node)) if found else None
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return -number
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                found = self.find(module, owner)
                return self._field_default(found, name) if found else None
            case ast.Call() as call:
                return self._wrapped(module, call)
        return None

    def strings(self, module: str, node: ast.AST | None) -> list[str] | None:
        """A list of choices as text: of a list, a Literal, an enum's values, a table's keys; None if not static."""
        match node:
            case ast.Name(id=name):
                found = self.find(module, name)
                return self._named(found) if found else None
            case (
                ast.Call(func=ast.Name(id="get_args" | "list" | "sorted" | "tuple"), args=[over])
                | ast.ListComp(generators=[ast.comprehension(iter=ast.Name() as over)])
            ):
                return self.strings(module, over)
        items = _items(node)
        return None if items is None else self._joined(module, items)

    def _joined(self, module: str, items: list[ast.expr]) -> list[str] | None:
        found: list[str] = []
        for item in items:
            inner = item.value if isinstance(item, ast.Starred) else item
            one = self.constant(module, inner)
            several = None if one is not None else self.strings(module, inner)
            if one is not None and not isinstance(item, ast.Starred):
                found.append(str(one))
            elif several is not None:
                found.extend(several)
            elif not (isinstance(inner, ast.Constant) and inner.value is None):
                return None
        return found

    def _named(self, found: Place) -> list[str] | None:
        if isinstance(found.node, ast.ClassDef):
            values = (child.value for child in found.node.body if isinstance(child, ast.Assign))
            return [str(value) for node in values if (value := self.constant(found.module, node)) is not None] or None
        return self.strings(found.module, _assigned(found.node))

    def _field_default(self, found: Place, name: str) -> Any:
        for child in found.node.body if isinstance(found.node, ast.ClassDef) else ():
            if isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name) and child.target.id == name:
                return self.constant(found.module, child.value)
        return None

    def _wrapped(self, module: str, call: ast.Call) -> Any:
        """The default inside `Field(default=…)`, `field(default=…)` or `get_field(Class, "name")`."""
        match call:
            case ast.Call(func=ast.Name(id="get_field"), args=[ast.Name(id=owner), ast.Constant(value=str() as name)]):
                found = self.find(module, owner)
                return self._field_default(found, name) if found else None
            case ast.Call(func=ast.Name(id="Field" | "field")):
                given = next((keyword.value for keyword in call.keywords if keyword.arg == "default"), None)
                return self.constant(module, given or (call.args[0] if call.args else None))
        return None

    def _target(self, module: str, node: ast.ImportFrom, *, name: str) -> tuple[str, str]:
        wanted = node.module or ""
        if node.level:
            package = module if f"{module}.__init__" in self.texts else module.rpartition(".")[0]
            for _ in range(node.level - 1):
                package = package.rpartition(".")[0]
            wanted = f"{package}.{wanted}" if wanted else package
        return wanted, name


def _items(node: ast.AST | None) -> list[ast.expr] | None:
    match node:
        case (
            ast.List(elts=items)
            | ast.Tuple(elts=items)
            | ast.Set(elts=items)
            | ast.Subscript(value=ast.Name(id="Literal"), slice=ast.Tuple(elts=items))
        ):
            return items
        case ast.Dict(keys=keys):
            return [key for key in keys if key is not None]
        case ast.Subscript(value=ast.Name(id="Literal"), slice=item):
            return [item]
    return None


def _assigned(node: ast.AST) -> ast.AST | None:
    return node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None


def _bound(body: list[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    for statement in body:
        match statement:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, statement
            case ast.ImportFrom(names=names):
                yield from ((alias.asname or alias.name, statement) for alias in names)
            case ast.Assign(targets=targets):
                yield from ((target.id, statement) for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name, statement
            case ast.If() | ast.Try():
                handlers = statement.handlers if isinstance(statement, ast.Try) else []
                inner = chain(*(handler.body for handler in handlers))
                yield from _bound([*statement.body, *inner, *statement.orelse])
