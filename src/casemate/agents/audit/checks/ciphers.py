"""Checks of cryptography: hashes, ciphers, keys, randomness, tokens.

What a weak hash or a weak random number is used for is read from the words around it.
"""

from __future__ import annotations

import ast

from casemate.agents.audit.checks.secrets import words
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.values import Value
from casemate.finding import Confidence

_WEAK_HASHES = ("md5", "md4", "md2", "sha1", "sha")
_FAST_HASHES = frozenset({"sha224", "sha256", "sha384", "sha512", "sha3_256", "sha3_512", "blake2b", "blake2s"})
_SECRET_USE = frozenset(
    {
        *(
            "password",
            "passwd",
            "pwd",
            "passphrase",
            "secret",
            "token",
            "credential",
            "credentials",
            "auth",
            "signature",
        ),
        *("sign", "signed", "session", "apikey", "pin", "salt", "login", "otp", "nonce", "csrf", "verify", "hmac"),
    }
)
_HARMLESS_USE = frozenset(
    {
        *("etag", "checksum", "cache", "cached", "fingerprint", "dedup", "dedupe", "bucket", "shard", "gravatar"),
        *("avatar", "thumbnail", "color", "colour", "partition", "identicon", "duplicate", "duplicates", "integrity"),
        *("crc", "filename", "uid", "uuid", "git", "blob", "revision", "content", "chunk", "etags", "key"),
    }
)
_PASSWORDS = frozenset({"password", "passwd", "pwd", "passphrase", "passwords", "pass"})
_RANDOM_USE = frozenset(
    {
        *("token", "password", "passwd", "pwd", "secret", "otp", "pin", "nonce", "salt", "csrf", "session", "apikey"),
        *(
            "reset",
            "auth",
            "credential",
            "verification",
            "sid",
            "cookie",
            "passcode",
            "jwt",
            "iv",
            "captcha",
            "voucher",
        ),
        *("activation", "confirmation", "invite", "invitation", "recovery", "sessionid", "encryption", "login"),
    }
)
_RANDOM = frozenset(
    {"random", "randint", "choice", "choices", "randrange", "getrandbits", "sample", "uniform", "randbytes", "shuffle"}
)
_WEAK_CIPHERS = frozenset(
    {"DES", "DES3", "ARC4", "ARC2", "Blowfish", "XOR", "CAST", "TripleDES", "IDEA", "CAST5", "SEED", "RC4"}
)
_MIN_ITERATIONS = 100_000
_MIN_KEY_BITS = 2048
_SMALL_CURVES = frozenset({"SECP192R1", "SECT163K1", "SECT163R2", "SECP160R1", "P-192", "p192"})


def _context(here: Point, invocation: Invocation) -> frozenset[str]:
    """Words around a call: the statement's text and the function's name."""
    statement = here.record.statement
    simple = isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return | ast.Expr)
    node = statement if simple and statement is not None else invocation.node
    return words(here.record.source.text(here.record.location(node))) | words(here.scope.frame.name.rpartition(".")[2])


def _argument_words(invocation: Invocation) -> frozenset[str]:
    return frozenset[str]().union(*(words(ast.unparse(argument)) for argument in invocation.node.args))


def _algorithm(invocation: Invocation) -> str:
    """The hash that a call makes, in lower case; empty where it makes none."""
    name = invocation.name
    owner, _, last = name.rpartition(".")
    if name in {"hashlib.new", "hmac.new", "hmac.digest"}:
        chosen = invocation.argument(0 if name == "hashlib.new" else 2, "digestmod" if "hmac" in name else "name")
        return str(chosen.constant).lower() if isinstance(chosen.constant, str) and "hmac" not in name else ""
    if owner == "hashlib":
        return last.lower()
    if owner.startswith(("Crypto.Hash.", "Cryptodome.Hash.")) and last == "new":
        return owner.rpartition(".")[2].lower()
    if "hashes" in owner and owner.startswith("cryptography"):
        return last.lower()
    return ""


