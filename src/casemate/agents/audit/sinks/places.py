"""Places in which untrusted data does harm when it is put there: the session, headers and pages of an answer."""

from __future__ import annotations

from casemate.agents.audit.facts.sink import Sink
from casemate.agents.audit.facts.values import NOTHING, Value
from casemate.agents.audit.vocabulary.frameworks import AUTHORITY_WORDS, is_session
from casemate.finding import Confidence

_SESSION = Sink("trust-boundary", "session", confidence=Confidence.MEDIUM)
_AUTHORITY = Sink("trust-boundary", "authority", confidence=Confidence.MEDIUM)
REDIRECT = Sink("open-redirect", "redirect")
PAGE = Sink("cross-site-scripting", "html")
_ANSWERS = frozenset({"resp", "response", "res", "r", "answer", "reply"})
_BODIES = frozenset({"text", "body", "data", "html"})


def member(owner: str, shown: str, *, key: object) -> Sink | None:
    """The sink that a member is.

    Args:
        owner: the access path of the container.
        shown: the container as it is written.
        key: the member's name, if it is constant.
    """
    if is_session(owner) or shown.rpartition(".")[2] == "session":
        return _AUTHORITY if AUTHORITY_WORDS.search(str(key)) else _SESSION
    headers = owner.endswith((".headers", "HttpResponse()")) or shown.rpartition(".")[2] == "headers"
    return REDIRECT if headers and isinstance(key, str) and key.lower() == "location" else None


def answer(value: Value) -> Value:
    """The body of an answer of a cloud function that is sent as a page (`{"headers": …, "body": …}`)."""
    items = value.items or {}
    headers = items.get("headers", NOTHING).items or {}
    html = any(str(key).lower() == "content-type" and "html" in str(told.constant) for key, told in headers.items())
    return items.get("body", NOTHING) if html and "statusCode" in items else NOTHING


def location(value: Value) -> Value:
    """Where an answer of a cloud function sends a browser (`{"statusCode": 302, "headers": {"Location": …}}`)."""
    items = value.items or {}
    headers = items.get("headers", NOTHING).items or {}
    sent = [told for key, told in headers.items() if str(key).lower() == "location"]
    return sent[0] if sent and "statusCode" in items else NOTHING


def attribute(shown: str, name: str, *, sends: str) -> Sink | None:
    """The sink that an attribute of an answer is.

    Args:
        shown: the answer as it is written.
        name: the attribute.
        sends: the content type that the answer was given before.
    """
    if shown.rpartition(".")[2] not in _ANSWERS:
        return None
    if name == "location":
        return REDIRECT
    return PAGE if name in _BODIES and "html" in sends.lower() else None
