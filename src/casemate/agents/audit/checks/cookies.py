"""Checks of cookies: flags of those that say who somebody is."""

from __future__ import annotations

import ast
import re

from casemate.agents.audit.checks.purpose import named
from casemate.agents.audit.checks.words import words
from casemate.agents.audit.facts.definitions import key_of, name_of
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.values import NOTHING, Value
from casemate.finding import Confidence

SWITCHES = {
    "SESSION_COOKIE_SECURE": "cookie-without-secure",
    "CSRF_COOKIE_SECURE": "cookie-without-secure",
    "REMEMBER_COOKIE_SECURE": "cookie-without-secure",
    "JWT_COOKIE_SECURE": "cookie-without-secure",
    "SESSION_COOKIE_HTTPONLY": "cookie-without-httponly",
    "REMEMBER_COOKIE_HTTPONLY": "cookie-without-httponly",
}
"""Settings that must not be false."""
_SENSITIVE = frozenset(
    {
        *("session", "token", "auth", "sid", "sess", "jwt", "remember", "login", "sessionid", "access", "refresh"),
        *("csrftoken", "credential", "ssid", "sso", "authorization", "identity", "apikey", "bearer"),
    }
)
_FLAGS = (("secure", 6, "cookie-without-secure"), ("httponly", 7, "cookie-without-httponly"))


def _set_cookie(here: Point, invocation: Invocation) -> None:
    spread = invocation.keywords.get("**")
    known = {str(key): value for key, value in (spread.items or {}).items()} if spread is not None else {}
    opaque = spread is not None and not known
    keywords = {**known, **invocation.keywords}
    if _is_removal(invocation, keywords):
        return
    sensitive = _is_sensitive(invocation)
    for flag, position, rule in _FLAGS:
        given = keywords.get(flag, keywords.get(flag.title(), NOTHING))
        if given is NOTHING and not invocation.name.endswith("set_secure_cookie"):
            given = invocation.argument(position)
        if given is NOTHING and sensitive and not opaque:
            here.record.weak(rule, invocation.node, confidence=Confidence.MEDIUM)
        elif given.constant is False and (flag == "secure" or sensitive):
            here.record.weak(rule, invocation.node)
    _same_site(here, invocation, given=keywords.get("samesite", NOTHING), sensitive=sensitive)


def _same_site(here: Point, invocation: Invocation, *, given: Value, sensitive: bool) -> None:
    if sensitive and isinstance(given.constant, str) and given.constant.lower() == "none":
        here.record.weak("cookie-for-other-sites", invocation.node)


def _is_sensitive(invocation: Invocation) -> bool:
    """By the cookie's name; where that is not known, by what is put into it."""
    key = invocation.argument(0, "key" if "key" in invocation.keywords else "name").constant
    if isinstance(key, str):
        return bool(words(key) & _SENSITIVE)
    given = [*invocation.node.args[:2], *(k.value for k in invocation.node.keywords if k.arg in {"key", "value"})]
    return any(named(node) & _SENSITIVE for node in given)


def _is_removal(invocation: Invocation, keywords: dict[str, Value]) -> bool:
    value = invocation.argument(1, "value").constant
    return value == "" or any(keywords.get(key, NOTHING).constant == 0 for key in ("max_age", "expires"))


def _session_middleware(here: Point, invocation: Invocation) -> None:
    """Sessions in a cookie that also goes over plain HTTP: `https_only=False`, `secure=False`."""
    last = invocation.name.rpartition(".")[2]
    first = invocation.argument(0).name.rpartition(".")[2]
    if {last, first} & {"SessionMiddleware", "EncryptedCookieStorage", "SimpleCookieStorage", "ServerSideSession"}:
        for key in ("https_only", "secure"):
            if invocation.keywords.get(key, NOTHING).constant is False:
                here.record.weak("cookie-without-secure", invocation.node)
        if invocation.keywords.get("httponly", NOTHING).constant is False:
            here.record.weak("cookie-without-httponly", invocation.node)


def _named_flags(here: Point, invocation: Invocation) -> None:
    for key, rule in (("cookie_secure", _FLAGS[0][2]), ("cookie_httponly", _FLAGS[1][2])):
        if invocation.keywords.get(key, NOTHING).constant is False:
            here.record.weak(rule, invocation.node)


def morsel(record: Record, target: ast.expr) -> bool:
    """Whether a session is put into a `SimpleCookie` by a file that never speaks of `secure`."""
    if not isinstance(target, ast.Subscript) or not record.imports("http", "Cookie"):
        return False
    made = record.definitions.bindings.get(key_of(target.value), [])
    if not any(isinstance(b.value, ast.Call) and name_of(b.value.func) in {"SimpleCookie", "BaseCookie"} for b in made):
        return False
    text = "\n".join(record.source.lines).lower()
    return bool(words(name_of(target)) & _SENSITIVE) and not re.search(r"[\"';\s]secure\b", text)


def assigned(target: ast.expr, *, value: Value) -> str:
    """The rule that an assignment breaks (`SESSION_COOKIE_SECURE = False`, `cookies["sid"]["secure"] = False`)."""
    name = name_of(target)
    if value.constant is False and name in SWITCHES:
        return SWITCHES[name]
    if isinstance(target, ast.Subscript) and name in {"secure", "httponly"} and value.constant is False:
        return f"cookie-without-{name}" if "cookie" in ast.unparse(target.value).lower() else ""
    if name in {"SESSION_COOKIE_SAMESITE", "CSRF_COOKIE_SAMESITE"}:
        return "cookie-for-other-sites" if value.constant in {"None", "none"} or value.constant is False else ""
    return ""


TABLES = (
    dict.fromkeys(("set_cookie", "set_signed_cookie", "set_secure_cookie", "add_cookie"), _set_cookie),
    dict.fromkeys(("add_middleware", "Middleware", "SessionMiddleware"), _session_middleware),
    dict.fromkeys(("EncryptedCookieStorage", "SimpleCookieStorage"), _session_middleware),
)
KEYWORDS = (dict.fromkeys(("cookie_secure", "cookie_httponly"), _named_flags),)
