"""Checks of encryption: algorithms, modes, initialization vectors, keys in the source, key sizes, protocol versions."""

from __future__ import annotations

import ast
import re

from casemate.agents.audit.checks.fixed import is_fixed, is_made_once, is_part_of
from casemate.agents.audit.checks.secrets import find
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.values import NOTHING, Value
from casemate.finding import Confidence

_CRYPTO = ("Crypto.", "Cryptodome.", "cryptography.")
_WEAK_CIPHERS = frozenset(
    {
        *("DES", "DES3", "ARC4", "ARC2", "Blowfish", "XOR", "CAST", "TripleDES", "IDEA", "CAST5", "SEED", "RC4"),
        *("RC2", "des", "triple_des"),
    }
)
_OLD_PROTOCOLS = re.compile(
    r"(?:PROTOCOL_(?:SSLv2|SSLv3|TLSv1|TLSv1_1)|TLSVersion\.(?:SSLv3|TLSv1|TLSv1_1)|(?:SSLv2|SSLv3|TLSv1|TLSv1_1)_METHOD"
    r"|SSL\.(?:SSL3|TLS1|TLS1_1)_VERSION)$"
)
_OLD_SUITES = re.compile(r"(?:^|[:,+ ])(?:RC4|3?DES|NULL|eNULL|aNULL|MD5|EXP(?:ORT)?|LOW|ALL|ADH|COMPLEMENTOFALL)\b")
_CHAINED = frozenset({"CBC", "CFB", "OFB", "CFB8"})
_COUNTED = frozenset({"CTR", "GCM", "CCM", "EAX", "OCB", "SIV"})
_MODE_ARGUMENT = re.compile(r"MODE_([A-Z0-9]+)$")
_SEALERS = re.compile(r"(?:AESGCM|AESCCM|ChaCha20Poly1305|AESOCB3|AESGCMSIV)\(\)\.encrypt$")
_MIN_KEY_BITS = 2048
_SMALL_CURVES = re.compile(
    r"^(?:SECP(?:160|192)[RK]1|SECT163[RK][12]|SECT193[RK]\d|P-?192|NIST192p|SECP112r1|prime192v\d|secp192[rk]1)$",
    re.IGNORECASE,
)
_GENERATORS = ("generate_private_key", "generate", "newkeys", "generate_parameters", "generate_key", "construct")


def _made(here: Point, invocation: Invocation) -> tuple[str, bool]:
    """The cipher that a call makes, and whether it comes from a library of ciphers."""
    owner, _, last = invocation.name.rpartition(".")
    made = owner.rpartition(".")[2] if last == "new" else last
    library = invocation.name.startswith((*_CRYPTO, "pyDes.", "arc4.", "rc4."))
    starred = here.record.imports("Crypto", "Cryptodome") and "." not in owner and last == "new"
    return made, library or starred


def _cipher(here: Point, invocation: Invocation) -> None:
    made, library = _made(here, invocation)
    if not library or ".Hash." in invocation.name:
        return
    if made in _WEAK_CIPHERS or made == "ECB":
        here.record.weak("weak-cipher", invocation.node)
    elif made == "PKCS1_v1_5" and ".Signature." not in invocation.name:
        here.record.weak("rsa-without-oaep", invocation.node)
    elif made == "AES" and invocation.name.endswith(".new"):
        _aes(here, invocation)
    elif made in _CHAINED | _COUNTED and "modes" in invocation.name:
        _vector(here, invocation, mode=made, position=0)
    elif made == "ChaCha20" and "algorithms" in invocation.name:
        _vector(here, invocation, mode="CTR", position=1)
        _key(here, invocation)
    elif "algorithms" in invocation.name or made in {"ChaCha20", "ChaCha20_Poly1305", "Salsa20"}:
        _key(here, invocation)


def _aes(here: Point, invocation: Invocation) -> None:
    """`AES.new(key, mode, iv)`; without a mode the old library takes ECB."""
    mode = invocation.argument(1, "mode")
    found = _MODE_ARGUMENT.search(mode.name)
    if mode is NOTHING or (found and found[1] == "ECB") or mode.constant == 1:
        here.record.weak("weak-cipher", invocation.node)
    elif found:
        _vector(here, invocation, mode=found[1], position=2)
    _key(here, invocation)


def _vector(here: Point, invocation: Invocation, *, mode: str, position: int) -> None:
    """An initialization vector or nonce that is the same each time."""
    names = ("iv", "IV", "nonce", "initialization_vector")
    node = invocation.written(position, *names)
    key = invocation.node.args[0] if position > 0 and invocation.node.args else None
    definitions = here.record.definitions
    if node is None:
        return
    known = next((v for k, v in invocation.keywords.items() if k in names), invocation.argument(position))
    constant = isinstance(known.constant, bytes | str) or is_fixed(definitions, node)
    rule = "reused-nonce" if mode in _COUNTED else "predictable-iv"
    if constant or is_part_of(node, key):
        here.record.weak(rule, invocation.node)
    elif is_made_once(definitions, node, line=invocation.node.lineno):
        here.record.weak(rule, invocation.node, confidence=Confidence.MEDIUM)


