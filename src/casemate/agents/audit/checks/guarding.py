"""Signs that code asks who is calling: decorators, dependencies, mixins, checks in a body. By syntax. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from casemate.agents.audit.checks.words import words
from casemate.agents.audit.facts.definitions import name_of

OPEN: frozenset[str] = frozenset()
SIGNED_IN = frozenset({"signed-in"})
ADMIN = frozenset({"signed-in", "admin"})
"""How much a guard asks for."""

Ours = Mapping[str, frozenset[str]]
_GUARD = frozenset(
    {
        *(
            "login",
            "auth",
            "authenticated",
            "authorized",
            "authorised",
            "authorize",
            "authenticate",
            "permission",
            "jwt",
        ),
        *("permissions", "perm", "role", "roles", "admin", "staff", "superuser", "token", "apikey", "scope", "scopes"),
        *("logged", "owner", "protected", "secured", "secure", "privilege", "access", "oauth", "principal", "identity"),
        *("guard", "guarded", "verified", "signed", "passes", "member", "acl", "rbac", "credentials", "requires"),
    }
)
_WHO = frozenset({"user", "admin", "auth", "current", "account", "staff", "operator", "tenant"}) | (_GUARD - {"access"})
_ADMIN = frozenset(
    {"admin", "administrator", "staff", "superuser", "root", "role", "roles", "permission", "permissions"}
)
_ADMIN |= {"perm", "scope", "scopes", "rbac", "privilege", "acl"}
_ASKS = frozenset(
    {"require", "requires", "check", "ensure", "assert", "verify", "authorize", "authorise", "authenticate", "enforce"}
)
_ASKS |= {"must", "validate", "guard", "has", "is", "can", "get", "load", "current", "need", "needs"}
_NOT_GUARDS = frozenset({"csrf", "cache", "rate", "limit", "throttle", "ratelimit", "cors", "http", "methods", "post"})
_ERRORS = frozenset(
    {
        *(
            "PermissionDenied",
            "Forbidden",
            "Unauthorized",
            "HTTPForbidden",
            "HTTPUnauthorized",
            "HttpResponseForbidden",
        ),
        *("NotAuthenticated", "PermissionError", "AuthenticationFailed", "NotAuthorized", "AuthenticationError"),
        *("AccessDenied", "AuthError", "redirect_to_login", "HTTPNetworkAuthenticationRequired"),
    }
)
_IDENTITIES = frozenset(
    {"is_authenticated", "is_admin", "is_staff", "is_superuser", "current_user", "get_jwt_identity", "is_anonymous"}
)
_REFUSED = re.compile(r"(?:HTTP_)?40[13](?:_|$)")


def of_decorators(nodes: Iterable[ast.expr]) -> frozenset[str]:
    """What decorators ask for; routes and caches ask for nothing."""
    asked = OPEN
    for node in nodes:
        inner = node.func if isinstance(node, ast.Call) else node
        said = words(name_of(inner)) | (words(name_of(inner.value)) if isinstance(inner, ast.Attribute) else OPEN)
        if name_of(inner) == "method_decorator" and isinstance(node, ast.Call):
            asked |= of_decorators(node.args[:1])
        elif name_of(inner) == "permission_classes" and isinstance(node, ast.Call):
            asked |= of_permissions(node.args[0]) if node.args else OPEN
        elif (words(name_of(inner)) & _GUARD and not words(name_of(inner)) & _NOT_GUARDS) or (
            name_of(inner) in {"required", "has_role"} and said & _GUARD
        ):
            asked |= _strength(said | _literals(node))
    return asked


def of_permissions(node: ast.expr) -> frozenset[str]:
    """What a list of permission classes asks for; `AllowAny` asks for nothing."""
    asked = OPEN
    for inner in ast.walk(node):
        name = name_of(inner)
        if name and name != "AllowAny" and isinstance(inner, ast.Name | ast.Attribute):
            asked |= _strength(words(name))
    return asked


def of_dependencies(node: ast.AST | None, ours: Ours) -> frozenset[str]:
    """What `Depends(…)` and `Security(…)` ask for; `ours` tells it of the file's own functions."""
    asked = OPEN
    for inner in ast.walk(node) if node is not None else ():
        if isinstance(inner, ast.Call) and name_of(inner.func) in {"Depends", "Security"}:
            target = inner.args[0] if inner.args else None
            made = target.func if isinstance(target, ast.Call) else target
            said = words(name_of(made)) if made is not None else OPEN
            if made is not None and name_of(made) in ours:
                asked |= ours[name_of(made)]
            elif (
                said & (_WHO | _ASKS) - {"get", "load", "is", "has", "can", "validate"}
                or name_of(inner.func) == "Security"
            ):
                asked |= _strength(said | _literals(inner))
    return asked


