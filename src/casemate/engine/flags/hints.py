"""What a configuration field's annotation means for its flag: vLLM's own rules (`get_kwargs`), read off its source.

They changed over the versions; what changed is seen in the function's text and not in a version number.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Any

from casemate.engine.flags.tree import Place, Tree

Facts = dict[str, Any]
"""What `add_argument` would be given: form, arity, values, closed, default, deprecated, flags."""

_SCALARS = {"bool", "str", "int", "float", "dict", "list", "tuple", "set", "Any"}
_OLD = {"Dict": "dict", "List": "list", "Tuple": "tuple", "Set": "set", "Mapping": "dict"}
_DEPRECATED = re.compile(
    r"^\W*deprecated|\bthis \w+ (?:is|has been) deprecated|is deprecated and will be removed", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Hint:
    """One alternative of an annotation: `literal` with its values, a builtin's name, `dataclass`, `none`, `other`."""

    kind: str
    values: tuple[str, ...] = ()
    number: bool = False
    inner: tuple[Hint, ...] = ()


@dataclass(frozen=True, slots=True)
class Rules:
    """How one version turns a field into a flag."""

    open_literals: bool
    """A Literal beside str is shown and not enforced."""
    optional_strings: bool
    """`bool | str | None` takes a value or none; before that it was a pair of switches."""
    sizes: frozenset[str]
    """Fields that take 2k and 8M."""
    automatic: bool
    """The model length may be `auto` or -1."""
    pairs: bool
    """A dictionary may also be given as key=number pairs."""

    @classmethod
    def of(cls, text: str) -> Rules:
        """Read them from the module that holds `get_kwargs`."""
        functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
        shown = {node.name: node for node in functions}
        maker = shown.get("_compute_kwargs") or shown.get("get_kwargs")
        held = (
            [node for node in ast.walk(maker) if isinstance(node, ast.Set | ast.Tuple | ast.Compare)] if maker else []
        )
        words = {item.value for node in held for item in _items(node) if isinstance(item, ast.Constant)}
        return cls(
            open_literals="literal_to_kwargs" in shown and "metavar" in ast.unparse(shown["literal_to_kwargs"]),
            optional_strings=maker is not None and "{bool, str, type(None)}" in ast.unparse(maker),
            sizes=frozenset(word for word in words if isinstance(word, str)),
            automatic="human_readable_int_or_auto" in text,
            pairs="nullable_kvs(val)" in text,
        )


def fields(tree: Tree, place: Place, *, rules: Rules) -> dict[str, Facts]:
    """Every field of a configuration class, inherited ones first, as what its flag would be."""
    found: dict[str, Facts] = {}
    for base in tree.bases(place):
        found |= fields(tree, base, rules=rules)
    body = place.node.body if isinstance(place.node, ast.ClassDef) else []
    for child, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name):
            if _is_class_variable(child.annotation):
                continue
            facts = _facts(tuple(hints(tree, place.module, node=child.annotation)), child.target.id, rules=rules)
            default = tree.constant(place.module, child.value)
            facts["default"] = "" if default is None or isinstance(default, bytes) else str(default)
            facts["deprecated"] = bool(_DEPRECATED.search(_said(after)[:400]))
            found[child.target.id] = facts
    return found


