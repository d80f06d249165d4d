"""What a type says of the values that it lets through: numbers, members of a fixed set, texts of a pattern."""

from __future__ import annotations

import ast

from casemate.agents.audit.checks.patterns import harmless_kinds
from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.values import on_both
from casemate.agents.audit.vocabulary.cleaners import NUMBER
from casemate.agents.audit.vocabulary.handlers import CLEAN_TYPES, OPEN_TYPES, WRAPPERS
from casemate.agents.audit.vocabulary.lexicon import EVERYTHING

_ALL = frozenset({EVERYTHING})
_NONE: frozenset[str] = frozenset()
_TEXT = frozenset({"nosql"})
_PATTERNS = frozenset({"pattern", "regex"})
_ENUMS = ("Enum", "IntEnum", "StrEnum", "TextChoices", "IntegerChoices", "Flag")


def harmless(record: Record, annotation: ast.expr | None, *, default: ast.expr | None) -> frozenset[str]:
    """Kinds of sink for which a value is harmless by its type.

    Args:
        record: the file, for what its names stand for.
        annotation: the type as written; None says nothing.
        default: what stands behind it: a value, or a declaration such as `Query(pattern=…)`.
    """
    declared = _declared(record, default)
    if annotation is None:
        return declared
    return declared | _by_type(record, annotation)


def resolved(record: Record, annotation: ast.expr | None) -> str:
    """A type as a dotted name, without `Optional`, `Annotated` and `| None`; empty for one made of several."""
    node = _parsed(annotation)
    if isinstance(node, ast.Subscript) and last(node.value) in {"Optional", "Annotated"}:
        inner = node.slice
        return resolved(record, inner.elts[0] if isinstance(inner, ast.Tuple) else inner)
    if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant):
        return resolved(record, node.left)
    name = record.dotted(node) if isinstance(node, ast.Name | ast.Attribute) else ""
    local = f"{record.name}.{name}"
    return local if local in record.bases else name


def last(node: ast.expr) -> str:
    """The last name of a dotted expression."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _by_type(record: Record, annotation: ast.expr) -> frozenset[str]:
    node = _parsed(annotation)
    match node:
        case ast.Name() | ast.Attribute():
            return _named(record, node)
        case ast.BinOp(left=left, right=right):
            return on_both(_by_type(record, left), _by_type(record, right))
        case ast.Constant(value=None):
            return _ALL
        case ast.Call(func=function, keywords=keywords):
            return _named(record, function) | _pattern(keywords)
        case ast.Subscript(value=holder, slice=inner):
            return _generic(record, holder, inner=inner)
        case _:
            return _NONE


def _generic(record: Record, holder: ast.expr, *, inner: ast.expr) -> frozenset[str]:
    name = last(holder)
    if name == "Literal":
        return _ALL
    if name not in WRAPPERS:
        return _NONE
    parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if name == "Annotated":
        declared = (_declared(record, part) for part in parts[1:])
        return _by_type(record, parts[0]).union(*declared)
    kinds = [_by_type(record, part) for part in parts if not isinstance(part, ast.Constant) or part.value is not ...]
    whole = kinds[0] if kinds else _NONE
    for other in kinds[1:]:
        whole = on_both(whole, other)
    return whole


def _named(record: Record, node: ast.expr) -> frozenset[str]:
    name = record.dotted(node)
    if name in CLEAN_TYPES:
        return NUMBER
    bases = record.bases.get(f"{record.name}.{name}", ())
    if any(base.rpartition(".")[2] in _ENUMS for base in bases):
        return _ALL
    return _NONE if name.rpartition(".")[2] in OPEN_TYPES or bases else _TEXT


def _declared(record: Record, node: ast.expr | None) -> frozenset[str]:
    """`Query(pattern="^[a-z]+$")` and its like."""
    del record
    return _pattern(node.keywords) if isinstance(node, ast.Call) else _NONE


def _pattern(keywords: list[ast.keyword]) -> frozenset[str]:
    for keyword in keywords:
        if (
            keyword.arg in _PATTERNS
            and isinstance(keyword.value, ast.Constant)
            and isinstance(keyword.value.value, str)
        ):
            text = keyword.value.value
            if text.startswith(("^", r"\A")) and text.endswith(("$", r"\Z", r"\z")):
                return harmless_kinds(text.replace(r"\z", r"\Z"), whole=True)
    return _NONE


def _parsed(annotation: ast.expr | None) -> ast.expr | None:
    """An annotation that is written as a text is read as what it says."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            return ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return None
    return annotation
