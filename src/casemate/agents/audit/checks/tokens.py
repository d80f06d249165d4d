"""Checks of signed tokens: JWTs whose signature is not checked, that have none, or whose key is in the source."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from casemate.agents.audit.checks.fixed import is_fixed
from casemate.agents.audit.checks.secrets import find
from casemate.agents.audit.facts.definitions import name_of
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.syntax import nodes
from casemate.agents.audit.facts.values import NOTHING, Value
from casemate.finding import Confidence

_LIBRARIES = ("jwt.", "jose.", "python_jwt.", "authlib.jose.")
_LOOKED_UP = frozenset({"iss", "kid", "alg", "tenant", "aud", "tid", "client_id", "azp"})
"""Members that say with which key a token is to be checked."""
_PEEKS = frozenset({"get_unverified_claims", "process_jwt"})


def _is_jwt(name: str) -> bool:
    return name.startswith(_LIBRARIES) or name.startswith("jwt(") or ".jwt." in f".{name}"


def _decoded(here: Point, invocation: Invocation) -> None:
    if not _is_jwt(invocation.name):
        return
    options = invocation.argument(3, "options").items or {}
    off = any(key == "verify_signature" and _is_false(value) for key, value in options.items())
    off = off or _is_false(invocation.keywords.get("verify", NOTHING))
    algorithms = invocation.argument(2, "algorithms")
    if (
        _names_none(algorithms)
        or (off and not _is_verified_later(here, invocation))
        or (not off and _chosen_by_token(here, invocation))
    ):
        here.record.weak("jwt-not-verified", invocation.node)
    elif not off and algorithms is NOTHING and not invocation.keywords.keys() & {"**", "claims_options", "options"}:
        _without_algorithms(here, invocation)
    if any(key == "verify_exp" and _is_false(value) for key, value in options.items()) and not off:
        here.record.weak("token-never-expires", invocation.node)


def _without_algorithms(here: Point, invocation: Invocation) -> None:
    """Without a list of algorithms the token's own header decides, or there is no key at all."""
    starred = any(isinstance(argument, ast.Starred) for argument in invocation.node.args)
    if invocation.name.startswith("authlib") or here.record.imports("authlib") or starred:
        return
    if invocation.name in {"jwt.decode", "jose.jwt.decode", "jose.jws.verify"} and len(invocation.args) <= 2:
        here.record.weak("jwt-not-verified", invocation.node, confidence=Confidence.MEDIUM)


def _encoded(here: Point, invocation: Invocation) -> None:
    """A token without a signature, or signed with a key that stands in the source."""
    if not _is_jwt(invocation.name):
        return
    chosen = invocation.argument(2, "algorithm")
    header = (invocation.argument(0, "header").items or {}).get("alg", NOTHING)
    if _names_none(chosen) or str(header.constant).lower() == "none":
        here.record.weak("jwt-not-verified", invocation.node)
    _literal_key(here, invocation)


def _literal_key(here: Point, invocation: Invocation) -> None:
    node = invocation.node.args[1] if len(invocation.node.args) > 1 else None
    node = next((k.value for k in invocation.node.keywords if k.arg == "key"), node)
    if node is None or not is_fixed(here.record.definitions, node):
        return
    texts = {_text(inner.value) for inner in ast.walk(node) if isinstance(inner, ast.Constant)}
    texts.add(_text(invocation.argument(1, "key").constant))
    if not texts & {secret.text for secret in find(here.record.source.tree)}:
        here.record.weak("hard-coded-key", invocation.node)


def _peeked(here: Point, invocation: Invocation) -> None:
    if _is_jwt(invocation.name) and not _is_verified_later(here, invocation):
        here.record.weak("jwt-not-verified", invocation.node)


def _is_verified_later(here: Point, invocation: Invocation) -> bool:
    """Whether a token is checked after all: later in the function, or by who asks it for the issuer alone."""
    function = here.record.definitions.around(invocation.node.lineno)
    if function is None:
        return False
    if _is_checked([n for n in ast.walk(function) if getattr(n, "lineno", 0) > invocation.node.lineno]):
        return True
    read = _keys_read(function, here)
    return bool(read) and read <= _LOOKED_UP and _is_checked(nodes(here.record.source.tree))


def _is_checked(nodes: Iterable[ast.AST]) -> bool:
    """Whether one of these calls decodes a token with a key."""
    for node in nodes:
        if isinstance(node, ast.Call) and name_of(node.func) in {"decode", "verify", "verify_jwt"}:
            keyed = len(node.args) >= 2 or any(keyword.arg == "key" for keyword in node.keywords)
            if keyed and "verify_signature" not in ast.unparse(node):
                return True
    return False


def _keys_read(function: ast.AST, here: Point) -> frozenset[str]:
    """The members that a function reads of what it decoded."""
    del here
    found: set[str] = set()
    for node in ast.walk(function):
        match node:
            case ast.Subscript(slice=ast.Constant(value=str(key)), ctx=ast.Load()):
                found.add(key)
            case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(key)), *_]):
                found.add(key)
    return frozenset(found)


def _chosen_by_token(here: Point, invocation: Invocation) -> bool:
    """`algorithms=[get_unverified_header(token)["alg"]]`: who writes the token chooses how it is checked."""
    node = next((k.value for k in invocation.node.keywords if k.arg == "algorithms"), None)
    if node is None and len(invocation.node.args) > 2:
        node = invocation.node.args[2]
    waiting = [] if node is None else [node]
    for _ in range(2):
        names = [n for expr in waiting for n in ast.walk(expr) if isinstance(n, ast.Name | ast.Attribute)]
        if any(name_of(n) == "get_unverified_header" for n in names):
            return True
        bindings = here.record.definitions.bindings
        waiting = [b.value for n in names if isinstance(n, ast.Name) for b in bindings.get(n.id, [])]
    return any(name_of(n) == "get_unverified_header" for expr in waiting for n in ast.walk(expr))


def _names_none(value: Value) -> bool:
    chosen = [value.constant, *(item.constant for item in (value.items or {}).values())]
    return any(isinstance(name, str) and name.lower() == "none" for name in chosen)


def _is_false(value: Value) -> bool:
    return value.constant is False


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


TABLES = (
    {"decode": _decoded, "encode": _encoded, "verify": _decoded},
    dict.fromkeys(_PEEKS, _peeked),
)
