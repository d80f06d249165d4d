"""Checks of what a file declares: classes, assertions, decorators; by syntax, once a file."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping

from casemate.agents.audit.checks import telling
from casemate.agents.audit.checks.words import words
from casemate.agents.audit.facts.definitions import name_of
from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.syntax import nodes, walk
from casemate.finding import Confidence

_BOUND = re.compile(r"(?:Model(?:Form|Serializer)|CreateView|UpdateView|ModelResource|ModelSchema)$")
_SEALS = re.compile(
    r"compare_digest|construct_event|verify_signature|verify_webhook|validate_signature|check_signature|\.verify\(|hmac|signature",
    re.IGNORECASE,
)
_RIGHTS = frozenset(
    {
        *("admin", "superuser", "staff", "permission", "permissions", "authenticated", "authorized", "owner", "role"),
        *("roles", "allowed", "logged", "privileged", "authorised", "perm", "perms", "scopes"),
    }
)
_WHO = frozenset({"user", "request", "current", "account", "session", "member", "principal", "identity", "caller"})


def check(record: Record) -> None:
    """Every declaration of the file."""
    for node in nodes(record.source.tree):
        found = _CHECKS.get(type(node))
        if found is not None:
            found(record, node)


def _assertion(record: Record, node: ast.Assert) -> None:
    """A right that is only asserted; in tests that is what assertions are for."""
    function = record.definitions.around(node.lineno)
    in_test = "test" in record.source.path.lower() or (function is not None and function.name.startswith("test"))
    if in_test or function is None:
        return
    names = [n for n in ast.walk(node.test) if isinstance(n, ast.Attribute | ast.Call | ast.Name)]
    said = frozenset[str]().union(*(words(name_of(n.func if isinstance(n, ast.Call) else n)) for n in names))
    literals = {str(n.value) for n in ast.walk(node.test) if isinstance(n, ast.Constant)}
    if said & _WHO and (said & _RIGHTS or literals & {"admin", "is_admin", "user_id"}):
        record.weak("assertion-as-guard", node, confidence=Confidence.MEDIUM)


def _class(record: Record, node: ast.ClassDef) -> None:
    bases = [name_of(base) for base in node.bases]
    for decorator in node.decorator_list:
        if "csrf_exempt" in ast.unparse(decorator) and not _is_sealed(node):
            record.weak("csrf-protection-off", decorator, confidence=Confidence.MEDIUM)
    if any(_BOUND.search(base) for base in bases):
        _fields(record, node)
    if any("SessionAuthentication" in base for base in bases):
        _enforcement(record, node, name="enforce_csrf")
    if any("RequestHandler" in base for base in bases):
        _enforcement(record, node, name="check_xsrf_cookie")
    if any(isinstance(line, ast.Assign | ast.ClassDef) for line in node.body):
        _open_model(record, node)
    if any(base.endswith("Form") for base in bases):
        _form_meta(record, node)


def _fields(record: Record, node: ast.ClassDef) -> None:
    """`fields = "__all__"`, in the class or its `Meta`; everything but a few is everything that comes later too."""
    holders = [
        node,
        *(inner for inner in node.body if isinstance(inner, ast.ClassDef) and inner.name in {"Meta", "Config"}),
    ]
    for holder in holders:
        for line in holder.body:
            match line:
                case ast.Assign(targets=[ast.Name(id="fields")], value=ast.Constant(value="__all__")):
                    record.weak("model-exposed-whole", line, confidence=Confidence.MEDIUM)
                case ast.Assign(targets=[ast.Name(id="exclude")], value=ast.List() | ast.Tuple()) if holder is not node:
                    record.weak("model-exposed-whole", line, confidence=Confidence.LOW)


def _open_model(record: Record, node: ast.ClassDef) -> None:
    """A model of a request that takes fields nobody declared, in a file that passes all of them on."""
    holders = [node, *(inner for inner in node.body if isinstance(inner, ast.ClassDef) and inner.name == "Config")]
    for line in (line for holder in holders for line in holder.body):
        if not isinstance(line, ast.Assign):
            continue
        named = name_of(line.targets[0]) in {"extra", "model_config"}
        text = ast.unparse(line)
        if named and (
            "extra='allow'" in text or "'extra': 'allow'" in text or "Extra.allow" in text or text == "extra = 'allow'"
        ):
            calls = record.definitions.callers
            if "model_dump" in calls or "dict" in calls:
                record.weak("model-exposed-whole", line, confidence=Confidence.MEDIUM)


def _enforcement(record: Record, node: ast.ClassDef, *, name: str) -> None:
    """The method that looks at forged requests, replaced by one that does nothing."""
    for method in node.body:
        if (
            isinstance(method, ast.FunctionDef)
            and method.name == name
            and all(_is_nothing(line) for line in method.body)
        ):
            record.weak("csrf-protection-off", method, confidence=Confidence.HIGH)


def _is_nothing(line: ast.stmt) -> bool:
    match line:
        case ast.Pass() | ast.Expr(value=ast.Constant()) | ast.Return(value=None | ast.Constant()):
            return True
        case _:
            return False


def _form_meta(record: Record, node: ast.ClassDef) -> None:
    inner = (line for line in node.body if isinstance(line, ast.ClassDef) and line.name == "Meta")
    for line in (line for meta in inner for line in meta.body):
        match line:
            case ast.Assign(targets=[ast.Name(id="csrf")], value=ast.Constant(value=False)):
                record.weak("csrf-protection-off", line)


def _function(record: Record, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    _opened_token(record, node)
    for decorator in node.decorator_list:
        shown = decorator.func if isinstance(decorator, ast.Call) else decorator
        name, text = name_of(shown), ast.unparse(decorator)
        exempt = "csrf_exempt" in text or (name == "exempt" and "csrf" in text)
        if exempt and not _is_sealed(node):
            record.weak("csrf-protection-off", decorator, confidence=Confidence.MEDIUM)


def _opened_token(record: Record, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """A token that is cut at its dots and unpacked by hand, in a file that checks no signature."""
    calls = record.definitions.callers
    if not ({"b64decode", "urlsafe_b64decode"} & calls.keys() and "loads" in calls and "split" in calls):
        return
    opened = [
        n
        for n in walk(node)
        if isinstance(n, ast.Call) and name_of(n.func) == "loads" and "b64decode" in ast.unparse(n)
    ]
    text = "\n".join(record.source.lines) if opened else ""
    token = re.search(r"token|jwt|bearer", text, re.IGNORECASE) and re.search(r"split\(b?['\"]\.", text)
    if opened and token and not re.search(r"hmac|\bverify\w*\(|compare_digest|\bjws\b|signature", text, re.IGNORECASE):
        record.weak("jwt-not-verified", opened[0], confidence=Confidence.MEDIUM)


def _is_sealed(node: ast.AST) -> bool:
    """Whether a handler that takes no forms checks the sender's signature, as those of other machines do."""
    body = getattr(node, "body", [])
    return bool(_SEALS.search("\n".join(ast.unparse(line) for line in body)))


