"""Checks of comparisons: a proof compared by `==` tells by its time how much of a guess was right."""

from __future__ import annotations

import ast

from casemate.agents.audit.checks.meaning import meanings
from casemate.agents.audit.checks.words import words
from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.sink import Sink
from casemate.agents.audit.facts.values import UNKNOWN, Value, gather
from casemate.finding import Confidence

_TIMING = Sink("timing-comparison", "timing", confidence=Confidence.MEDIUM)
_PROOFS = frozenset({"signature", "digest", "mac", "hmac", "token", "secret", "apikey", "sig", "csrf", "otp"})
_PROOF_PAIRS = (frozenset({"api", "key"}), frozenset({"secret", "key"}), frozenset({"access", "key"}))
_NOT_PROOFS = frozenset(
    {"type", "kind", "count", "len", "id", "name", "class", "tokens", "tag", "tok", "toktype", "version", "algorithm"}
)
_SEALS = ("hmac.new()", "hmac.digest()", "hmac.HMAC()")


def comparison(record: Record, node: ast.Compare, *, values: list[Value]) -> None:
    """Note a proof (signature, token) that is compared by `==` with something untrusted."""
    if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq | ast.NotEq):
        return
    sides = (node.left, node.comparators[0])
    if any(isinstance(side, ast.Constant) for side in sides):
        return
    if any(value.constant is not UNKNOWN for value in values):
        return
    if any(_compares_itself(record, value) for value in values):
        return
    if any(value.name.startswith(_SEALS) and "digest" in value.name for value in values):
        record.weak("timing-comparison", node, confidence=Confidence.MEDIUM)
        return
    if any(_holds_seal(record, side) for side in sides):
        record.weak("timing-comparison", node, confidence=Confidence.MEDIUM)
        return
    shown = [words(ast.unparse(side)) for side in sides]
    proof = any(_is_proof(names) for names in shown)
    if proof and not any("len" in names for names in shown):
        record.sink(_TIMING, node, reached=gather(*values))


def _holds_seal(record: Record, node: ast.expr) -> bool:
    """Whether an expression stands for a MAC that this file computes, or for a pair that holds one."""
    if not record.imports("hmac") or not isinstance(node, ast.Name | ast.Call | ast.Attribute | ast.Tuple | ast.List):
        return False
    parts = (part for value in meanings(record, node) for part in (value, *(value.items or {}).values()))
    return any(part.name.startswith(_SEALS) and "digest" in part.name for part in parts)


def _compares_itself(record: Record, value: Value) -> bool:
    """Whether a value is of a class of this file whose `==` takes constant time."""
    made = value.name.removesuffix("()").rpartition(".")[2]
    for node in record.definitions.classes if value.name.endswith("()") else ():
        methods = [line for line in node.body if isinstance(line, ast.FunctionDef) and line.name == "__eq__"]
        if node.name == made and any("compare_digest" in ast.unparse(method) for method in methods):
            return True
    return False


def _is_proof(said: frozenset[str]) -> bool:
    return bool(said & _PROOFS or any(pair <= said for pair in _PROOF_PAIRS)) and not said & _NOT_PROOFS