def of_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef, ours: Ours) -> frozenset[str]:
    """What the parameters of a handler ask for: dependencies, and types that stand for who is signed in."""
    spec = function.args
    asked = OPEN
    for default in (*spec.defaults, *spec.kw_defaults):
        asked |= of_dependencies(default, ours)
    for argument in (*spec.args, *spec.kwonlyargs):
        asked |= of_dependencies(argument.annotation, ours)
        said = words(name_of(argument.annotation)) if argument.annotation is not None else OPEN
        if said & {"current", "admin", "authenticated", "auth", "principal", "identity"} and "oauth" not in said:
            asked |= _strength(said)
    return asked


def of_body(nodes: Iterable[ast.AST], ours: Ours) -> frozenset[str]:
    """What the code itself asks: a refusal, a look at who is signed in, a call of a check."""
    asked = OPEN
    for node in nodes:
        for inner in ast.walk(node):
            known = ours.get(name_of(inner.func), OPEN) if isinstance(inner, ast.Call) else OPEN
            asked |= known or _of_node(inner)
    return asked


def own_guards(functions: Iterable[ast.FunctionDef | ast.AsyncFunctionDef]) -> Ours:
    """What each function of a file asks by itself; one that only asks for other things is there with nothing."""
    return {function.name: of_body(function.body, {}) | of_parameters(function, {}) for function in functions}


def _of_node(node: ast.AST) -> frozenset[str]:  # noqa: PLR0911  # one case a form
    match node:
        case ast.Call(func=function):
            return _of_call(node, name_of(function))
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in _IDENTITIES or name in _ERRORS:
            return _strength(words(name))
        case ast.Attribute(value=ast.Name(id="request" | "g" | "self"), attr="user" | "current_user"):
            return SIGNED_IN
        case ast.Subscript(value=base, slice=ast.Constant(value=str(key))) if "session" in name_of(base):
            return SIGNED_IN if words(key) & _WHO | {"uid"} else OPEN
        case ast.Compare(left=ast.Constant(value=str(key)), comparators=[base]) if "session" in name_of(base):
            return SIGNED_IN if words(key) & _WHO | {"uid"} else OPEN
        case ast.Return(value=ast.Tuple(elts=[_, ast.Constant(value=401 | 403), *_])):
            return SIGNED_IN
        case _:
            return OPEN


def _of_call(node: ast.Call, name: str) -> frozenset[str]:
    said = words(name)
    if name in {"get", "pop"} and isinstance(node.func, ast.Attribute) and "session" in name_of(node.func.value):
        keys = _literals(node)
        return SIGNED_IN if keys & (_WHO | {"uid"}) else OPEN
    codes = [*node.args, *(k.value for k in node.keywords if k.arg in {"status_code", "status", "code"})]
    if any(_is_refusal(code) for code in codes):
        return SIGNED_IN
    if said & _ASKS and said & _WHO and not said & {"csrf", "password"}:
        return _strength(said | _literals(node))
    return (
        _strength(said | _literals(node))
        if name in {"has_perm", "has_permission", "check_object_permissions"}
        else OPEN
    )


def _is_refusal(node: ast.expr) -> bool:
    return (isinstance(node, ast.Constant) and node.value in (401, 403)) or bool(_REFUSED.search(name_of(node)))


def _strength(said: frozenset[str]) -> frozenset[str]:
    return ADMIN if said & _ADMIN else SIGNED_IN


def _literals(node: ast.AST) -> frozenset[str]:
    found: set[str] = set()
    for inner in _constants(node):
        found |= words(inner)
    return frozenset(found)


def _constants(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value
