"""Which expressions a file gives to each of its names, by syntax alone: for questions that walk backwards. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from casemate.agents.audit.facts.syntax import walk

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_COMPOUND = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)


@dataclass(frozen=True, slots=True)
class Binding:
    """One expression that a name is given, and the function in which that happens (None: the module or a class)."""

    value: ast.expr
    function: _Function | None


@dataclass(frozen=True, slots=True)
class Definitions:
    """Bindings by `key_of`, parameters, functions, and who is called where."""

    bindings: Mapping[str, list[Binding]]
    parameters: frozenset[str]
    functions: tuple[_Function, ...]
    callers: Mapping[str, list[tuple[ast.stmt, _Function | None]]]
    classes: tuple[ast.ClassDef, ...] = ()
    _bodies: dict[int, tuple[ast.stmt, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: ast.Module) -> Definitions:
        """Read a whole file once."""
        bindings: dict[str, list[Binding]] = {}
        callers: dict[str, list[tuple[ast.stmt, _Function | None]]] = {}
        functions: list[_Function] = []
        classes: list[ast.ClassDef] = []
        parameters: set[str] = set()
        waiting: list[tuple[ast.AST, _Function | None]] = [(tree, None)]
        while waiting:
            holder, function = waiting.pop()
            for node in _statements(holder):
                if isinstance(node, _Function):
                    functions.append(node)
                    spec = node.args
                    parameters |= {a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
                    waiting.append((node, node))
                elif isinstance(node, ast.ClassDef):
                    classes.append(node)
                    waiting.append((node, function))
                else:
                    _add(bindings, node, function=function, in_class=isinstance(holder, ast.ClassDef))
                    _note(callers, node, function=function)
        return cls(bindings, frozenset(parameters), tuple(functions), callers, tuple(classes))

    def around(self, line: int) -> _Function | None:
        """The innermost function that holds a line."""
        holders = [f for f in self.functions if f.lineno <= line <= (f.end_lineno or f.lineno)]
        return max(holders, key=lambda f: f.lineno, default=None)

    def class_around(self, line: int) -> ast.ClassDef | None:
        """The innermost class that holds a line."""
        holders = [c for c in self.classes if c.lineno <= line <= (c.end_lineno or c.lineno)]
        return max(holders, key=lambda c: c.lineno, default=None)

    def body(self, tree: ast.Module, function: _Function | None) -> tuple[ast.stmt, ...]:
        """The statements of a function or of the module, those of inner functions left out."""
        holder: ast.AST = function or tree
        if id(holder) not in self._bodies:
            self._bodies[id(holder)] = tuple(_statements(holder))
        return self._bodies[id(holder)]


def key_of(node: ast.AST) -> str:
    """The key of an expression in `Definitions.bindings`: `x`, `.x` for any attribute `x`, `[x]` for a member."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return f".{name}"
        case ast.Subscript(slice=ast.Constant(value=key)):
            return f"[{key!s}]"
        case _:
            return ""


def name_of(node: ast.AST) -> str:
    """The last name of an expression: a variable, an attribute, a constant key; else empty."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case _:
            return ""


def own_expressions(node: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement itself; of one with a body only its head."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.withitem):
            yield child.context_expr


def _note(
    callers: dict[str, list[tuple[ast.stmt, _Function | None]]], node: ast.stmt, *, function: _Function | None
) -> None:
    for name in _called(node):
        callers.setdefault(name, []).append((node, function))


def _add(bindings: dict[str, list[Binding]], node: ast.stmt, *, function: _Function | None, in_class: bool) -> None:
    """What a class binds is an attribute too."""
    for name, value in _given(node):
        for key in (name, f".{name}") if in_class else (name,):
            bindings.setdefault(key, []).append(Binding(value, function))


def _statements(holder: ast.AST) -> Iterator[ast.stmt]:
    """Statements in reading order; functions and classes are given, what is in them is not."""
    waiting = [*reversed([n for n in ast.iter_child_nodes(holder) if isinstance(n, ast.stmt)])]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, _COMPOUND):
            waiting.extend(reversed(list(_inside(node))))


def _inside(node: ast.stmt) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from child.body


def _given(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _pairs(target, value)
        case ast.AnnAssign(target=target, value=value) if value is not None:
            yield key_of(target), value
        case ast.AugAssign(target=target):
            yield key_of(target), ast.Call(func=ast.Name(id="+="), args=[node.value], keywords=[])
        case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
            yield from _pairs(target, ast.Subscript(value=value, slice=ast.Name(id="_")))
        case ast.With(items=items) | ast.AsyncWith(items=items):
            yield from ((key_of(i.optional_vars), i.context_expr) for i in items if i.optional_vars is not None)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match target, value:
        case (ast.Tuple(elts=names), ast.Tuple(elts=values)) if len(names) == len(values):
            for name, given in zip(names, values, strict=True):
                yield key_of(name), given
        case (ast.Tuple(elts=names) | ast.List(elts=names), _):
            for index, name in enumerate(names):
                yield key_of(name), ast.Subscript(value=value, slice=ast.Constant(value=index))
        case _:
            yield key_of(target), value


def _called(node: ast.stmt) -> Iterator[str]:
    for expression in own_expressions(node):
        for inner in walk(expression):
            if isinstance(inner, ast.Call):
                yield name_of(inner.func)