def _sealed(here: Point, invocation: Invocation) -> None:
    """`AESGCM(key).encrypt(nonce, data, None)`, and RSA encryption with the old padding."""
    if _SEALERS.search(invocation.name):
        _vector(here, invocation, mode="GCM", position=0)
    elif any(value.name.endswith("PKCS1v15()") for value in invocation.args):
        here.record.weak("rsa-without-oaep", invocation.node)


def _counter(here: Point, invocation: Invocation) -> None:
    given = {"prefix", "suffix", "initial_value"} & invocation.keywords.keys()
    if invocation.name.endswith("Counter.new") and invocation.name.startswith(_CRYPTO) and not given:
        here.record.weak("reused-nonce", invocation.node, confidence=Confidence.MEDIUM)


def _key(here: Point, invocation: Invocation) -> None:
    """A key that is written in the source; where it stands under its own name that was told already."""
    node = invocation.written(0, "key")
    if node is None:
        return
    told = here.record.secrets and _is_told(here, node, value=invocation.argument(0, "key"))
    fixed = isinstance(invocation.argument(0, "key").constant, bytes | str) or is_fixed(here.record.definitions, node)
    if fixed and not told:
        here.record.weak("hard-coded-key", invocation.node)


def _is_told(here: Point, node: ast.expr, *, value: Value) -> bool:
    text = value.constant.decode("latin-1") if isinstance(value.constant, bytes) else value.constant
    shown = {inner.value for inner in ast.walk(node) if isinstance(inner, ast.Constant)}
    return bool({text, *shown} & {secret.text for secret in find(here.record.source.tree)})


def _keyed(here: Point, invocation: Invocation) -> None:
    """Calls whose first argument is a key: Fernet, HMAC, signers, sealed boxes."""
    name, last = invocation.name, invocation.name.rpartition(".")[2]
    signs = last in {"TimestampSigner", "URLSafeSerializer", "URLSafeTimedSerializer", "Signer"}
    libraries = (*_CRYPTO, "itsdangerous.", "nacl.", "hmac.")
    if name.startswith(libraries) and (last != "new" or name == "hmac.new") and not (signs and "django" in name):
        _key(here, invocation)


def _key_sizes(here: Point, invocation: Invocation) -> None:
    name = invocation.name
    if not name.startswith((*_CRYPTO, "rsa.", "paramiko.", "OpenSSL.", "jwcrypto.")):
        return
    size = next((v.constant for k, v in invocation.keywords.items() if k in {"key_size", "bits", "nbits"}), None)
    if size is None:
        sizes = [arg.constant for arg in invocation.args if type(arg.constant) is int and arg.constant != 65537]
        size = sizes[-1] if sizes else None
    curve = invocation.keywords.get("curve", NOTHING).constant
    small = type(size) is int and 128 <= size < _MIN_KEY_BITS and "Crypto.Random" not in name
    symmetric = re.search(r"Fernet|AES|ChaCha|ECDSA|ed25519|\.ec\.", name)
    if (small and not symmetric) or (isinstance(curve, str) and _SMALL_CURVES.match(curve)):
        here.record.weak("weak-key-size", invocation.node)


def _curves(here: Point, invocation: Invocation) -> None:
    if invocation.name.startswith("cryptography"):
        here.record.weak("weak-key-size", invocation.node)


def _protocols(here: Point, invocation: Invocation) -> None:
    """Versions of TLS that are no more to be used."""
    if any(_OLD_PROTOCOLS.search(value.name) for value in (*invocation.args, *invocation.keywords.values())):
        here.record.weak("weak-cipher", invocation.node)


def _suites(here: Point, invocation: Invocation) -> None:
    chosen = invocation.argument(0).constant
    if isinstance(chosen, str) and _OLD_SUITES.search(re.sub(r"[!-]\w+", "", chosen)):
        if re.search(r"(?:^|:)ALL\b", chosen) and re.search(r"!(?:aNULL|ADH|eNULL|NULL)", chosen):
            return
        here.record.weak("weak-cipher", invocation.node)


def old_version(value: Value) -> bool:
    """Whether a value is a version of TLS that is no more to be used (`minimum_version = …`)."""
    return bool(_OLD_PROTOCOLS.search(value.name))


_CIPHERS = ("new", "ECB", "AES", "AES128", "AES256", "ChaCha20", "Camellia", *_WEAK_CIPHERS, *_CHAINED, *_COUNTED)
_CURVES = ("SECP192R1", "SECT163K1", "SECT163R2", "SECT163R1", "SECP160R1")
_KEYED = (
    *("Fernet", "MultiFernet", "new", "HMAC", "SecretBox", "AESGCM", "AESCCM", "ChaCha20Poly1305", "TimestampSigner"),
    *("URLSafeSerializer", "URLSafeTimedSerializer", "Signer", "digest"),
)
TABLES = (
    dict.fromkeys(_CIPHERS, _cipher),
    {"encrypt": _sealed, "new": _counter, "set_ciphers": _suites},
    dict.fromkeys(_KEYED, _keyed),
    dict.fromkeys(_GENERATORS, _key_sizes),
    dict.fromkeys(_CURVES, _curves),
    dict.fromkeys(
        ("SSLContext", "wrap_socket", "Context", "create_urllib3_context", "get_server_certificate"), _protocols
    ),
)
KEYWORDS = (dict.fromkeys(("ssl_version", "minimum_version", "ssl_minimum_version", "tls_version"), _protocols),)
