"""The routes of a file: what they are called by, whether they change things, and what is asked of who calls. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from casemate.agents.audit.checks import guarding
from casemate.agents.audit.checks.words import words
from casemate.agents.audit.facts.definitions import name_of
from casemate.agents.audit.vocabulary.handlers import ROUTE_VERBS

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_CHANGING = frozenset({"post", "put", "patch", "delete"})
_VIEW = ("View", "APIView", "Resource", "RequestHandler", "ViewSet", "Handler", "HTTPEndpoint")
_VERBS = frozenset({"get", "post", "put", "patch", "delete"})
_ACTIONS = frozenset({"create", "update", "partial_update", "destroy"})
_MIXINS = frozenset({"Mixin", "Required"})
_HOOKS = frozenset({"prepare", "dispatch", "initial", "check_permissions", "get_permissions", "setup"})


@dataclass(frozen=True, slots=True)
class Route:
    """One way in. `family` are the routes that belong together, `said` the words of its path and name."""

    family: str
    function: _Function
    said: frozenset[str]
    changes: bool
    asked: frozenset[str]
    path: str = ""
    verbs: frozenset[str] = frozenset()


def by_decorator(function: _Function, ours: guarding.Ours) -> Iterator[Route]:
    """The route that decorators make of a function (`@app.post("/orders")`)."""
    for decorator in function.decorator_list:
        match decorator:
            case ast.Call(func=ast.Attribute(value=owner, attr=verb), args=[ast.Constant(value=str(path)), *_]):
                family = ast.unparse(owner)
            case ast.Call(func=ast.Name(id=verb), args=[ast.Constant(value=str(path)), *_]):
                family = ""
            case _:
                continue
        if verb not in ROUTE_VERBS:
            continue
        rest = [other for other in function.decorator_list if other is not decorator]
        asked = guarding.of_decorators(rest) | guarding.of_parameters(function, ours)
        asked |= guarding.of_body(function.body, ours)
        asked |= guarding.OPEN.union(*(guarding.of_dependencies(k.value, ours) for k in decorator.keywords))
        verbs = frozenset({verb}) & _VERBS or _methods(decorator) or frozenset({"get"})
        yield Route(family, function, words(path) | words(function.name), bool(verbs & _CHANGING), asked, path, verbs)
        return


def by_class(node: ast.ClassDef, classes: dict[str, ast.ClassDef], *, ours: guarding.Ours) -> Iterator[Route]:
    """The routes that the methods of a view are."""
    if not any(name_of(base).endswith(_VIEW) for base in _bases(node, classes)):
        return
    asked = _of_class(node, classes, ours=ours)
    for method in node.body:
        if isinstance(method, _Function) and method.name.removeprefix("do_").lower() in _VERBS | _ACTIONS:
            own = guarding.of_decorators(method.decorator_list) | guarding.of_body(method.body, ours)
            changes = method.name.removeprefix("do_").lower() in _CHANGING | _ACTIONS
            said = words(node.name) | words(method.name)
            yield Route(f"class {node.name}" if "do_" in method.name else "class", method, said, changes, asked | own)


def by_request(function: _Function, ours: guarding.Ours) -> Iterator[Route]:
    """Django's views: functions whose first parameter is the request."""
    names = [argument.arg for argument in function.args.args]
    if names[:1] != ["request"] or function.name.startswith("_") or any(by_decorator(function, ours)):
        return
    text = "\n".join(ast.unparse(line) for line in function.body)
    form = "request.POST" in text or "request.body" in text or ".delete()" in text or ".save()" in text
    decorators = " ".join(ast.unparse(decorator) for decorator in function.decorator_list)
    asked = guarding.of_decorators(function.decorator_list) | guarding.of_body(function.body, ours)
    yield Route("request", function, words(function.name), form or "POST" in decorators, asked)


def _bases(node: ast.ClassDef, classes: dict[str, ast.ClassDef], *, depth: int = 0) -> Iterator[ast.expr]:
    for base in node.bases:
        yield base
        known = classes.get(name_of(base))
        if known is not None and known is not node and depth < 4:
            yield from _bases(known, classes, depth=depth + 1)


def _of_class(
    node: ast.ClassDef, classes: dict[str, ast.ClassDef], *, ours: guarding.Ours, depth: int = 0
) -> frozenset[str]:
    """What a class asks for: decorators, mixins, permission classes, hooks; its own or those of its bases."""
    asked = guarding.of_decorators(node.decorator_list)
    for line in node.body:
        match line:
            case ast.Assign(targets=[ast.Name(id="permission_classes")], value=value):
                return asked | guarding.of_permissions(value)
            case ast.Assign(targets=[ast.Name(id="decorators" | "method_decorators")], value=ast.List(elts=elements)):
                asked |= guarding.of_decorators(elements)
            case ast.Assign(targets=[ast.Name(id="permission_required" | "required_permissions")]):
                asked |= guarding.ADMIN
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name in _HOOKS:
                asked |= guarding.of_body(line.body, ours) | guarding.of_decorators(line.decorator_list)
    for base in node.bases:
        name = name_of(base)
        if name.endswith(tuple(_MIXINS)) and words(name) & {
            "login",
            "permission",
            "access",
            "auth",
            "user",
            "staff",
            "admin",
        }:
            asked |= guarding.ADMIN if words(name) & {"permission", "staff", "admin"} else guarding.SIGNED_IN
        known = classes.get(name)
        if known is not None and known is not node and depth < 4:
            asked |= _of_class(known, classes, ours=ours, depth=depth + 1)
    return asked


def _methods(decorator: ast.Call) -> frozenset[str]:
    for keyword in decorator.keywords:
        if keyword.arg in {"methods", "method"}:
            found = [n.value for n in ast.walk(keyword.value) if isinstance(n, ast.Constant)]
            return frozenset(str(method).lower() for method in found)
    return frozenset()
