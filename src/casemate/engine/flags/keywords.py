"""What the keywords of `add_argument` say of an option, read as syntax."""

from __future__ import annotations

import ast
from collections.abc import Callable

from casemate.engine.flags.hints import Facts
from casemate.engine.flags.tree import Place, Tree

_FORMS = {
    "int": "int",
    "float": "float",
    "str": "str",
    "json.loads": "json",
    "human_readable_int": "size",
    "human_readable_int_or_auto": "length",
}


def given(tree: Tree, name: str, *, place: Place) -> Facts:
    """The facts in one keyword of that name, whose value stands at that place; none for one that says nothing."""
    return _SAID[name](tree, place) if name in _SAID else {}


def _type(tree: Tree, place: Place) -> Facts:
    del tree
    said = ast.unparse(place.node)
    while said.startswith(("optional_type(", "parse_type(")):
        said = said.partition("(")[2].removesuffix(")")
    if said.startswith("lambda") and ".lower()" in said:
        return {"form": "word"}
    return {"form": "json" if said.endswith((".from_cli", ".from_json")) else _FORMS.get(said, "str")}


def _choices(tree: Tree, place: Place) -> Facts:
    values = tree.strings(place.module, place.node)
    return {"values": tuple(values), "closed": True} if values else {"closed": False}


def _action(tree: Tree, place: Place) -> Facts:
    del tree
    said = ast.unparse(place.node)
    if said in ("'store_true'", "'store_false'"):
        return {"form": "switch"}
    if said.endswith("BooleanOptionalAction"):
        return {"form": "pair"}
    if said == "StoreBoolean":
        return {"form": "bool", "arity": "?"}
    return {"deprecated": True} if "Deprecated" in said else {}


def _nargs(tree: Tree, place: Place) -> Facts:
    arity = tree.constant(place.module, place.node)
    return {"arity": arity if arity in ("?", "+", "*") else "+"}


def _deprecated(tree: Tree, place: Place) -> Facts:
    return {"deprecated": tree.constant(place.module, place.node) is True}


def _default(tree: Tree, place: Place) -> Facts:
    default = tree.constant(place.module, place.node)
    return {"default": "" if default is None else str(default)}


def _help(tree: Tree, place: Place) -> Facts:
    said = str(tree.constant(place.module, place.node) or "")
    dead = "DEPRECATION" in ast.unparse(place.node) or said.lstrip().upper().startswith("[DEPRECATED")
    return {"deprecated": True} if dead else {}


def _flags(tree: Tree, place: Place) -> Facts:
    return {"aliases": tuple(tree.strings(place.module, place.node) or ())}


_SAID: dict[str, Callable[[Tree, Place], Facts]] = {
    "type": _type,
    "choices": _choices,
    "action": _action,
    "nargs": _nargs,
    "deprecated": _deprecated,
    "default": _default,
    "help": _help,
    "flags": _flags,
}
