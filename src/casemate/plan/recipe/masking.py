"""Keeps secrets of a recipe out of what is told of it: by the name that stands before them, and by their own look."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

HIDDEN = "…"
_WORDS = r"tokens?|keys?|api-?keys?|secrets?|passwords?|passwd|passphrase|credentials?|authorization|bearer"
_NAME = re.compile(rf"(?:^|[-_.])(?:{_WORDS})(?:[-_.](?:id|value|file-password))?$", re.IGNORECASE)
_INSIDE = re.compile(r"(?:^|[-_.])(?:secrets?|passwords?|passwd|passphrase)(?:[-_.]|$)|api-?_?keys?$", re.IGNORECASE)
_HARMLESS = re.compile(
    r"(?:^|[-_.])(?:bos|eos|pad|unk|sep|cls|mask|image|video|audio|stop|start|end|begin|special|num|max|min|n|per|"
    r"speculative|draft|draft_?|batched|prompt|output|of|in|out)[-_]?(?:tokens?|keys?)(?:[-_]id)?$|tokens$|(?<!api)keys$",
    re.IGNORECASE,
)
_USER = re.compile(r"(?P<scheme>[A-Za-z][\w+.-]*://)(?:[^\s\"'/?#@]*|[^\s\"'/:@]+:(?!\d+/)[^\s\"'@]+)@")
_LOOKS = re.compile(
    r"(?<![\w-])(?:sk|pk|rk)-(?=[\w-]*\d|[\w-]{20})[\w-]{6,}|(?<![\w/.-])hf_[A-Za-z0-9]{8,}(?![\w/.-])"
    r"|(?<![\w-])(?:hf_[A-Za-z0-9]{30,}|gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}"
    r"|nvapi-[\w-]{16,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?)"
)
_SAID = re.compile(
    r"(?P<name>[A-Za-z][\w.-]{0,80})(?P<equals>[\"']?\s*[=:]\s*[\"']?)(?P<value>(?:(?:Bearer|Basic|Token)\s+)?[^\s,;&\"'{}\[\]]+)"
)
_BEARER = re.compile(r"(?P<scheme>\b(?:Bearer|Basic)(?:\s+|%20))[^\s,;&\"']{6,}", re.IGNORECASE)
_REFERENCE = re.compile(r"\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*(?::?\?[^}]*)?\})")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def is_secret(name: str) -> bool:
    """Whether what is called so (a variable, an option, a key of JSON) holds what must not be shown."""
    split = _CAMEL.sub("_", name)
    return bool(_NAME.search(split) or _INSIDE.search(split)) and not _HARMLESS.search(split)


def masked(text: str) -> str:
    """A text without passwords in addresses, without values under secret keys, and without what looks like a key."""
    value = _object(text)
    shown = json.dumps(_without(value), ensure_ascii=False) if value is not None and _without(value) != value else text
    shown = _USER.sub(lambda match: f"{match['scheme']}{HIDDEN}@", shown)
    shown = _SAID.sub(_unsaid, shown)
    return _LOOKS.sub(HIDDEN, _BEARER.sub(lambda match: match["scheme"] + HIDDEN, shown))


def hidden(name: str, text: str) -> str:
    """The value that stands behind a name, as it may be shown: a reference to a variable is no secret."""
    if is_secret(name) and text and not _REFERENCE.fullmatch(text):
        return HIDDEN
    return masked(text)


def is_reference(text: str) -> bool:
    """Whether a text is a shell variable and nothing else."""
    return _REFERENCE.fullmatch(text) is not None


def shown_words(words: Sequence[str]) -> Iterator[str]:
    """The words of a command as they may be shown: without the values of secret options and what looks like a key."""
    secret = ""
    for word in words:
        if word.startswith("-") and len(word) > 1:
            name, equals, value = word.partition("=")
            secret = "" if equals or not is_secret(name.lstrip("-")) else name.lstrip("-")
            yield f"{name}={hidden(name.lstrip('-'), value)}" if equals else masked(word)
        else:
            yield hidden(secret, word) if secret else masked(word)


def _unsaid(match: re.Match[str]) -> str:
    kept = (
        not is_secret(match["name"])
        or match["value"].startswith(("$", "?"))
        or match["value"] in ("null", "true", "false")
    )
    return match[0] if kept else match["name"] + match["equals"] + HIDDEN


def _object(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _without(value: Any) -> Any:
    match value:
        case dict():
            return {key: _concealed(str(key), item) for key, item in value.items()}
        case list():
            return [_without(item) for item in value]
    return value


def _concealed(key: str, item: Any) -> Any:
    if is_secret(key) and isinstance(item, str | int | float) and not isinstance(item, bool):
        return item if isinstance(item, str) and (not item or _REFERENCE.fullmatch(item)) else HIDDEN
    return _without(item)
