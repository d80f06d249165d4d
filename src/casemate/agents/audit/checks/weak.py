"""Places that are weak by themselves or by what they compare: the entry to all such checks.

A check names the calls that it looks at, by their last name or by a keyword that they are given; so a call costs two
look-ups however many checks there are.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from casemate.agents.audit.checks import (
    access,
    ciphers,
    comparing,
    cookies,
    declarations,
    defaults,
    exhaustion,
    files,
    hashes,
    parsers,
    planted,
    randomness,
    secrets,
    telling,
    tokens,
    transport,
)
from casemate.agents.audit.checks.backtracking import Cost, worst_case
from casemate.agents.audit.checks.meaning import meanings
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.sink import Invocation, Sink
from casemate.agents.audit.facts.values import NOTHING, Unknown, Value
from casemate.finding import Confidence

_Check = Callable[[Point, Invocation], None]
_EXPLODES = Sink("regex-denial-of-service", "long")
_CRAWLS = Sink("regex-denial-of-service", "long", confidence=Confidence.MEDIUM)
_MATCHING = ("match", "search", "fullmatch", "findall", "finditer", "sub", "split")


def call(here: Point, invocation: Invocation) -> None:
    """Every check of a call."""
    last = invocation.name.rpartition(".")[2]
    if "**" in invocation.keywords:
        invocation = _spread(invocation)
    _run(here, invocation, last=last)
    indirect = _is_indirect(invocation.node.func) and not invocation.name.startswith(_RESOLVED)
    if indirect and here.record.imports(*_LIBRARIES):
        for known in meanings(here.record, invocation.node.func) or exhaustion.members(
            here.record, invocation.node.func
        ):
            if known.name and known.name != invocation.name:
                _run(here, replace(invocation, name=known.name), last=known.name.rpartition(".")[2])
    if last in _WORTH_ASKING or invocation.keywords.keys() & _SPREAD:
        for twin in _twins(here, invocation):
            _run(here, twin, last=last)


def _run(here: Point, invocation: Invocation, *, last: str) -> None:
    for check in _BY_NAME.get(last, ()):
        check(here, invocation)
    for keyword in invocation.keywords:
        for check in _BY_KEYWORD.get(keyword, ()):
            check(here, invocation)


def _spread(invocation: Invocation) -> Invocation:
    """The call with the members of a known `**options` as keywords."""
    items = invocation.keywords["**"].items or {}
    named = {key: value for key, value in items.items() if isinstance(key, str) and key.isidentifier()}
    return replace(invocation, keywords={**named, **invocation.keywords}) if named else invocation


def _is_indirect(node: ast.expr) -> bool:
    """`TABLE[key](…)`, `self.maker(…)`, `self.source.choice(…)`."""
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Attribute) or (
            isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}
        )
    return isinstance(node, ast.Subscript | ast.Name)


def _twins(here: Point, invocation: Invocation) -> Iterator[Invocation]:
    """The call with each of its unknown arguments as the source elsewhere says that it is."""
    node = invocation.node
    for position, argument in enumerate(node.args[: len(invocation.args)]):
        if _is_open(argument, invocation.args[position]):
            for value in meanings(here.record, argument):
                args = (*invocation.args[:position], value, *invocation.args[position + 1 :])
                yield replace(invocation, args=args)
    for keyword in node.keywords:
        name = keyword.arg or "**"
        if _is_open(keyword.value, invocation.keywords.get(name, NOTHING)):
            for value in meanings(here.record, keyword.value):
                items = {str(key): item for key, item in (value.items or {}).items()} if name == "**" else {}
                yield replace(invocation, keywords={**invocation.keywords, name: value, **items})


def _is_open(node: ast.expr, value: Value) -> bool:
    written = isinstance(node, ast.Constant | ast.JoinedStr | ast.Lambda)
    return not written and isinstance(value.constant, Unknown) and not (value.items and "**" not in value.items)


def comparison(record: Record, node: ast.Compare, *, values: list[Value]) -> None:
    """A proof (signature, token) compared by `==` tells by its time how much of it was right."""
    comparing.comparison(record, node, values=values)


def module(record: Record) -> None:
    """Every check of a file as a whole: secrets, declarations, routes, texts."""
    for secret in secrets.find(record.source.tree):
        record.weak("hard-coded-secret", secret.node, confidence=secret.confidence)
    declarations.check(record)
    access.check(record)
    planted.check(record)


def repeated(record: Record, node: ast.BinOp, *, left: Value, right: Value) -> None:
    """Checks of a multiplication."""
    exhaustion.repeated(record, node, left=left, right=right)


def _exploding(here: Point, invocation: Invocation) -> None:
    """A pattern that can take exponential or polynomial time, on untrusted text."""
    owner, _, method = invocation.name.rpartition(".")
    of_module = owner in {"re", "regex"}
    text = invocation.argument((1 if method == "sub" else 0) + (1 if of_module else 0), "string")
    if not text.everything() or not here.record.imports("re", "regex"):
        return
    for pattern in _patterns(here, invocation, of_module=of_module):
        cost = worst_case(pattern, whole=method == "fullmatch")
        if cost is not Cost.LINEAR:
            here.record.sink(_EXPLODES if cost is Cost.EXPONENTIAL else _CRAWLS, invocation.node, reached=text)


def _patterns(here: Point, invocation: Invocation, *, of_module: bool) -> list[str]:
    """The pattern that is looked for, or each that it may be."""
    known = invocation.argument(0, "pattern") if of_module else invocation.receiver
    if isinstance(known.constant, str):
        return [known.constant] if of_module or known.name.endswith("compile()") else []
    function = invocation.node.func
    node = invocation.written(0, "pattern") if of_module else getattr(function, "value", None)
    found = meanings(here.record, node) if node is not None else ()
    compiled = (value.constant for value in found if of_module or value.name == "re.compile()")
    return [pattern for pattern in compiled if isinstance(pattern, str)]


def _joined(tables: Iterable[Mapping[str, _Check]]) -> Mapping[str, tuple[_Check, ...]]:
    joined: dict[str, tuple[_Check, ...]] = {}
    for table in tables:
        for name, check in table.items():
            joined[name] = (*joined.get(name, ()), check)
    return joined


_MODULES = (hashes, ciphers, randomness, tokens, transport, cookies, defaults, files, parsers, telling, exhaustion)
_BY_NAME = _joined((*(table for module in _MODULES for table in module.TABLES), dict.fromkeys(_MATCHING, _exploding)))
_BY_KEYWORD = _joined(
    table for module in (ciphers, transport, cookies, defaults, parsers, exhaustion) for table in module.KEYWORDS
)
NAMES = tuple(_BY_NAME)
"""The last names of the calls that any check looks at."""
_LIBRARIES = (
    "Crypto",
    "Cryptodome",
    "cryptography",
    "random",
    "tempfile",
    "hashlib",
    "ssl",
    "secrets",
    "uuid",
    "jwt",
    "yaml",
    "gzip",
    "zlib",
    "bz2",
    "lzma",
    "importlib",
)
_RESOLVED = tuple(f"{library}." for library in _LIBRARIES if library != "importlib")
_SPREAD = frozenset({"**", "verify", "debug", "key_size", "bits", "mode", "algorithms", "options", "Loader", "filter"})
_COMMON = frozenset(
    {"open", "read", "get", "update", "time", "now", "new", "copy", "range", "sleep", "limit", "load", "repeat"}
)
_WORTH_ASKING = frozenset(
    name
    for module in (hashes, ciphers, tokens, cookies, files)
    for table in module.TABLES
    for name in table
    if name not in _COMMON
) | {"new", "set_option"}
