"""Secrets in source code: found by form and by name, told from placeholders, and masked wherever they would show.

Pure. Forms are the issuers' own prefixes; the measure of randomness is Shannon's entropy in bits a character.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from casemate.agents.audit.checks.naming import named_literals
from casemate.agents.audit.checks.words import words
from casemate.agents.audit.facts.definitions import name_of
from casemate.agents.audit.facts.syntax import nodes
from casemate.finding import Confidence

_FORMS = re.compile(
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36,}|\bglpat-[\w-]{20,}|\bsk-(?:proj-|ant-)?[A-Za-z0-9_-]{20,}"
    r"|\b[sr]k_live_[0-9a-zA-Z]{16,}|\bxox[abprs]-[0-9A-Za-z-]{10,}|\bAIza[0-9A-Za-z_-]{35}|\bSG\.[\w-]{16,}\.[\w-]{16,}"
    r"|-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----|\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}|\bnpm_[A-Za-z0-9]{36}"
    r"|\bpypi-[\w-]{32,}"
)
_IN_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s:/@{}%<]+:([^\s/@{}%<$]{3,})@(?:[\w.-]|$)", re.IGNORECASE)
_AFTER_SCHEME = re.compile(r"(?<=[a-zA-Z0-9])://[^\s:/@{}%<]{0,200}:([^\s/@{}%<$]{3,200})@[\w.-]")
"""The same in a text of any length: bounded, so that no text makes the search slow."""
_PASSWORD = frozenset({"password", "passwd", "pwd", "passphrase", "pass", "passwort"})
_KEY_WORDS = frozenset({"secret", "token", "apikey", "credential", "credentials", "authtoken", "secretkey"})
_KEY_PAIRS = frozenset(
    {
        "api",
        "secret",
        "access",
        "private",
        "signing",
        "encryption",
        "auth",
        "master",
        "aes",
        "jwt",
        "hmac",
        "session",
        "fernet",
    }
)
_NOT_VALUES = frozenset(
    {
        *("field", "name", "header", "prefix", "suffix", "url", "uri", "path", "file", "filename", "param", "label"),
        *("regex", "pattern", "type", "format", "hint", "prompt", "message", "error", "text", "help", "title", "env"),
        *("expires", "expiry", "ttl", "length", "min", "max", "algorithm", "policy", "scheme", "template", "endpoint"),
        *("var", "variable", "attr", "column", "id", "ids", "model", "limit", "count", "validator", "validators"),
        *("hasher", "hashers", "chars", "alphabet", "re", "kind", "class", "form", "widget", "description"),
    }
)
_PLACEHOLDER = re.compile(
    r"change.?(?:me|this|it)|example|placeholder|\byour\b|your[-_]|x{3,}|\*{3,}|\.{3}|^<.*>$|\$\{|\{\{|\{\w*\}|%\(|%s|\btodo\b"
    r"|\bdummy|\bfake|redacted|replace|insert|^none$|^null$|^test(?:ing)?$|^dev(?:elopment)?$|^default$|^unset$|not.?set"
    r"|^sample|^foo|^bar$|fill.?in|0{8,}|^\s*$|^(?:true|false|yes|no|n/?a)$|^(.)\1+$|set.?in.?env|from.?env",
    re.IGNORECASE,
)
_PUBLISHED = frozenset({"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"})
"""Constants of protocols that look like keys. Source: RFC 6455, section 1.3."""
_IDENTIFIER = re.compile(r"[a-z]+(?:[_.-][a-z]+)*$")
_ENTROPY_BITS = 3.0
_RANDOM_LOOKING = re.compile(r"[0-9a-f]{24,}|[0-9A-F]{24,}|[A-Za-z0-9+/_-]{24,}={0,2}")
_NOT_SECRET_KEYS = frozenset(
    {
        "public",
        "primary",
        "foreign",
        "sort",
        "cache",
        "partition",
        "object",
        "site",
        "publishable",
        "pub",
        "idempotency",
    }
)
_PUBLIC = re.compile(r"public|verify_?key|VerifyKey|load_cert|fingerprint", re.IGNORECASE)
_LONGEST_KEY = 16_384
"""Characters of a private key that are looked at."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A literal that should not be in the source: its node and its text."""

    node: ast.Constant
    text: str
    confidence: Confidence


def find(tree: ast.Module) -> Iterator[Secret]:
    """Every secret of a tree: by its own form, or by the name that it is given to."""
    yield from _found(tree)


@functools.lru_cache(maxsize=1)
def _found(tree: ast.Module) -> tuple[Secret, ...]:
    """Asked for twice in a row: to mask them, and to tell them."""
    return tuple(_search(nodes(tree)))


