"""Which literal a program gives to which name, in all forms of the grammar. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from casemate.agents.audit.facts.definitions import name_of

_READS = frozenset({"get", "getenv", "setdefault", "config", "env", "str", "secret", "pop", "get_secret", "Field"})
_WRAPPED = frozenset({"SecretStr", "SecretBytes", "fromhex", "b64decode", "b64encode", "bytes"})
_SAME = frozenset({"encode", "strip", "decode"})
_SECOND_IS_PASSWORD = frozenset({"HTTPBasicAuth", "HTTPDigestAuth", "BasicAuth", "DigestAuth", "HttpNtlmAuth"})
_CREDENTIALS = frozenset({"auth", "basic_auth", "http_auth", "proxy_auth"})
"""Keywords that take a pair of a user and a password."""


def named_literals(node: ast.AST) -> Iterator[tuple[str, ast.Constant]]:
    """Pairs of a name and the literal that one node of a tree gives it or compares it with."""
    for name, value in _pairs(node):
        if isinstance(value, ast.Constant):
            yield name, value


def _pairs(node: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:  # noqa: C901  # one case a form
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from (pair for target in targets for pair in _assigned(target, value))
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            yield from _assigned(target, value)
        case ast.keyword(arg=str(name), value=ast.Tuple(elts=[_, second])) if name in _CREDENTIALS:
            yield from (("password", way) for way in _ways(second))
        case ast.keyword(arg=str(name), value=value):
            yield from ((name, way) for way in _ways(value))
        case ast.Call():
            yield from _passed(node)
        case ast.Dict(keys=keys, values=values):
            names = (key.value if isinstance(key, ast.Constant) else "" for key in keys)
            yield from zip(map(str, names), values, strict=True)
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
            yield _name(left), right
            yield _name(right), left
        case ast.arguments(posonlyargs=first, args=args, defaults=defaults, kwonlyargs=named, kw_defaults=others):
            yield from zip((argument.arg for argument in reversed([*first, *args])), reversed(defaults), strict=False)
            yield from zip((argument.arg for argument in named), others, strict=True)
        case ast.MatchMapping(keys=keys, patterns=patterns):
            for key, pattern in zip(keys, patterns, strict=True):
                if isinstance(key, ast.Constant) and isinstance(pattern, ast.MatchValue):
                    yield str(key.value), pattern.value


def _passed(node: ast.Call) -> Iterator[tuple[str, ast.AST | None]]:
    """By the position of an argument: defaults of reads, passwords, attributes, what is compared."""
    last = name_of(node.func)
    match node.args:
        case [ast.Constant(value=str(name)), given, *_] if last in _READS:
            yield from ((name, way) for way in _ways(given))
        case [_, given] if last in _SECOND_IS_PASSWORD or (last == "login" and isinstance(node.func, ast.Attribute)):
            yield from (("password", way) for way in _ways(given))
        case [_, ast.Constant(value=str(name)), given] if last == "setattr":
            yield from ((name, way) for way in _ways(given))
        case [one, other] if last == "compare_digest":
            yield from ((_name(one), way) for way in _ways(other))
            yield from ((_name(other), way) for way in _ways(one))


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.AST | None]]:
    match target, value:
        case ast.Tuple(elts=names) | ast.List(elts=names), ast.Tuple(elts=values) | ast.List(elts=values):
            yield from ((_name(one), way) for one, given in zip(names, values, strict=False) for way in _ways(given))
        case _, ast.Call(func=function, args=[given, *_]) if name_of(function) == "Field":
            yield from ((_name(target), way) for way in _ways(given))
        case _:
            yield from ((_name(target), way) for way in _ways(value))


def _ways(node: ast.expr) -> Iterator[ast.expr]:
    """The literal itself, what stands in for a missing one (`or "…"`), either side of a choice, encoded or not."""
    match node:
        case ast.BoolOp(op=ast.Or(), values=values):
            yield from (way for value in values[1:] for way in _ways(value))
        case ast.IfExp(body=body, orelse=orelse):
            yield from _ways(body)
            yield from _ways(orelse)
        case ast.Call(func=ast.Attribute(value=inner, attr=method)) if method in _SAME:
            yield from _ways(inner)
        case ast.Call(func=function, args=[inner]) if name_of(function) in _WRAPPED:
            yield from _ways(inner)
        case ast.Call(func=function, keywords=keywords) if name_of(function) == "Field":
            yield from (k.value for k in keywords if k.arg == "default")
        case _:
            yield node


def _name(node: ast.AST) -> str:
    match node:
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(name)), *_]):
            return name
        case ast.Call(func=ast.Attribute(value=inner, attr=method)) if method in _SAME:
            return _name(inner)
        case _:
            return name_of(node)
