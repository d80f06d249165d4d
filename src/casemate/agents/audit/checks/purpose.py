"""What a value is used for: the names that it is given on its way through its function, and to the callers. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from casemate.agents.audit.checks.words import words
from casemate.agents.audit.facts.definitions import name_of, own_expressions
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.record import Record

_TALK = frozenset({"debug", "info", "warning", "warn", "error", "critical", "exception", "log", "print", "format"})
_KEEPERS = frozenset({"set_cookie", "set_signed_cookie", "set_secure_cookie", "set", "setex", "setdefault", "put"})
_ROUNDS = 3
_CALLERS = 2
_MAX_CALLERS = 12
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def purpose(here: Point, node: ast.expr) -> frozenset[str]:
    """Words for what becomes of this expression: its function's name, variables, keys, keywords, calls that take it."""
    statement = here.record.statement
    line = statement.lineno if statement is not None else node.lineno
    return frozenset(_follow(here.record, here.record.definitions.around(line), node=node, depth=_CALLERS))


def setting(here: Point, node: ast.expr) -> frozenset[str]:
    """Words of what stands around an expression: its class and module, what their texts say, in the singular."""
    record, definitions = here.record, here.record.definitions
    function, holder = definitions.around(node.lineno), definitions.class_around(node.lineno)
    texts = [ast.get_docstring(thing) or "" for thing in (record.source.tree, function, holder) if thing is not None]
    names = [record.name, holder.name if holder is not None else "", *texts]
    said = frozenset[str]().union(*(words(name) for name in names))
    return said | {word.removesuffix("s") for word in said}


def _follow(record: Record, function: _Function | None, *, node: ast.expr, depth: int) -> set[str]:
    found = set(words(function.name)) if function is not None else set()
    carriers: set[str] = set()
    returned = False
    for _ in range(_ROUNDS):
        before = len(carriers)
        for line in record.definitions.body(record.source.tree, function):
            if _carries_any(line, node, carriers=carriers):
                found |= _said(line, node, carriers=carriers)
                returned = returned or _gives_back(line)
        if len(carriers) == before:
            break
    if function is not None and returned and depth:
        for call, caller in _calls_of(record, function.name):
            found |= _follow(record, caller, node=call, depth=depth - 1)
    return found


def _gives_back(line: ast.stmt) -> bool:
    yields = isinstance(line, ast.Expr) and isinstance(line.value, ast.Yield | ast.YieldFrom)
    return isinstance(line, ast.Return) or yields


def named(node: ast.AST) -> frozenset[str]:
    """Words of every name and attribute in an expression, not of its literals."""
    found: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            found |= words(inner.id)
        elif isinstance(inner, ast.Attribute):
            found |= words(inner.attr)
        elif isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Constant):
            found |= words(str(inner.slice.value))
    return frozenset(found)


def _calls_of(record: Record, name: str) -> Iterator[tuple[ast.Call, _Function | None]]:
    for line, caller in record.definitions.callers.get(name, [])[:_MAX_CALLERS]:
        inside = (inner for expression in own_expressions(line) for inner in ast.walk(expression))
        yield from ((n, caller) for n in inside if isinstance(n, ast.Call) and name_of(n.func) == name)


def _carries_any(line: ast.stmt, node: ast.AST, *, carriers: set[str]) -> bool:
    return any(_carries(expression, node, carriers=carriers) for expression in own_expressions(line))


def _carries(expression: ast.AST, node: ast.AST, *, carriers: set[str]) -> bool:
    return any(
        inner is node or (isinstance(inner, ast.Name) and inner.id in carriers and isinstance(inner.ctx, ast.Load))
        for inner in ast.walk(expression)
    )


def _said(line: ast.stmt, node: ast.AST, *, carriers: set[str]) -> set[str]:
    """Names that the statement gives to what carries the value; variables become carriers too."""
    found: set[str] = set()
    match line:
        case ast.Assign(targets=targets, value=value):
            carried = targets if _carries(value, node, carriers=carriers) else []
            found |= set[str]().union(*(_of_target(target, carriers) for target in carried))
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
            if _carries(value, node, carriers=carriers):
                found |= _of_target(target, carriers)
    inside = (inner for expression in own_expressions(line) for inner in ast.walk(expression))
    for said, part in (named_part for inner in inside for named_part in _named_parts(inner)):
        if _carries(part, node, carriers=carriers):
            found |= words(said)
    return found


def _of_target(target: ast.expr, carriers: set[str]) -> set[str]:
    if isinstance(target, ast.Name):
        carriers.add(target.id)
    said = set(words(name_of(target)))
    if isinstance(target, ast.Subscript):
        said |= words(name_of(target.value)) | set().union(*(words(text) for text in _texts(target.slice)))
    return said


def _named_parts(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Dict(keys=keys, values=values):
            yield from ((text, value) for key, value in zip(keys, values, strict=True) for text in _texts(key))
        case ast.Call(func=function, args=args, keywords=keywords) if name_of(function) not in _TALK:
            yield from ((keyword.arg or "", keyword.value) for keyword in keywords)
            called = name_of(function)
            yield from ((called, arg) for arg in args)
            if called in _KEEPERS and len(args) > 1:
                yield from ((text, args[-1]) for text in _texts(args[0]))


def _texts(node: ast.AST | None) -> Iterator[str]:
    """The literal texts of a key, and the name that it is read from."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            for part in parts:
                yield from _texts(part)
        case ast.BinOp(left=left, right=right):
            yield from _texts(left)
            yield from _texts(right)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            yield name
