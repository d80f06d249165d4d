"""Checks of numbers and names that nobody may guess: where they come from, and how long they are."""

from __future__ import annotations

import ast

from casemate.agents.audit.checks.purpose import named, purpose, setting
from casemate.agents.audit.checks.words import words
from casemate.agents.audit.facts.definitions import name_of
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.sink import Invocation
from casemate.finding import Confidence

_SECRET_USE = frozenset(
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
        *("activation", "confirmation", "invite", "invitation", "recovery", "sessionid", "encryption", "login", "pw"),
        *("passphrase", "unguessable", "unpredictable", "totp", "xsrf", "credentials", "remember", "signing", "crypto"),
        *("cipher", "coupon", "giftcard", "ticket", "mfa", "2fa", "authenticate", "authorization", "seed_phrase"),
        *("passwort", "magic", "license"),
    }
)
_SECRET_PAIRS = (
    frozenset({"api", "key"}),
    frozenset({"access", "key"}),
    frozenset({"access", "code"}),
    frozenset({"verify", "code"}),
    frozenset({"sms", "code"}),
    frozenset({"secret", "key"}),
    frozenset({"private", "key"}),
    frozenset({"gift", "code"}),
    frozenset({"security", "code"}),
    frozenset({"login", "code"}),
    frozenset({"one", "time"}),
)
_CODES = frozenset({"code", "pin", "number", "key", "string", "digit"})
_CODE_USES = frozenset(
    {"reset", "otp", "password", "login", "signin", "recovery", "verification", "invite", "voucher", "mfa", "session"}
)
_NOT_SECRET = frozenset(
    {
        *("delay", "jitter", "sleep", "backoff", "timeout", "interval", "count", "ttl", "color", "colour", "sample"),
        *("shuffle", "shuffled", "shard", "weight", "noise", "mock", "fake", "demo", "dice", "index", "idx", "logits"),
        *(
            "retry",
            "port",
            "mask",
            "vocab",
            "dropout",
            "augment",
            "simulate",
            "experiment",
            "variant",
            "proxy",
            "boundary",
        ),
    }
)
_RANDOM = ("random", "randint", "choice", "choices", "randrange", "getrandbits", "sample", "uniform", "randbytes")
_OWNERS = frozenset({"random", "numpy.random", "random.Random()", "np.random", "numpy.random.RandomState()"})
_CLOCKS = frozenset({"time.time", "time.time_ns", "datetime.datetime.now", "datetime.datetime.utcnow", "os.getpid"})
_SHORT_BYTES = 8


def _random(here: Point, invocation: Invocation) -> None:
    owner = invocation.name.rpartition(".")[0]
    if owner not in _OWNERS or "weights" in invocation.keywords:
        return
    use = purpose(here, invocation.node)
    if use & _NOT_SECRET:
        return
    if _is_secret(use):
        here.record.weak("weak-randomness", invocation.node)
    elif _is_code(here, invocation, use=use) and setting(here, invocation.node) & _CODE_USES:
        here.record.weak("weak-randomness", invocation.node, confidence=Confidence.MEDIUM)


def _is_code(here: Point, invocation: Invocation, *, use: frozenset[str]) -> bool:
    """A code of no name of its own; its class, module or their texts tell what such codes are for."""
    holder = here.record.definitions.class_around(invocation.node.lineno)
    said = use | (words(holder.name) if holder is not None else frozenset())
    return bool({word.removesuffix("s") for word in said} & _CODES)


def _shuffle(here: Point, invocation: Invocation) -> None:
    """Shuffling the characters of a password, or the deck that a secret is drawn from."""
    given = frozenset[str]().union(*(named(argument) for argument in invocation.node.args))
    if invocation.name.rpartition(".")[0] in _OWNERS and _is_secret(given):
        here.record.weak("weak-randomness", invocation.node)


def _clocked(here: Point, invocation: Invocation) -> None:
    """A token made of the clock, or an identifier that tells the clock and the network card."""
    name = invocation.name
    if name in _CLOCKS and not _is_token_of_time(here, invocation):
        return
    if name not in _CLOCKS and not name.startswith("uuid."):
        return
    use = purpose(here, invocation.node)
    if use & {"token", "otp", "secret", "password", "sessionid", "csrf", "apikey", "nonce", "reset"} and not (
        use & (_NOT_SECRET | {"expires", "exp", "expiry", "iat", "issued", "created", "age", "timestamp", "last"})
    ):
        here.record.weak("predictable-identifier", invocation.node, confidence=Confidence.MEDIUM)


def _is_token_of_time(here: Point, invocation: Invocation) -> bool:
    """Whether the clock's time goes, as text, into a hash or a token itself, not beside it."""
    statement = here.record.statement
    if not isinstance(statement, ast.Assign | ast.Return | ast.AnnAssign) or statement.value is None:
        return False
    hashed = any(
        isinstance(inner, ast.Call)
        and name_of(inner.func) in {"md5", "sha1", "sha256", "sha512", "b64encode", "hexlify", "uuid5", "uuid3"}
        and any(part is invocation.node for part in ast.walk(inner))
        for inner in ast.walk(statement.value)
    )
    secret = any(
        isinstance(inner, ast.Call) and name_of(inner.func) in {"token_hex", "token_bytes", "urandom", "token_urlsafe"}
        for inner in ast.walk(statement.value)
    )
    keyed = any(isinstance(n, ast.Name) and "secret" in n.id.lower() for n in ast.walk(statement.value))
    return hashed and not secret and not keyed


def _short(here: Point, invocation: Invocation) -> None:
    """A token of a few bytes is guessed by trying all of them."""
    size = invocation.argument(0, "nbytes").constant
    if type(size) is not int or size >= _SHORT_BYTES or not invocation.name.startswith(("secrets.", "os.")):
        return
    use = purpose(here, invocation.node)
    if use & {"session", "token", "reset", "apikey", "secret", "csrf", "cookie", "auth"} and "prefix" not in use:
        here.record.weak("short-token", invocation.node, confidence=Confidence.MEDIUM)


def _is_secret(use: frozenset[str]) -> bool:
    return bool(use & _SECRET_USE) or any(pair <= use for pair in _SECRET_PAIRS)


TABLES = (
    dict.fromkeys(_RANDOM, _random),
    {"shuffle": _shuffle},
    dict.fromkeys(("uuid1", "time", "time_ns", "now", "utcnow"), _clocked),
    dict.fromkeys(("token_hex", "token_bytes", "token_urlsafe", "urandom"), _short),
)