def hints(tree: Tree, module: str, *, node: ast.AST | None) -> Iterator[Hint]:  # noqa: C901 - one case a form of syntax
    """The alternatives of an annotation."""
    match node:
        case ast.Constant(value=None):
            yield Hint("none")
        case ast.Constant(value=str() as quoted):
            yield from hints(tree, module, node=ast.parse(quoted, mode="eval").body)
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            yield from (*hints(tree, module, node=left), *hints(tree, module, node=right))
        case ast.Subscript(value=ast.Name(id="Optional"), slice=inner):
            yield from (*hints(tree, module, node=inner), Hint("none"))
        case ast.Subscript(value=ast.Name(id="Union"), slice=ast.Tuple(elts=several)):
            for one in several:
                yield from hints(tree, module, node=one)
        case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[first, *_])):
            yield from hints(tree, module, node=first)
        case ast.Subscript(value=ast.Name(id="SkipValidation"), slice=inner):
            yield from hints(tree, module, node=inner)
        case ast.Subscript(value=ast.Name(id="Literal")):
            values = tree.strings(module, node)
            yield Hint("literal", tuple(values), _all_numbers(tree, module, node=node)) if values else Hint("other")
        case ast.Subscript(value=ast.Name(id=outer), slice=inner) if _OLD.get(outer, outer) in _SCALARS:
            first = inner.elts[0] if isinstance(inner, ast.Tuple) and inner.elts else inner
            yield Hint(_OLD.get(outer, outer), inner=tuple(hints(tree, module, node=first)))
        case ast.Name(id=name):
            yield from _named(tree, module, name=name)
        case _:
            yield Hint("other")


def _named(tree: Tree, module: str, *, name: str) -> Iterator[Hint]:
    if (plain := _OLD.get(name, name)) in _SCALARS:
        yield Hint("other" if plain == "Any" else plain)
        return
    found = tree.find(module, name)
    match found.node if found else None:
        case ast.ClassDef(bases=[ast.Subscript(value=ast.Name(id="dict")), *_]):
            yield Hint("dict")
        case ast.ClassDef(decorator_list=marks) if any(_is_dataclass(mark) for mark in marks):
            yield Hint("dataclass")
        case ast.Assign(value=value) | ast.AnnAssign(value=value) if found and value is not None:
            yield from hints(tree, found.module, node=value)
        case _:
            yield Hint("other")


def _facts(alternatives: tuple[Hint, ...], name: str, *, rules: Rules) -> Facts:
    kinds = {hint.kind: hint for hint in alternatives}
    if "dataclass" in kinds:
        return {"form": "json"}
    if set(kinds) == {"bool", "str", "none"} and rules.optional_strings:
        return {"form": "str", "arity": "?"}
    if "bool" in kinds:
        return {"form": "pair"}
    if "literal" in kinds:
        closed = not ("str" in kinds and rules.open_literals)
        return _literal(kinds["literal"]) | {"closed": closed}
    if many := next((kinds[kind] for kind in ("tuple", "list", "set") if kind in kinds), None):
        return _element(many) | {"arity": "+"}
    return {"form": _scalar(kinds, name, rules=rules)}


def _scalar(kinds: Container[str], name: str, *, rules: Rules) -> str:
    if "int" in kinds:
        return _integer(name, rules)
    if "float" in kinds:
        return "float"
    if "dict" in kinds and not ("str" in kinds or "other" in kinds):
        return "pairs" if rules.pairs else "json"
    return "str"


def _items(node: ast.Set | ast.Tuple | ast.Compare) -> list[ast.expr]:
    return node.comparators if isinstance(node, ast.Compare) else node.elts


def _integer(name: str, rules: Rules) -> str:
    if name == "max_model_len" and rules.automatic:
        return "length"
    return "size" if name in rules.sizes else "int"


def _literal(hint: Hint) -> Facts:
    return {"form": "int" if hint.number else "str", "values": hint.values}


def _element(hint: Hint) -> Facts:
    first = hint.inner[0] if len(hint.inner) == 1 else Hint("str")
    if first.kind == "literal":
        return _literal(first) | {"closed": True}
    return {"form": first.kind if first.kind in ("int", "float") else "str"}


def _all_numbers(tree: Tree, module: str, *, node: ast.Subscript) -> bool:
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return all(isinstance(tree.constant(module, item), int) for item in items)


def _is_class_variable(annotation: ast.expr) -> bool:
    return "ClassVar" in ast.unparse(annotation) or "InitVar" in ast.unparse(annotation)


def _is_dataclass(mark: ast.expr) -> bool:
    target = mark.func if isinstance(mark, ast.Call) else mark
    name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
    return name in ("config", "dataclass")


def _said(statement: ast.stmt | None) -> str:
    match statement:
        case ast.Expr(value=ast.Constant(value=str() as text)):
            return text
    return ""
