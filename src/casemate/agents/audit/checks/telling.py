"""Checks of what is told: secrets in logs, the inside of the program in answers."""

from __future__ import annotations

import ast
import re

from casemate.agents.audit.checks.words import words
from casemate.agents.audit.facts.definitions import name_of, own_expressions
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.vocabulary.handlers import ROUTE_VERBS
from casemate.finding import Confidence

_LOGS = ("debug", "info", "warning", "warn", "error", "critical", "exception", "log", "print")
_SENSITIVE = frozenset(
    {
        *("password", "passwd", "pwd", "passphrase", "ssn", "cvv", "cvc", "secret", "apikey", "creditcard", "passcode"),
        *("authorization", "privatekey", "pin"),
    }
)
_SENSITIVE_PAIRS = tuple(
    frozenset(pair.split())
    for pair in [
        "api key",
        "access token",
        "auth token",
        "refresh token",
        "reset token",
        "session token",
        "api token",
        "bearer token",
        "card number",
        "credit card",
        "private key",
        "secret key",
        "access key",
        "session id",
        "jwt token",
        "id token",
        "social security",
    ]
)
_ABOUT = frozenset(
    {
        *("reset", "policy", "length", "hash", "hashed", "field", "url", "id", "count", "expired", "expires", "valid"),
        *("name", "type", "masked", "redacted", "len", "path", "file", "is", "has", "required", "version", "digest"),
        *("strength", "rules", "error", "message", "prompt", "ok", "check", "attempts", "mask", "safe", "env"),
        *("hint", "shown"),
    }
)
_BROAD = frozenset(
    {
        "Exception",
        "BaseException",
        "Error",
        "DatabaseError",
        "OperationalError",
        "SQLAlchemyError",
        "OSError",
        "IOError",
    }
)
_ANSWERS = re.compile(
    r"Response$|^jsonify$|^json_response$|^make_response$|^HTTPException$|^HttpResponse|^write$|^abort$"
)
_TRACES = frozenset({"format_exc", "format_exception", "print_exc", "format_tb", "exc_info", "format_stack"})


def _logged(here: Point, invocation: Invocation) -> None:
    """A password's own value in a log line."""
    owner, _, last = invocation.name.rpartition(".")
    if "log" not in owner.lower() and last != "print":
        return
    given = [*invocation.node.args, *(k.value for k in invocation.node.keywords if k.arg in {"extra", None})]
    if any(_shows_secret(argument) for argument in given):
        here.record.weak("secret-in-log", invocation.node, confidence=Confidence.MEDIUM)


def _shows_secret(node: ast.expr) -> bool:  # noqa: PLR0911  # one case a form
    """Whether a secret's value is in the text as it is: not its length, not the result of a comparison."""
    match node:
        case ast.Name() | ast.Attribute() | ast.Subscript(slice=ast.Constant()):
            return _is_sensitive(name_of(node))
        case ast.Call(func=ast.Attribute(attr="get" | "getlist"), args=[ast.Constant(value=str(key)), *_]):
            return _is_sensitive(key)
        case ast.JoinedStr(values=parts) | ast.Tuple(elts=parts) | ast.Dict(values=parts):
            return any(_shows_secret(part) for part in parts)
        case ast.FormattedValue(value=value):
            return _shows_secret(value)
        case ast.BinOp(left=left, right=right):
            return _shows_secret(left) or _shows_secret(right)
        case ast.Call(func=ast.Attribute(attr="format"), args=args, keywords=keywords):
            return any(_shows_secret(argument) for argument in (*args, *(k.value for k in keywords)))
        case ast.Call(func=ast.Name(id="str" | "repr"), args=[inner]):
            return _shows_secret(inner)
        case _:
            return False


def _is_sensitive(name: str) -> bool:
    said = words(name)
    pair = next((pair for pair in _SENSITIVE_PAIRS if pair <= said), frozenset[str]())
    return bool(said & _SENSITIVE or pair) and not (said - pair) & _ABOUT


def handler(record: Record, node: ast.ExceptHandler) -> None:
    """What an unexpected error says, sent to whoever asked."""
    if not record.speaks_web or not _is_broad(node):
        return
    function = record.definitions.around(node.lineno)
    if function is None or not _is_handler(function):
        return
    for part in node.body:
        for line in ast.walk(part):
            if isinstance(line, ast.Return | ast.Expr | ast.Raise) and _tells(line, node.name or ""):
                record.weak("error-details-sent", line, confidence=Confidence.MEDIUM)
                return


def _is_broad(node: ast.ExceptHandler) -> bool:
    kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    return any(kind is None or name_of(kind) in _BROAD for kind in kinds)


def _is_handler(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    routed = any(isinstance(d, ast.Call) and name_of(d.func) in ROUTE_VERBS for d in function.decorator_list)
    names = [argument.arg for argument in function.args.args]
    return routed or "request" in names or (names[:1] == ["self"] and function.name in {"get", "post", "put", "delete"})


def _tells(line: ast.Return | ast.Expr | ast.Raise, name: str) -> bool:
    """Whether a statement answers with the error's text or its trace."""
    for expression in own_expressions(line):
        answers = isinstance(line, ast.Return) or any(
            isinstance(n, ast.Call) and _ANSWERS.search(name_of(n.func)) for n in ast.walk(expression)
        )
        if answers and any(_is_detail(inner, name) for inner in ast.walk(expression)):
            return True
    return False


def _is_detail(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Call(func=function) if name_of(function) in _TRACES:
            return True
        case ast.Call(func=ast.Name(id="str" | "repr"), args=[ast.Name(id=shown)]):
            return shown == name
        case ast.FormattedValue(value=ast.Name(id=shown)):
            return shown == name
        case ast.Attribute(value=ast.Name(id=shown), attr="args" | "message" | "__traceback__"):
            return shown == name
        case ast.BinOp(op=ast.Mod(), right=ast.Name(id=shown)):
            return shown == name
        case _:
            return False


TABLES = (dict.fromkeys(_LOGS, _logged),)
