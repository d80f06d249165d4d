"""JavaScript that is weak by itself in cryptography: hashes, ciphers, randomness, signed tokens."""

from __future__ import annotations

import re

from tree_sitter import Node

from casemate.agents.audit.checks.secrets import is_placeholder
from casemate.agents.audit.checks.words import words
from casemate.agents.audit.javascript.notes import Notes, name_of
from casemate.agents.audit.javascript.purpose import (
    arguments,
    call_name,
    literal,
    named_in,
    options,
    owner_text,
    purpose,
)
from casemate.agents.audit.javascript.source import FUNCTIONS, descendants, text_of
from casemate.finding import Confidence

_BROKEN = frozenset({"md5", "md4", "sha1", "sha-1", "ripemd160", "rmd160"})
_FAST = frozenset({"sha224", "sha256", "sha384", "sha512", "sha512-256", "sha3-256", "sha3-512", "sha-256", "sha-512"})
_PASSWORDS = frozenset({"password", "passwd", "pwd", "passphrase", "passcode", "pass"})
_SECRETS = frozenset(
    {
        *("secret", "token", "credential", "credentials", "otp", "signature", "session", "apikey", "pin", "csrf"),
        *("nonce", "auth", "sign", "reset", "sid", "sessionid", "verification", "invite", "recovery", "salt", "jwt"),
        *("passcode", "xsrf", "activation", "iv"),
    }
)
_PAIRS = (
    frozenset({"api", "key"}),
    frozenset({"secret", "key"}),
    frozenset({"access", "key"}),
    frozenset({"private", "key"}),
)
_HARMLESS = frozenset({"etag", "cache", "checksum", "gravatar", "avatar", "file", "integrity", "fingerprint", "color"})
_WEAK_CIPHER = re.compile(
    r"^(?:des|rc4|rc2|bf|blowfish|seed|idea|cast)|-ecb$|^aes-?(?:128|192|256)?-?ecb", re.IGNORECASE
)


def hashed(notes: Notes, node: Node) -> None:
    """`createHash("md5")`, for what nobody may guess or forge; any fast hash for a password."""
    if call_name(node) not in {"createHash", "createHmac"}:
        return
    algorithm = (literal(next(iter(arguments(node)), None)) or "").lower()
    if algorithm not in _BROKEN | _FAST:
        return
    whole = _chain(node)
    given = frozenset[str]().union(
        *(named_in(argument) for call in _calls(whole, node) for argument in arguments(call))
    )
    use = given | purpose(whole)
    if (
        call_name(node) == "createHash"
        and given & _PASSWORDS
        and not use & {"token", "reset", "pwned", "hibp", "breach"}
    ):
        notes.weak("fast-password-hash", node)
    elif call_name(node) == "createHash" and algorithm in _BROKEN and _is_secret(use) and not use & _HARMLESS:
        notes.weak("weak-hash", node)


def ciphered(notes: Notes, node: Node) -> None:
    """`createCipher`, whose key is a bare MD5 of the password, and broken ciphers and modes."""
    name = call_name(node)
    if name not in {"createCipher", "createCipheriv"} and not (name == "encrypt" and "DES" in owner_text(node)):
        return
    algorithm = literal(next(iter(arguments(node)), None)) or ""
    if (
        name == "createCipher"
        or _WEAK_CIPHER.search(algorithm)
        or owner_text(node).endswith(("CryptoJS.DES", ".TripleDES"))
    ):
        notes.weak("weak-cipher", node)


def keyed(notes: Notes, node: Node) -> None:
    """A key of a cipher or of an HMAC that stands in the source."""
    given = arguments(node)
    if call_name(node) not in {"createCipheriv", "createDecipheriv", "createHmac"} or len(given) < 2:
        return
    text = _fixed(notes, given[1])
    if text is not None and len(text) >= 4 and text not in notes.secrets and not is_placeholder(text):
        notes.weak("hard-coded-key", node)


