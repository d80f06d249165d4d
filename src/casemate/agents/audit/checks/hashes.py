"""Checks of hashes: broken ones, fast ones for passwords, rounds, salts.

What a weak hash is used for is read from the names around it: what goes in, what the result is called, who asks.
"""

from __future__ import annotations

import ast
import re

from casemate.agents.audit.checks.fixed import is_fixed
from casemate.agents.audit.checks.purpose import named, purpose
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.values import NOTHING
from casemate.finding import Confidence

_WEAK = frozenset({"md5", "md4", "md2", "sha1", "sha", "sha-1", "ripemd", "mdc2", "rmd160"})
_FAST = frozenset(
    {
        *("sha224", "sha256", "sha384", "sha512", "sha3_224", "sha3_256", "sha3_384", "sha3_512", "blake2b", "blake2s"),
        *("sha3-256", "sha512_256", "shake_128", "shake_256"),
    }
)
_SECRET_USE = frozenset(
    {
        *("password", "passwd", "pwd", "passphrase", "secret", "token", "credential", "credentials", "auth", "otp"),
        *("signature", "sign", "signed", "session", "apikey", "pin", "salt", "login", "nonce", "csrf", "verify"),
        *("hmac", "license", "licence", "certificate", "cert", "authenticate", "tamper", "signer"),
    }
)
_HARMLESS_USE = frozenset(
    {
        *("etag", "checksum", "cache", "cached", "fingerprint", "dedup", "dedupe", "bucket", "shard", "gravatar"),
        *("avatar", "thumbnail", "color", "colour", "partition", "identicon", "duplicate", "duplicates", "integrity"),
        *("crc", "filename", "uid", "uuid", "git", "blob", "revision", "content", "chunk", "etags", "key", "memo"),
        *("totp", "hotp", "oaep", "mgf", "websocket", "shingle", "minhash", "bloom", "similarity", "ring"),
    }
)
_PASSWORDS = frozenset({"password", "passwd", "pwd", "passphrase", "passwords", "pass", "passcode", "pw"})
_NOT_PASSWORDS = frozenset({"reset", "token", "pwned", "hibp", "breach", "breached", "filter", "strength"})
_SLOW = re.compile(r"scrypt|pbkdf2|argon2|bcrypt|hkdf", re.IGNORECASE)
_PREDICTABLE_SALT = frozenset({"username", "user", "email", "login", "name", "uid"})
_MIN_ROUNDS = 100_000
_MIN_BCRYPT_COST = 10
_MIN_SCRYPT_COST = 1 << 14
_WEAK_METHOD = re.compile(r"^(?:plain|md5|sha1|sha256|sha512|pbkdf2:sha1|pbkdf2:\w+:(\d{1,5}))$", re.IGNORECASE)
_WEAK_HASHERS = re.compile(r"(?:MD5|SHA1|Crypt)PasswordHasher$")
_WEAK_PASSLIB = frozenset(
    {
        *("md5_crypt", "des_crypt", "bsdi_crypt", "lmhash", "nthash", "mysql323", "mysql41", "ldap_md5", "ldap_sha1"),
        *("hex_md5", "hex_sha1", "hex_sha256", "plaintext", "ldap_plaintext", "unix_disabled", "postgres_md5"),
    }
)


def _algorithm(invocation: Invocation) -> str:
    """The hash that a call makes, in lower case; empty where it makes none."""
    name = invocation.name
    owner, _, last = name.rpartition(".")
    if name == "hashlib.new":
        chosen = invocation.argument(0, "name").constant
        return chosen.lower() if isinstance(chosen, str) else ""
    if owner == "hashlib":
        return last.lower()
    if owner.startswith(("Crypto.Hash.", "Cryptodome.Hash.")) and last == "new":
        return owner.rpartition(".")[2].lower()
    if owner.startswith("cryptography") and "hashes" in owner:
        return last.lower()
    return ""


def _hash(here: Point, invocation: Invocation) -> None:
    algorithm = _algorithm(invocation)
    if algorithm in _WEAK:
        _weak(here, invocation)
    elif algorithm in _FAST:
        _fast(here, invocation)


def _weak(here: Point, invocation: Invocation) -> None:
    if invocation.keywords.get("usedforsecurity", NOTHING).constant is False:
        return
    use = purpose(here, invocation.node) | _input(invocation)
    if use & _SECRET_USE and not use & {"totp", "hotp", "oaep", "mgf", "websocket"}:
        here.record.weak("weak-hash", invocation.node)
    elif not use & _HARMLESS_USE:
        here.record.weak("weak-hash", invocation.node, confidence=Confidence.LOW)


def _fast(here: Point, invocation: Invocation) -> None:
    given = _input(invocation)
    if given & _PASSWORDS and not given & _NOT_PASSWORDS and not _is_prehash(here, invocation):
        here.record.weak("fast-password-hash", invocation.node)


def _update(here: Point, invocation: Invocation) -> None:
    """`h = hashlib.sha256(); h.update(password)`."""
    made = invocation.receiver.name
    fast = made.startswith("hashlib.") and made.removesuffix("()").rpartition(".")[2] in _FAST | _WEAK | {"new"}
    if fast and _input(invocation) & _PASSWORDS and not _is_prehash(here, invocation):
        here.record.weak("fast-password-hash", invocation.node)


