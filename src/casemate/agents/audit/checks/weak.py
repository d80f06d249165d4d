"""Places that are weak by themselves or by what they compare: the entry to all such checks.

`ciphers`, `defaults` and `resources` hold them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from casemate.agents.audit.checks import ciphers, defaults, resources
from casemate.agents.audit.checks.patterns import can_explode
from casemate.agents.audit.checks.secrets import words
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.sink import Invocation, Sink
from casemate.agents.audit.facts.values import UNKNOWN, Value, gather
from casemate.finding import Confidence

_Check = Callable[[Point, Invocation], None]
_EXPLODES = Sink("regex-denial-of-service", "regex")
_TIMING = Sink("timing-comparison", "timing", confidence=Confidence.MEDIUM)
_PROOFS = frozenset({"signature", "digest", "mac", "hmac", "token", "secret", "apikey", "sig", "checksum", "csrf"})
_NOT_PROOFS = frozenset({"type", "kind", "count", "len", "id", "name", "class", "tokens", "tag", "tok", "toktype"})
_MATCHING = frozenset({"match", "search", "fullmatch", "findall", "finditer", "sub", "split"})


def call(here: Point, invocation: Invocation) -> None:
    """Every check of a call."""
    for check in _CHECKS:
        check(here, invocation)


def comparison(record: Record, node: ast.Compare, *, values: list[Value]) -> None:
    """A proof (signature, token) compared by `==` tells by its time how much of it was right."""
    if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq | ast.NotEq):
        return
    sides = (node.left, node.comparators[0])
    if any(isinstance(side, ast.Constant | ast.List | ast.Tuple) for side in sides):
        return
    if any(value.constant is not UNKNOWN for value in values):
        return
    shown = [words(ast.unparse(side)) for side in sides]
    proof = any(names & _PROOFS and not names & _NOT_PROOFS for names in shown)
    if proof and not any("len" in names for names in shown):
        record.sink(_TIMING, node, reached=gather(*values))


def function(record: Record, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """Checks of a function's decorators."""
    for decorator in node.decorator_list:
        shown = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = shown.attr if isinstance(shown, ast.Attribute) else getattr(shown, "id", "")
        if name == "csrf_exempt" or (name == "exempt" and "csrf" in ast.unparse(shown)):
            record.weak("csrf-protection-off", decorator, confidence=Confidence.MEDIUM)


def _exploding(here: Point, invocation: Invocation) -> None:
    """A pattern that can take exponential time, on untrusted text."""
    owner, _, method = invocation.name.rpartition(".")
    if method not in _MATCHING or owner.partition(".")[0] not in {"re", "regex"}:
        return
    compiled = owner.endswith("()")
    pattern = invocation.receiver.constant if compiled else invocation.argument(0, "pattern").constant
    if isinstance(pattern, str) and can_explode(pattern):
        position = (1 if method == "sub" else 0) + (0 if compiled else 1)
        here.record.sink(_EXPLODES, invocation.node, reached=invocation.argument(position, "string"))


_CHECKS: tuple[_Check, ...] = (*ciphers.CHECKS, *defaults.CHECKS, *resources.CHECKS, _exploding)
