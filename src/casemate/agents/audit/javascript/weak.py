"""JavaScript that is weak by itself: transport, cookies, origins, permissions, answers that tell too much, secrets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tree_sitter import Node

from casemate.agents.audit.checks import secrets
from casemate.agents.audit.checks.words import words
from casemate.agents.audit.javascript.cryptography import ciphered, hashed, keyed, random, token
from casemate.agents.audit.javascript.notes import Notes, Visit
from casemate.agents.audit.javascript.purpose import arguments, call_name, literal, named_in, options, owner_text
from casemate.agents.audit.javascript.source import descendants, text_of
from casemate.finding import Confidence

_SENSITIVE = frozenset(
    {
        *("session", "token", "auth", "sid", "sess", "jwt", "remember", "login", "sessionid", "access", "refresh"),
        *("csrftoken", "credential", "ssid", "sso", "authorization", "identity", "apikey", "bearer"),
    }
)
_FLAGS = (("secure", "cookie-without-secure"), ("httpOnly", "cookie-without-httponly"))
_UNVERIFIED = frozenset({"rejectUnauthorized", "strictSSL", "rejectUnAuthorized"})
_ANYBODY_WRITES = frozenset({"0o777", "0o666", "0777", "0666", "511", "438", "'777'", '"777"', "'0777'", '"0777"'})
_NAMES = {
    "pair": ("key", "value"),
    "variable_declarator": ("name", "value"),
    "assignment_expression": ("left", "right"),
}
_OWNERS_OF_ERRORS = frozenset({"err", "error", "e", "ex", "exception"})


def _pair(notes: Notes, node: Node) -> None:
    """`rejectUnauthorized: false`, and a check of the other side's name that checks nothing."""
    key, value = text_of(node.child_by_field_name("key")).strip("'\""), node.child_by_field_name("value")
    if value is None:
        return
    if key in _UNVERIFIED and value.type == "false":
        notes.weak("certificate-not-verified", node)
    elif key == "checkServerIdentity" and value.type in {"arrow_function", "function_expression"}:
        body = value.child_by_field_name("body")
        if body is not None and text_of(body).replace(" ", "") in {
            "{}",
            "undefined",
            "null",
            "{return;}",
            "{returnundefined;}",
        }:
            notes.weak("certificate-not-verified", node)


def _assigned(notes: Notes, node: Node) -> None:
    """`process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0"`."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    target = text_of(left)
    if ("NODE_TLS_REJECT_UNAUTHORIZED" in target and text_of(right).strip("'\"") == "0") or (
        target.endswith(".rejectUnauthorized") and right is not None and right.type == "false"
    ):
        notes.weak("certificate-not-verified", node)


def _cookie(notes: Notes, node: Node) -> None:
    """`res.cookie(name, value, options)`: flags of cookies that say who somebody is."""
    given = arguments(node)
    if call_name(node) != "cookie" or len(given) < 2 or not owner_text(node).startswith(("res", "reply")):
        return
    name = literal(given[0])
    sensitive = bool((words(name) if name is not None else named_in(given[0])) & _SENSITIVE)
    if len(given) > 2 and given[2].type != "object":
        return
    flags = options(given[2]) if len(given) > 2 else {}
    for flag, rule in _FLAGS:
        value = flags.get(flag)
        if value is None and sensitive and "..." not in flags:
            notes.weak(rule, node, confidence=Confidence.MEDIUM)
        elif value is not None and value.type == "false" and sensitive:
            notes.weak(rule, node)
    if sensitive and literal(flags.get("sameSite")) in {"none", "None"}:
        notes.weak("cookie-for-other-sites", node)


def _session(notes: Notes, node: Node) -> None:
    """`session({cookie: {secure: false}})`."""
    if call_name(node) not in {"session", "cookieSession", "expressSession"} or owner_text(node):
        return
    given = arguments(node)
    outer = options(given[0]) if given else {}
    flags = options(outer["cookie"]) if "cookie" in outer else outer
    for flag, rule in _FLAGS:
        if flag in flags and flags[flag].type == "false":
            notes.weak(rule, node)


def _origins(notes: Notes, node: Node) -> None:
    """`cors({origin: true, credentials: true})`: every site may read for the visitor."""
    given = arguments(node)
    if call_name(node) != "cors" or owner_text(node) or not given:
        return
    chosen = options(given[0])
    every = text_of(chosen.get("origin")).strip("'\"") in {"true", "*"}
    if every and text_of(chosen.get("credentials")) == "true":
        notes.weak("cross-origin-open", node)


def _origin_header(notes: Notes, node: Node) -> None:
    """The asking site is let in, whoever it is, with the visitor's cookies."""
    given = arguments(node)
    if call_name(node) not in {"header", "setHeader", "set", "append"} or len(given) != 2:
        return
    name = (literal(given[0]) or "").lower()
    reflected = text_of(given[1]).endswith(("headers.origin", "headers['origin']", 'headers["origin"]'))
    if name == "access-control-allow-origin" and reflected and b"Access-Control-Allow-Credentials" in notes.file.data:
        notes.weak("cross-origin-open", node)