def _search(every: tuple[ast.AST, ...]) -> Iterator[Secret]:
    seen: set[int] = set()
    documentation = {id(node.value) for node in every if isinstance(node, ast.Expr)}
    public = _public_names(every)
    for node in every:
        for name, literal in named_literals(node):
            if id(literal) not in seen and name not in public and (confidence := _by_name(name, _text(literal))):
                seen.add(id(literal))
                yield Secret(literal, _text(literal), confidence)
        if isinstance(node, ast.Constant) and id(node) not in seen and id(node) not in documentation:
            text = _text(node)
            found = _by_form(text) if len(text) >= 10 else ""
            if found:
                seen.add(id(node))
                yield Secret(node, found, Confidence.HIGH)


def in_text(text: str) -> Iterator[tuple[int, str]]:
    """Every secret with a form of its own in any text, with its offset; of a private key the whole of it."""
    for match in _FORMS.finditer(text):
        found = match.group()
        if found.startswith("-----"):
            found = text[match.start() : match.start() + _LONGEST_KEY].partition("-----END")[0].rstrip()
            if len(found) < 100:
                continue
        if not is_placeholder(found):
            yield match.start(), found
    for match in _AFTER_SCHEME.finditer(text):
        password = match.group(1)
        if not is_placeholder(password) and not words(password) & _PASSWORD:
            yield match.start(1), password


def as_named(name: str, text: str) -> Confidence | None:
    """How sure it is that a text is a secret, by the name that it is given to; None where it is none."""
    return _by_name(name, text)


def _public_names(every: tuple[ast.AST, ...]) -> frozenset[str]:
    """Names that are only given to what takes the public half of a key."""
    found: set[str] = set()
    for node in every:
        if isinstance(node, ast.Call) and _PUBLIC.search(_owned(node.func)):
            found |= {name_of(inner) for argument in node.args for inner in ast.walk(argument)}
    return frozenset(found - {""})


def _owned(node: ast.expr) -> str:
    """The last two names of what is called."""
    return f"{name_of(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else name_of(node)


def entropy_bits(text: str) -> float:
    """Shannon entropy in bits a character."""
    counts = Counter(text)
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts.values()) if text else 0.0


def is_placeholder(text: str) -> bool:
    """Whether a text only marks the place for a value."""
    return bool(_PLACEHOLDER.search(text))


def _text(node: ast.Constant) -> str:
    if isinstance(node.value, bytes):
        return node.value.decode("latin-1")
    return node.value if isinstance(node.value, str) else ""


def _by_form(text: str) -> str:
    match = _FORMS.search(text)
    if match:
        private = match.group().startswith("-----")
        whole = text if private else match.group()
        return "" if is_placeholder(whole) or (private and len(text) < 100) else whole
    match = _IN_URL.search(text) if "@" in text else None
    password = match.group(1) if match else ""
    return "" if is_placeholder(password) or words(password) & _PASSWORD else password


def _by_name(name: str, text: str) -> Confidence | None:
    parts = words(name)
    is_password = bool(parts & _PASSWORD)
    is_key = bool(parts & _KEY_WORDS) or ("key" in parts and bool(parts & _KEY_PAIRS))
    is_random = (
        "key" in parts and not parts & _NOT_SECRET_KEYS and bool(_RANDOM_LOOKING.fullmatch(text)) and _is_mixed(text)
    )
    if not (is_password or is_key or is_random) or parts & _NOT_VALUES or not _is_value(text, parts):
        return None
    if is_password:
        if len(text) < 4 and text.isalpha():
            return None
        return Confidence.HIGH if any(c.isdigit() for c in text) or not text.isalnum() else Confidence.MEDIUM
    if len(text) >= 12 and entropy_bits(text) >= _ENTROPY_BITS and not _IDENTIFIER.match(text):
        return Confidence.HIGH
    mixed = any(c.isdigit() for c in text) or (not text.isalnum() and text != text.lower() and text != text.upper())
    return Confidence.MEDIUM if len(text) >= 6 and mixed and entropy_bits(text) >= 2 else None


def _is_mixed(text: str) -> bool:
    """Whether letters and digits are thrown together as no word or number is."""
    changes = sum(a.isdigit() != b.isdigit() for a, b in itertools.pairwise(text))
    return changes >= 5 and entropy_bits(text) >= _ENTROPY_BITS


def _is_value(text: str, name: frozenset[str]) -> bool:
    """Whether a text can be a secret at all: no sentence, no path, no name, no placeholder."""
    if (
        not 3 <= len(text) <= 4096
        or text in _PUBLISHED
        or any(c.isspace() for c in text.strip())
        or is_placeholder(text)
    ):
        return False
    if text.startswith(("/", "./", "http://", "https://", "--", "$", "%", "<", "[", "(")):
        return False
    same_words = words(text) <= name | _PASSWORD | _KEY_WORDS | {"key", "auth", "access"}
    return not same_words and not text.endswith((":", "=", "?"))
