"""Secrets in source code: found by form and by name, told from placeholders, and masked wherever they would show.

Pure. Forms are the issuers' own prefixes; the measure of randomness is Shannon's entropy in bits a character.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from casemate.finding import Confidence

_FORMS = re.compile(
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36,}|\bglpat-[\w-]{20,}|\bsk-(?:proj-|ant-)?[A-Za-z0-9_-]{20,}"
    r"|\b[sr]k_live_[0-9a-zA-Z]{16,}|\bxox[abprs]-[0-9A-Za-z-]{10,}|\bAIza[0-9A-Za-z_-]{35}|\bSG\.[\w-]{16,}\.[\w-]{16,}"
    r"|-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----|\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}|\bnpm_[A-Za-z0-9]{36}"
    r"|\bpypi-[\w-]{32,}"
)
_IN_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s:/@{}%<]+:([^\s/@{}%<$]{3,})@[\w.-]+", re.IGNORECASE)
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
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_IDENTIFIER = re.compile(r"[a-z]+(?:[_.-][a-z]+)*$")
_ENTROPY_BITS = 3.0


@dataclass(frozen=True, slots=True)
class Secret:
    """A literal that should not be in the source: its node and its text."""

    node: ast.Constant
    text: str
    confidence: Confidence


def find(tree: ast.AST) -> Iterator[Secret]:
    """Every secret of a tree: by its own form, or by the name that it is given to."""
    seen: set[int] = set()
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        for name, literal in _named(node):
            if id(literal) not in seen and (confidence := _by_name(name, _text(literal))):
                seen.add(id(literal))
                yield Secret(literal, _text(literal), confidence)
        if isinstance(node, ast.Constant) and id(node) not in seen and id(node) not in documentation:
            text = _text(node)
            found = _by_form(text) if len(text) >= 10 else ""
            if found:
                seen.add(id(node))
                yield Secret(node, found, Confidence.HIGH)


def entropy_bits(text: str) -> float:
    """Shannon entropy in bits a character."""
    counts = Counter(text)
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts.values()) if text else 0.0


def words(name: str) -> frozenset[str]:
    """The lower-case words of an identifier or of any text."""
    return frozenset(word.lower() for word in _WORDS.findall(name))


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
    if not (is_password or is_key) or parts & _NOT_VALUES or not _is_value(text, parts):
        return None
    if is_password:
        return Confidence.HIGH if any(c.isdigit() for c in text) or not text.isalnum() else Confidence.MEDIUM
    if len(text) >= 12 and entropy_bits(text) >= _ENTROPY_BITS and not _IDENTIFIER.match(text):
        return Confidence.HIGH
    mixed = any(c.isdigit() for c in text) or not text.replace("_", "").isalnum()
    return Confidence.MEDIUM if len(text) >= 6 and mixed and entropy_bits(text) >= 2 else None


def _is_value(text: str, name: frozenset[str]) -> bool:
    """Whether a text can be a secret at all: no sentence, no path, no name, no placeholder."""
    if not 3 <= len(text) <= 4096 or any(c.isspace() for c in text.strip()) or is_placeholder(text):
        return False
    if text.startswith(("/", "./", "http://", "https://", "--", "$", "%", "<", "[", "(")):
        return False
    same_words = words(text) <= name | _PASSWORD | _KEY_WORDS | {"key", "auth", "access"}
    return not same_words and not text.endswith((":", "=", "?"))


def _named(node: ast.AST) -> Iterator[tuple[str, ast.Constant]]:
    """Pairs of a name and the literal that it is given or compared with."""
    for name, value in _pairs(node):
        if isinstance(value, ast.Constant):
            yield name, value


def _pairs(node: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((_name_of(target), value) for target in targets)
        case ast.AnnAssign(target=target, value=value):
            yield _name_of(target), value
        case ast.keyword(arg=str(name), value=value):
            yield name, value
        case ast.Dict(keys=keys, values=values):
            names = (key.value if isinstance(key, ast.Constant) else "" for key in keys)
            yield from zip(map(str, names), values, strict=True)
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[value]):
            yield _name_of(left), value
        case ast.arguments(args=args, defaults=defaults):
            yield from zip((argument.arg for argument in reversed(args)), reversed(defaults), strict=False)


def _name_of(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(name)), *_]):
            return name
        case _:
            return ""