def _hashes(here: Point, invocation: Invocation) -> None:
    algorithm = _algorithm(invocation)
    if not algorithm:
        return
    if algorithm in _WEAK_HASHES:
        if invocation.keywords.get("usedforsecurity", Value()).constant is False:
            return
        context = _context(here, invocation)
        if context & _SECRET_USE:
            here.record.weak("weak-hash", invocation.node)
        elif not context & _HARMLESS_USE:
            here.record.weak("weak-hash", invocation.node, confidence=Confidence.LOW)
    elif algorithm in _FAST_HASHES and _argument_words(invocation) & _PASSWORDS:
        here.record.weak("fast-password-hash", invocation.node)


def _iterations(here: Point, invocation: Invocation) -> None:
    if invocation.name == "hashlib.pbkdf2_hmac":
        rounds = invocation.argument(3, "iterations").constant
        if isinstance(rounds, int) and rounds < _MIN_ITERATIONS:
            here.record.weak("fast-password-hash", invocation.node, confidence=Confidence.MEDIUM)


def _ciphers(here: Point, invocation: Invocation) -> None:
    owner, _, last = invocation.name.rpartition(".")
    made = owner.rpartition(".")[2] if last == "new" else last
    library = owner.startswith(("Crypto", "cryptography", "pyDes", "arc4"))
    if (
        (library and made in _WEAK_CIPHERS)
        or (library and (last == "ECB" or any(value.name.endswith("MODE_ECB") for value in invocation.args)))
        or (
            invocation.name in {"ssl.SSLContext", "ssl.wrap_socket"}
            and any(
                value.name.rpartition(".")[2]
                in {"PROTOCOL_SSLv2", "PROTOCOL_SSLv3", "PROTOCOL_TLSv1", "PROTOCOL_TLSv1_1"}
                for value in (*invocation.args, *invocation.keywords.values())
            )
        )
    ):
        here.record.weak("weak-cipher", invocation.node)


def _key_sizes(here: Point, invocation: Invocation) -> None:
    name = invocation.name
    if not name.startswith(("Crypto", "cryptography", "rsa.")):
        return
    size = next((v.constant for k, v in invocation.keywords.items() if k in {"key_size", "bits", "nbits"}), None)
    if size is None:
        size = next(
            (arg.constant for arg in invocation.args if isinstance(arg.constant, int) and arg.constant != 65537), None
        )
    generates = name.endswith(("generate_private_key", "generate", "newkeys", "generate_parameters"))
    if (generates and isinstance(size, int) and 256 < size < _MIN_KEY_BITS) or name.rpartition(".")[2] in _SMALL_CURVES:
        here.record.weak("weak-key-size", invocation.node)


def _randomness(here: Point, invocation: Invocation) -> None:
    owner, _, last = invocation.name.rpartition(".")
    if owner in {"random", "numpy.random"} and last in _RANDOM and _context(here, invocation) & _RANDOM_USE:
        here.record.weak("weak-randomness", invocation.node)


def _tokens(here: Point, invocation: Invocation) -> None:
    """JWTs whose signature is not checked, or that have none."""
    owner, _, last = invocation.name.rpartition(".")
    if not owner.startswith(("jwt", "jose", "authlib")):
        return
    options = invocation.argument(3, "options").items or {}
    unchecked = invocation.keywords.get("verify", Value()).constant is False or any(
        key == "verify_signature" and value.constant is False for key, value in options.items()
    )
    algorithms = invocation.argument(2, "algorithms")
    chosen = [algorithms.constant, *(item.constant for item in (algorithms.items or {}).values())]
    chosen.append(invocation.keywords.get("algorithm", Value()).constant)
    none = any(isinstance(name, str) and name.lower() == "none" for name in chosen)
    if (last == "decode" and unchecked) or none or last == "get_unverified_claims":
        here.record.weak("jwt-not-verified", invocation.node)


CHECKS = (_hashes, _iterations, _ciphers, _key_sizes, _randomness, _tokens)
