"""Checks of who may call: a route that asks for nothing where the routes beside it ask.

Guards that stand for a whole group (a hook before requests, a router's dependencies, a middleware) count for all of it.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from casemate.agents.audit.checks import guarding, routes
from casemate.agents.audit.checks.routes import Route
from casemate.agents.audit.checks.words import words
from casemate.agents.audit.facts.definitions import name_of
from casemate.agents.audit.facts.record import Record
from casemate.finding import Confidence

_OPEN_BY_NATURE = frozenset(
    {
        *("login", "logout", "signin", "signup", "register", "registration", "health", "healthz", "ping", "status"),
        *("static", "webhook", "webhooks", "hook", "callback", "forgot", "reset", "verify", "confirm", "activate"),
        *("token", "oauth", "public", "contact", "subscribe", "unsubscribe", "newsletter", "feedback", "search"),
        *("refresh", "csrf", "captcha", "version", "metrics", "home", "favicon", "robots", "auth", "authenticate"),
        *("readyz", "livez", "ready", "live", "healthcheck", "csp", "invite", "accept", "docs", "signout", "track"),
        *("session", "sessions", "enroll", "onboard", "ipn", "notify", "notification", "error", "sso", "saml", "quote"),
    }
)
_DESTRUCTIVE = frozenset(
    {
        *("admin", "delete", "remove", "destroy", "purge", "impersonate", "promote", "ban", "refund", "wipe", "drop"),
        *("export", "backup", "shutdown", "restart", "grant", "revoke", "truncate", "dump", "disable", "approve"),
    }
)
_HOOKS = frozenset(
    {"before_request", "before_app_request", "middleware", "on_request", "before", "hook", "before_serving"}
)
_SIGNED = re.compile(
    r"compare_digest|verify_signature|construct_event|check_signature|validate_signature", re.IGNORECASE
)
_EVERYTHING = "*"
_SIGNING_IN = frozenset({"auth", "authentication", "login", "jwt", "authenticate"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_CHANGING = frozenset({"post", "put", "patch", "delete"})


def check(record: Record) -> None:
    """Note every route that is left out of what its family asks for."""
    if not (record.speaks_web or record.imports("http", "socketserver")):
        return
    families: dict[str, list[Route]] = defaultdict(list)
    for route in _routes(record):
        families[route.family].append(route)
    if not any(any(route.changes or route.said & _DESTRUCTIVE for route in members) for members in families.values()):
        return
    covered = _covered(record.source.tree, record, ours=guarding.own_guards(record.definitions.functions))
    if _EVERYTHING in covered:
        return
    hooked = _hooked_verbs(record)
    for family, everyone in families.items():
        members = [
            replace(r, asked=r.asked | (guarding.SIGNED_IN if r.verbs & hooked else guarding.OPEN)) for r in everyone
        ]
        if family not in covered:
            for route in (*_unguarded(members), *_too_weak(members)):
                record.weak("route-without-guard", _head(route), confidence=Confidence.MEDIUM)


def _routes(record: Record) -> Iterator[Route]:
    definitions = record.definitions
    ours = guarding.own_guards(definitions.functions)
    classes = {node.name: node for node in definitions.classes}
    methods = {id(line) for node in definitions.classes for line in node.body}
    django = record.imports("django") or (record.snippet and not record.names)
    for function in definitions.functions:
        if id(function) not in methods:
            yield from routes.by_decorator(function, ours)
            if django:
                yield from routes.by_request(function, ours)
    for node in definitions.classes:
        yield from routes.by_class(node, classes, ours=ours)


def _unguarded(members: list[Route]) -> list[Route]:
    guarded = [route for route in members if route.asked]
    bare = [route for route in members if not route.asked and _is_sensitive(route) and not _is_open(route)]
    return bare if guarded and len(bare) <= max(1, len(guarded)) else []


def _too_weak(members: list[Route]) -> list[Route]:
    """An administrators' route that only asks for somebody who is signed in."""
    strong = [route for route in members if route.asked == guarding.ADMIN and "admin" in words(route.path)]
    weak = [route for route in members if route.asked == guarding.SIGNED_IN and "admin" in words(route.path)]
    return weak if strong and len(weak) <= len(strong) and all(_names_nobody(route) for route in weak) else []


def _names_nobody(route: Route) -> bool:
    return not any(isinstance(node, ast.If) and guarding.of_body([node.test], {}) for node in ast.walk(route.function))


def _is_sensitive(route: Route) -> bool:
    return route.changes or bool(route.said & _DESTRUCTIVE)


def _is_open(route: Route) -> bool:
    """Whether a route must be open, or knows its callers by a signature."""
    body = "\n".join(ast.unparse(line) for line in route.function.body)
    return bool(route.said & _OPEN_BY_NATURE) or bool(_SIGNED.search(body))