def _permissions(notes: Notes, node: Node) -> None:
    given = arguments(node)
    changes = call_name(node) in {"chmod", "chmodSync", "fchmod", "fchmodSync"} and len(given) > 1
    if changes and text_of(given[1]) in _ANYBODY_WRITES:
        notes.weak("world-writable-file", node)


def _uploads(notes: Notes, node: Node) -> None:
    """Files that are kept under the name that they were sent with, its ending too, and none is turned away."""
    given = arguments(node)
    if call_name(node) != "diskStorage" or not given or b"fileFilter" in notes.file.data:
        return
    naming = options(given[0]).get("filename")
    if naming is not None and ".originalname" in text_of(naming):
        notes.weak("unrestricted-upload", node, confidence=Confidence.MEDIUM)


def _told(notes: Notes, node: Node) -> None:
    """`res.send(err.stack)`: the trace goes to whoever asked."""
    if call_name(node) not in {"send", "json", "end", "write"} or not owner_text(node).startswith(("res", "reply")):
        return
    for argument in arguments(node):
        for part in descendants(argument):
            owner = text_of(part.child_by_field_name("object"))
            if part.type == "member_expression" and text_of(part).endswith(".stack") and owner in _OWNERS_OF_ERRORS:
                notes.weak("error-details-sent", node)
                return


def found_secrets(nodes: Iterable[Node]) -> list[tuple[Node, str, Confidence]]:
    """Every literal that is a secret, by its own form or by the name that it is given to, with its text."""
    found: dict[int, tuple[Node, str, Confidence]] = {}
    for node in nodes:
        for value, text, sure in _by_name(node) if node.type in _NAMES else _by_form(node):
            found.setdefault(value.start_byte, (value, text, sure))
    return list(found.values())


def _by_name(node: Node) -> Iterator[tuple[Node, str, Confidence]]:
    for name, value in _named(node):
        text = literal(value)
        sure = secrets.as_named(name, text) if text else None
        if text and sure is not None:
            yield value, text, sure


def _by_form(node: Node) -> Iterator[tuple[Node, str, Confidence]]:
    if node.type in {"string", "template_string"}:
        yield from ((node, text, Confidence.HIGH) for _, text in secrets.in_text(text_of(node)))


def _named(node: Node) -> Iterator[tuple[str, Node]]:
    """A name and the literal that it is given; also the fallback of `process.env.X || "…"`."""
    key, content = (node.child_by_field_name(name) for name in _NAMES[node.type])
    if content is None:
        return
    name = text_of(key).strip("'\"").rpartition(".")[2]
    if content.type == "binary_expression" and text_of(content.child_by_field_name("operator")) in {"||", "??"}:
        content = content.child_by_field_name("right") or content
    if name != "credentials":  # of a request: who may be sent along, not what
        yield name, content


CHECKS: Mapping[str, tuple[Visit, ...]] = {
    "pair": (_pair,),
    "assignment_expression": (_assigned,),
    "call_expression": (
        *(_uploads, _cookie, _session, _origins, _origin_header, _permissions, _told),
        *(hashed, ciphered, keyed, random, token),
    ),
}
"""Checks by the type of the node that they look at."""
