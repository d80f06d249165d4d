"""What the names of a `match` pattern are bound to: the members that their places stand for. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from casemate.agents.audit.facts.values import NOTHING, UNKNOWN, Value
from casemate.agents.audit.flow.handlers import literals


def captured(pattern: ast.pattern, value: Value) -> Iterator[tuple[str, Value]]:
    """Names that a pattern binds, each with the member that it is matched against."""
    match pattern:
        case ast.MatchAs(pattern=inner, name=name):
            if name is not None:
                fixed = inner is not None and (literals(inner) or _is_number(inner))
                yield name, NOTHING if fixed else value
        case ast.MatchStar(name=str(name)):
            yield name, Value(taints=value.everything())
        case ast.MatchMapping(rest=str(rest)):
            yield rest, value
    for inner, member in _inside(pattern, value):
        yield from captured(inner, member)


def _inside(pattern: ast.pattern, value: Value) -> Iterator[tuple[ast.pattern, Value]]:
    """The patterns within a pattern, each with what it is matched against."""
    match pattern:
        case ast.MatchAs(pattern=inner) if inner is not None:
            yield inner, value
        case ast.MatchOr(patterns=inners):
            yield from ((inner, value) for inner in inners)
        case ast.MatchSequence(patterns=inners):
            starred = any(isinstance(inner, ast.MatchStar) for inner in inners)
            yield from ((inner, value if starred else value.take(at)) for at, inner in enumerate(inners))
        case ast.MatchMapping(keys=keys, patterns=inners):
            for key, inner in zip(keys, inners, strict=True):
                yield inner, value.take(key.value if isinstance(key, ast.Constant) else UNKNOWN)
        case ast.MatchClass(patterns=inners, kwd_attrs=names, kwd_patterns=named):
            yield from ((inner, NOTHING if _is_number(pattern) else value) for inner in inners)
            yield from ((inner, value.attribute(name)) for name, inner in zip(names, named, strict=True))


def _is_number(pattern: ast.pattern) -> bool:
    return isinstance(pattern, ast.MatchClass) and getattr(pattern.cls, "id", "") in {"int", "float", "bool"}