def _covered(tree: ast.Module, record: Record, *, ours: guarding.Ours) -> frozenset[str]:
    """Routers, by name, whose routes are guarded in one place; `*` for all of them."""
    found: set[str] = set()
    for function, hook in _hooks(record):
        if guarding.of_body(function.body, ours) and not _asked_verbs(function, record):
            found |= _scope(hook, record)
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[target], value=ast.Call() as made) if _asks_at_making(made, ours):
                found.add(_EVERYTHING if _is_application(made) else name_of(target))
            case ast.Call():
                found |= _covered_by(node, record, ours=ours)
    return frozenset(found)


def _covered_by(node: ast.Call, record: Record, *, ours: guarding.Ours) -> set[str]:
    """What a call puts under a guard: `before_request(check)`, `include_router(…, dependencies)`, a middleware."""
    match node:
        case ast.Call(func=ast.Attribute(attr="before_request" | "before_app_request") as hook, args=[check]):
            asks = guarding.of_decorators([check]) or ours.get(name_of(check))
            return _scope(hook, record) if asks else set()
        case ast.Call(func=ast.Attribute(attr="include_router"), args=[router, *_], keywords=keywords):
            asked = any(guarding.of_dependencies(keyword.value, ours) for keyword in keywords)
            return {ast.unparse(router)} if asked else set()
        case ast.Call(func=ast.Attribute(attr="add_middleware" | "append"), args=[middleware, *_]):
            named = words(name_of(middleware))
            return {_EVERYTHING} if named & _SIGNING_IN and "middleware" in named else set()
        case _:
            return set()


def _hooks(record: Record) -> Iterator[tuple[_Function, ast.Attribute]]:
    """Functions that run before requests, each with the decorator that says so."""
    for function in record.definitions.functions:
        for decorator in function.decorator_list:
            shown = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(shown, ast.Attribute) and shown.attr in _HOOKS:
                yield function, shown


def _hooked_verbs(record: Record) -> frozenset[str]:
    """Verbs for which a hook asks, where it only asks for some (`if request.method in {"POST", "PUT"}`)."""
    asking = (function for function, _ in _hooks(record) if guarding.of_body(function.body, {}))
    return frozenset[str]().union(*(_asked_verbs(function, record) for function in asking))


def _asked_verbs(function: _Function, record: Record) -> frozenset[str]:
    """The verbs that a test of `request.method` names; none where it names those that are let through."""
    tests = [(line, n) for line in ast.walk(function) if isinstance(line, ast.If) for n in ast.walk(line.test)]
    for line, node in tests:
        if not isinstance(node, ast.Compare) or name_of(node.left) != "method" or len(node.ops) != 1:
            continue
        leaves = isinstance(line.body[0], ast.Return) and line.body[0].value is None
        asks = isinstance(node.ops[0], (ast.NotIn | ast.NotEq) if leaves else (ast.In | ast.Eq))
        verbs = frozenset(text.lower() for text in _texts(node.comparators[0], record)) & _CHANGING
        if asks and verbs:
            return verbs
    return frozenset()


def _texts(node: ast.expr, record: Record) -> list[str]:
    """The texts of a set of verbs, written here or under a name."""
    given = [b.value for b in record.definitions.bindings.get(node.id, [])] if isinstance(node, ast.Name) else [node]
    return [
        n.value for value in given for n in ast.walk(value) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    ]


def _scope(hook: ast.Attribute, record: Record) -> set[str]:
    """What a hook stands before: its router, or everything where that is the application."""
    owner = name_of(hook.value)
    made = [binding.value for binding in record.definitions.bindings.get(owner, [])]
    whole = hook.attr == "before_app_request" or any(_is_application(value) for value in made) or owner == "app"
    return {_EVERYTHING} if whole else {ast.unparse(hook.value)}


def _is_application(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and name_of(node.func) in {
        "Flask",
        "FastAPI",
        "Quart",
        "Application",
        "Starlette",
        "Sanic",
    }


def _asks_at_making(node: ast.Call, ours: guarding.Ours) -> bool:
    for keyword in node.keywords:
        if keyword.arg == "dependencies" and guarding.of_dependencies(keyword.value, ours):
            return True
        names = (
            [words(name_of(inner)) for inner in ast.walk(keyword.value)]
            if keyword.arg in {"middlewares", "middleware"}
            else []
        )
        if any(said & {"auth", "authentication", "login", "jwt", "authenticate", "session_guard"} for said in names):
            return True
    return False


def _head(route: Route) -> ast.AST:
    """The line of the function's name."""
    node = route.function
    return ast.Constant(
        value="", lineno=node.lineno, end_lineno=node.lineno, col_offset=node.col_offset, end_col_offset=200
    )
