"""Checks of switches in the wrong position: TLS, debugging, cookies, CSRF; as arguments and as settings."""

from __future__ import annotations

import ast
import re

from casemate.agents.audit.checks.secrets import words
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.syntax import place
from casemate.agents.audit.facts.values import NOTHING, Value
from casemate.finding import Confidence

_HTTP_CLIENTS = re.compile(
    r"^(?:requests|httpx|aiohttp|urllib3)\b|(?:Session|Client)\(\)\.|^\.(?:get|post|put|patch|delete|head|request|send)$|session|client",
    re.IGNORECASE,
)
_APPLICATIONS = frozenset({"FastAPI", "Starlette", "Application", "Flask"})
_COOKIE_WORDS = frozenset(
    {
        "session",
        "token",
        "auth",
        "sid",
        "sess",
        "jwt",
        "remember",
        "login",
        "sessionid",
        "access",
        "refresh",
        "csrftoken",
        "credential",
    }
)
_COOKIE_SWITCHES = {
    "SESSION_COOKIE_SECURE": "cookie-without-secure",
    "CSRF_COOKIE_SECURE": "cookie-without-secure",
    "REMEMBER_COOKIE_SECURE": "cookie-without-secure",
    "SESSION_COOKIE_HTTPONLY": "cookie-without-httponly",
    "REMEMBER_COOKIE_HTTPONLY": "cookie-without-httponly",
    "WTF_CSRF_ENABLED": "csrf-protection-off",
    "WTF_CSRF_CHECK_DEFAULT": "csrf-protection-off",
}


def assigned(record: Record, target: ast.expr, *, value: Value) -> None:
    """Checks of an assignment to a setting."""
    name = name_of(target)
    off, on = value.constant is False, value.constant is True
    if name in _COOKIE_SWITCHES and off:
        record.weak(_COOKIE_SWITCHES[name], target)
    elif on and ((name == "DEBUG" and _is_settings(record, target)) or (name == "debug" and _is_app(record, target))):
        record.weak("debug-enabled", target)
    elif (
        (name == "verify_mode" and value.name.endswith("CERT_NONE"))
        or (name == "check_hostname" and off and "CERT_NONE" not in "".join(record.source.lines))
        or (name == "_create_default_https_context" and "unverified" in value.name)
        or (name == "verify" and off and isinstance(target, ast.Attribute) and record.imports("requests"))
    ):
        record.weak("certificate-not-verified", target)


def name_of(node: ast.AST) -> str:
    """The last name of a target: a variable, an attribute, a constant key."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case _:
            return ""


def _is_app(record: Record, target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute) and record.speaks_web


def _is_settings(record: Record, target: ast.expr) -> bool:
    if isinstance(target, ast.Subscript):
        return "config" in place(target)
    text = "\n".join(record.source.lines)
    named = record.name.rpartition(".")[2] in {"settings", "config", "local_settings", "production"}
    return isinstance(target, ast.Name) and (named or "INSTALLED_APPS" in text or "MIDDLEWARE" in text)


def _configuration(here: Point, invocation: Invocation) -> None:
    """`app.config.update(SESSION_COOKIE_SECURE=False)`, `from_mapping`, `dict(...)` of settings."""
    if invocation.name.rpartition(".")[2] not in {"update", "from_mapping"}:
        return
    for keyword in invocation.node.keywords:
        value = invocation.keywords.get(keyword.arg or "", NOTHING)
        if keyword.arg in _COOKIE_SWITCHES and value.constant is False:
            here.record.weak(_COOKIE_SWITCHES[keyword.arg], keyword)
        elif keyword.arg == "DEBUG" and value.constant is True:
            here.record.weak("debug-enabled", keyword)


def _certificates(here: Point, invocation: Invocation) -> None:
    name, keywords = invocation.name, invocation.keywords
    off = any(keywords.get(key, NOTHING).constant is False for key in ("verify", "verify_ssl", "ssl", "verify_certs"))
    if (
        (off and _HTTP_CLIENTS.search(name) and not name.startswith("jwt"))
        or name == "ssl._create_unverified_context"
        or str(keywords.get("cert_reqs", NOTHING).constant) == "CERT_NONE"
        or keywords.get("cert_reqs", NOTHING).name.endswith("CERT_NONE")
        or (
            name.endswith(".set_missing_host_key_policy")
            and any(re.search(r"(?:AutoAdd|Warning)Policy", argument.name) for argument in invocation.args)
        )
    ):
        here.record.weak("certificate-not-verified", invocation.node)


def _debugging(here: Point, invocation: Invocation) -> None:
    """`app.run(debug=True)`, whoever made the application; `asyncio.run` means something else by it."""
    owner, _, last = invocation.name.rpartition(".")
    if invocation.keywords.get("debug", NOTHING).constant is not True or owner in {"asyncio", "anyio", "trio"}:
        return
    if (last == "run" and owner) or (last in _APPLICATIONS and here.record.speaks_web):
        here.record.weak("debug-enabled", invocation.node)


def _cookies(here: Point, invocation: Invocation) -> None:
    if not invocation.name.endswith((".set_cookie", ".set_signed_cookie")):
        return
    key = invocation.argument(0, "key").constant
    sensitive = isinstance(key, str) and bool(words(key) & _COOKIE_WORDS)
    for flag, rule in (("secure", "cookie-without-secure"), ("httponly", "cookie-without-httponly")):
        given = invocation.keywords.get(flag)
        if (given is None and sensitive and "**" not in invocation.keywords) or (
            given is not None and given.constant is False
        ):
            here.record.weak(
                rule, invocation.node, confidence=Confidence.HIGH if given is not None else Confidence.MEDIUM
            )


CHECKS = (_configuration, _certificates, _debugging, _cookies)