def _exempted(record: Record, node: ast.Call) -> None:
    """`path("x", csrf_exempt(view))`, `csrf.exempt(blueprint)`."""
    if name_of(node.func) == "csrf_exempt" or (name_of(node.func) == "exempt" and "csrf" in ast.unparse(node.func)):
        target = name_of(node.args[0]) if node.args else ""
        function = next((f for f in record.definitions.functions if f.name == target), None)
        if node.args and not (function is not None and _is_sealed(function)):
            record.weak("csrf-protection-off", node, confidence=Confidence.MEDIUM)


def _loop(record: Record, node: ast.For) -> None:
    """Two texts compared character by character, up to the first that differs."""
    match node:
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(id=one), ast.Name(id=two)]),
            iter=ast.Call(func=ast.Name(id="zip"), args=[_, _]),
            body=[
                ast.If(
                    test=ast.Compare(left=ast.Name(id=left), ops=[ast.NotEq()], comparators=[ast.Name(id=right)])
                ) as test
            ],
        ) if {left, right} == {one, two}:
            early = any(isinstance(line, ast.Return | ast.Break) for line in test.body)
        case _:
            return
    function = record.definitions.around(node.lineno)
    if early and function is not None and _compares_secrets(record, function):
        record.weak("timing-comparison", node, confidence=Confidence.MEDIUM)


def _compares_secrets(record: Record, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """By the names of what it is given, here or where it is called."""
    said = set(words(function.name)) | {w for a in function.args.args for w in words(a.arg)}
    for line, _ in record.definitions.callers.get(function.name, []):
        for inner in ast.walk(line):
            if isinstance(inner, ast.Call) and name_of(inner.func) == function.name:
                said |= {w for argument in inner.args for w in words(name_of(argument))}
    return bool(
        said & {"key", "token", "secret", "signature", "digest", "mac", "hmac", "password", "otp", "pin", "presented"}
    )


def _call(record: Record, node: ast.Call) -> None:
    name = name_of(node.func)
    if name in {"csrf_exempt", "exempt"}:
        _exempted(record, node)
    elif name in {"modelform_factory", "inlineformset_factory", "modelformset_factory"}:
        for keyword in node.keywords:
            if keyword.arg == "fields" and isinstance(keyword.value, ast.Constant) and keyword.value.value == "__all__":
                record.weak("model-exposed-whole", node, confidence=Confidence.MEDIUM)


_CHECKS: Mapping[type[ast.AST], Callable[..., None]] = {
    ast.Assert: _assertion,
    ast.ClassDef: _class,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ExceptHandler: telling.handler,
    ast.Call: _call,
    ast.For: _loop,
}
