"""What no output may show of a file: its secrets, and keys and passwords by where they are used. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from casemate.agents.audit.checks.secrets import find, is_placeholder
from casemate.agents.audit.facts.definitions import key_of, name_of
from casemate.agents.audit.facts.syntax import Source, nodes

_FIRST_IS_KEY = frozenset(
    {
        *(
            "Fernet",
            "HMAC",
            "SecretBox",
            "AESGCM",
            "AESCCM",
            "ChaCha20Poly1305",
            "AES",
            "TripleDES",
            "Blowfish",
            "ARC4",
        ),
        *("Camellia", "ChaCha20", "URLSafeSerializer", "URLSafeTimedSerializer", "TimestampSigner", "Signer", "digest"),
    }
)
_MADE_BY_KEY = frozenset({"AES", "DES", "DES3", "ARC4", "ARC2", "Blowfish", "CAST", "ChaCha20", "Salsa20", "hmac"})
"""Whose `new` takes a key."""
_SECOND_IS_SECRET = frozenset({"pbkdf2_hmac", "HTTPBasicAuth", "HTTPDigestAuth", "BasicAuth", "login"})
_KEYWORDS = frozenset({"key", "secret", "secret_key", "password", "passwd", "passphrase"})
_ON_COMMAND_LINE = re.compile(r"(?:\s-p|\bpass:|--password[= ]|\s-u\s+\S+:)([^\s'\"{}$%]{6,})")
_PIECE = re.compile(r"(?i:[bru]{0,2})(\"{3}|'{3}|\"|')(.*?)(?<!\\)\1", re.DOTALL)
_SHORTEST = 6
_CALLS_CONNECT = 4
"""`connect(host, port, user, password)`."""


def texts(source: Source) -> tuple[str, ...]:
    """Every text that is to be masked, as its value and as it is written in the source."""
    found: set[str] = set()
    for secret in find(source.tree):
        found |= {secret.text, *_pieces(source, secret.node)}
    every = nodes(source.tree)
    given = {key_of(t): n.value for n in every if isinstance(n, ast.Assign) for t in n.targets}
    for node in every:
        for literal in _literals(node, given):
            text = literal.value.decode("latin-1") if isinstance(literal.value, bytes) else literal.value
            if isinstance(text, str) and len(text) >= _SHORTEST and not is_placeholder(text):
                found |= {text, *_pieces(source, literal)}
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            found |= set(_ON_COMMAND_LINE.findall(node.value))
    return tuple(sorted(found))


def _literals(node: ast.AST, given: dict[str, ast.expr]) -> Iterator[ast.Constant]:
    """Literals in the place of a key or password."""
    if not isinstance(node, ast.Call):
        return
    last, owner = name_of(node.func), name_of(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    places = [keyword.value for keyword in node.keywords if keyword.arg in _KEYWORDS]
    if last in _FIRST_IS_KEY or (last == "new" and owner in _MADE_BY_KEY):
        places += node.args[:1]
    elif last in _SECOND_IS_SECRET or (last in {"encode", "decode"} and owner in {"jwt", "jws", "jose"}):
        places += node.args[1:2]
    elif last == "connect" and len(node.args) >= _CALLS_CONNECT:
        places += node.args[3:4]
    for place in places:
        for inner in ast.walk(given.get(key_of(place), place)):
            if isinstance(inner, ast.Constant):
                yield inner


def _pieces(source: Source, node: ast.Constant) -> Iterator[str]:
    """A literal as it is written: its pieces between quotes, escapes and all; of a part of a longer text nothing."""
    written = source.text(source.location(node))
    if written[:2].lower().strip("rb").startswith("f"):
        return
    for piece in _PIECE.finditer(written):
        if len(piece[2]) >= _SHORTEST:
            yield piece[2]