def _fixed(notes: Notes, node: Node) -> str | None:
    """The text of a literal: itself, as bytes, or by the one name that the whole file gives it."""
    if node.type == "call_expression" and text_of(node.child_by_field_name("function")) == "Buffer.from":
        given = arguments(node)
        return _fixed(notes, given[0]) if given else None
    name = text_of(node)
    if node.type != "identifier" or name in notes.reassigned:
        return literal(node)
    for part in descendants(notes.file.root, into_functions=False):
        if part.type == "variable_declarator" and text_of(part.child_by_field_name("name")) == name:
            value = part.child_by_field_name("value")
            return _fixed(notes, value) if value is not None and value.type != "identifier" else None
    return None


def random(notes: Notes, node: Node) -> None:
    """`Math.random()` for what nobody may guess."""
    if call_name(node) != "random" or owner_text(node) != "Math":
        return
    use = purpose(node)
    if _is_secret(use | (_returned_from(node) & _SECRETS)) and not use & {
        "delay",
        "jitter",
        "color",
        "index",
        "mock",
        "timeout",
    }:
        notes.weak("weak-randomness", node)


def token(notes: Notes, node: Node) -> None:
    """JWTs: no signature asked for, none made, a key that stands in the source, an end that is not looked at."""
    name, owner, given = call_name(node), owner_text(node), arguments(node)
    if name not in {"verify", "sign", "decode"} or not re.search(r"jwt|jsonwebtoken", owner, re.IGNORECASE):
        return
    chosen = options(given[2]) if len(given) > 2 else {}
    named = text_of(chosen.get("algorithms") or chosen.get("algorithm")).lower()
    if re.search(r"['\"]none['\"]", named) or (
        name == "verify" and len(given) > 1 and (given[1].type in {"null", "undefined"} or literal(given[1]) == "")
    ):
        notes.weak("jwt-not-verified", node)
    elif name == "decode" and not _verifies(notes):
        notes.weak("jwt-not-verified", node, confidence=Confidence.MEDIUM)
    if name == "verify" and text_of(chosen.get("ignoreExpiration")) == "true":
        notes.weak("token-never-expires", node)
    if (
        name in {"sign", "verify"}
        and len(given) > 1
        and literal(given[1])
        and text_of(given[1])[1:-1] not in notes.secrets
    ):
        notes.weak("hard-coded-key", node)


def _verifies(notes: Notes) -> bool:
    """Whether the file checks tokens somewhere, as one does who first looks up whose key it takes."""
    return b".verify(" in notes.file.data or b"jwtVerify(" in notes.file.data


def _is_secret(use: frozenset[str]) -> bool:
    return bool(use & (_SECRETS | _PASSWORDS)) or any(pair <= use for pair in _PAIRS)


def _chain(node: Node) -> Node:
    """The whole of `createHash(…).update(…).digest(…)`."""
    while node.parent is not None and node.parent.type in {"member_expression", "call_expression"}:
        if node.parent.type == "call_expression" and node.parent.child_by_field_name("function") != node:
            break
        node = node.parent
    return node


def _calls(whole: Node, first: Node) -> list[Node]:
    """The later calls of a chain; of a hash that has a name, the calls of `update` on it."""
    found = [
        part for part in descendants(whole, into_functions=False) if part.type == "call_expression" and part != first
    ]
    if whole != first or first.parent is None or first.parent.type != "variable_declarator":
        return [call for call in found if call_name(call) == "update"]
    name = text_of(first.parent.child_by_field_name("name"))
    around = first.parent
    while around.parent is not None and around.type not in FUNCTIONS:
        around = around.parent
    calls = (part for part in descendants(around) if part.type == "call_expression" and call_name(part) == "update")
    return [call for call in calls if owner_text(call) == name]


def _returned_from(node: Node) -> frozenset[str]:
    """Words of the function around a value."""
    here = node.parent
    while here is not None and here.type not in FUNCTIONS:
        here = here.parent
    return words(name_of(here)) if here is not None else frozenset()