def _input(invocation: Invocation) -> frozenset[str]:
    return frozenset[str]().union(*(named(argument) for argument in invocation.node.args))


def _is_prehash(here: Point, invocation: Invocation) -> bool:
    """Whether the digest goes into a slow hash, or is only compared with a list of known ones."""
    statement = here.record.statement
    text = here.record.source.text(here.record.location(statement)) if statement is not None else ""
    if isinstance(statement, ast.Assign | ast.Return | ast.Expr | ast.AnnAssign) and _SLOW.search(text):
        return True
    use = purpose(here, invocation.node)
    return bool(use & {"bcrypt", "hashpw", "scrypt", "pbkdf", "argon", "kdf", "pwned", "breach", "hibp"})


def _hmac(here: Point, invocation: Invocation) -> None:
    if not invocation.name.startswith("hmac."):
        return
    digest = invocation.argument(2, "digestmod" if invocation.name == "hmac.new" else "digest")
    if str(digest.constant).lower() in {"md5", "md4"} or digest.name in {"hashlib.md5", "md5"}:
        here.record.weak("weak-hash", invocation.node, confidence=Confidence.MEDIUM)


def _rounds(here: Point, invocation: Invocation) -> None:
    """Rounds of PBKDF2, costs of bcrypt and scrypt: few of them are guessed fast."""
    name, last = invocation.name, invocation.name.rpartition(".")[2]
    given: object = None
    least = _MIN_ROUNDS
    if last in {"pbkdf2_hmac", "PBKDF2HMAC"}:
        given = invocation.argument(3, "iterations").constant
    elif last == "PBKDF2" and name.startswith(("Crypto", "Cryptodome")):
        count = invocation.argument(3, "count")
        given = 1000 if count is NOTHING else count.constant  # the library's own default
    elif last == "gensalt" and name.startswith("bcrypt"):
        given, least = invocation.argument(0, "rounds").constant, _MIN_BCRYPT_COST
    elif last in {"scrypt", "Scrypt"}:
        given = invocation.keywords.get("n", invocation.keywords.get("N", NOTHING)).constant
        least = _MIN_SCRYPT_COST
    if isinstance(given, int) and not isinstance(given, bool) and given < least:
        here.record.weak("fast-password-hash", invocation.node, confidence=Confidence.MEDIUM)


def _salts(here: Point, invocation: Invocation) -> None:
    """A salt that is empty, written in the source, or the name of the user."""
    last = invocation.name.rpartition(".")[2]
    position = {"pbkdf2_hmac": 2, "PBKDF2": 1, "hashpw": 1, "crypt": 1, "PBKDF2HMAC": 2, "Scrypt": 0}.get(last, -1)
    node = invocation.written(position, "salt")
    if node is None:
        return
    value = invocation.argument(position, "salt").constant
    if value in (b"", ""):
        here.record.weak("missing-salt", invocation.node)
    elif isinstance(value, bytes | str) or is_fixed(here.record.definitions, node):
        here.record.weak("constant-salt", invocation.node)
    elif named(node) & _PREDICTABLE_SALT and "salt" not in named(node):
        here.record.weak("constant-salt", invocation.node, confidence=Confidence.MEDIUM)


def _methods(here: Point, invocation: Invocation) -> None:
    """`generate_password_hash(p, method="sha256")`, `make_password(p, hasher="md5")`, passlib's old schemes."""
    name, last = invocation.name, invocation.name.rpartition(".")[2]
    keyword = "hasher" if last == "make_password" else "method"
    method = invocation.argument(2 if last == "make_password" else 1, keyword).constant
    weak = last in {"generate_password_hash", "make_password"} and isinstance(method, str) and _is_weak_method(method)
    if weak or (name.startswith("passlib.hash.") and name.split(".")[2] in _WEAK_PASSLIB):
        here.record.weak("fast-password-hash", invocation.node)


def _is_weak_method(method: str) -> bool:
    if method in {"unsalted_md5", "unsalted_sha1"}:
        return True
    found = _WEAK_METHOD.match(method)
    return found is not None and (not found[1] or int(found[1]) < _MIN_ROUNDS)


def hashers(node: ast.expr) -> bool:
    """Whether Django's list of password hashers begins with a weak one."""
    match node:
        case ast.List(elts=[ast.Constant(value=str(first)), *_]) | ast.Tuple(elts=[ast.Constant(value=str(first)), *_]):
            return bool(_WEAK_HASHERS.search(first))
        case _:
            return False


BY_NAME = {
    **dict.fromkeys((*_WEAK, *_FAST, "new", "MD5", "SHA1", "SHA256", "SHA512", "SHA224", "SHA384"), _hash),
}
ALSO = {
    "update": _update,
    **dict.fromkeys(("new", "digest"), _hmac),
    **dict.fromkeys(("pbkdf2_hmac", "PBKDF2HMAC", "PBKDF2", "gensalt", "scrypt", "Scrypt"), _rounds),
    **dict.fromkeys(("generate_password_hash", "make_password", "hash", "encrypt"), _methods),
}
SALTS = dict.fromkeys(("pbkdf2_hmac", "PBKDF2HMAC", "PBKDF2", "hashpw", "crypt", "scrypt", "Scrypt"), _salts)
TABLES = (BY_NAME, ALSO, SALTS)
