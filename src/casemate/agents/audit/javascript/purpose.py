"""What a value of JavaScript is for: the words of the names around it. Pure."""

from __future__ import annotations

from tree_sitter import Node

from casemate.agents.audit.checks.words import words
from casemate.agents.audit.javascript.notes import name_of
from casemate.agents.audit.javascript.source import FUNCTIONS, descendants, text_of

_NAMES = frozenset({"identifier", "property_identifier", "shorthand_property_identifier", "string_fragment"})
_STATEMENTS = ("_statement", "_declaration", "statement_block", "program", "class_body")


def purpose(node: Node) -> frozenset[str]:
    """Words for what becomes of an expression: what it is given to in its statement, and the function around."""
    found: set[str] = set()
    here = node
    while here.parent is not None and not here.parent.type.endswith(_STATEMENTS):
        here = here.parent
        if here.type in FUNCTIONS:
            return frozenset(found | words(name_of(here)))
        found |= _given_to(here)
    statement = here.parent
    while statement is not None and statement.type not in FUNCTIONS:
        statement = statement.parent
    if statement is not None:
        found |= words(name_of(statement))
    return frozenset(found)


def named_in(node: Node | None) -> frozenset[str]:
    """Words of every name in an expression; those of texts are left out, but for keys."""
    if node is None:
        return frozenset()
    found = (text_of(inner) for inner in descendants(node) if inner.type in _NAMES and inner.type != "string_fragment")
    return frozenset[str]().union(*map(words, found))


def _given_to(node: Node) -> frozenset[str]:
    if node.type == "variable_declarator":
        return words(text_of(node.child_by_field_name("name")))
    if node.type in {"assignment_expression", "augmented_assignment_expression"}:
        return words(text_of(node.child_by_field_name("left")))
    if node.type in {"pair", "public_field_definition", "field_definition"}:
        return words(text_of(node.child_by_field_name("key") or node.child_by_field_name("name")))
    return frozenset()


def call_name(node: Node) -> str:
    """The last part of what a call calls."""
    function = node.child_by_field_name("function") or node.child_by_field_name("constructor")
    if function is None:
        return ""
    last = function.child_by_field_name("property")
    return text_of(last if last is not None else function)


def owner_text(node: Node) -> str:
    """The text of what a method is called on; empty for a plain function."""
    function = node.child_by_field_name("function")
    return text_of(function.child_by_field_name("object")) if function is not None else ""


def arguments(node: Node) -> list[Node]:
    """The arguments of a call."""
    listed = node.child_by_field_name("arguments")
    if listed is None or listed.type != "arguments":
        return []
    return [child for child in listed.named_children if child.type != "comment"]


def literal(node: Node | None) -> str | None:
    """The text of a string without gaps; None for anything else."""
    if node is None or node.type not in {"string", "template_string"}:
        return None
    if any(child.type == "template_substitution" for child in node.named_children):
        return None
    return text_of(node)[1:-1]


def options(node: Node | None) -> dict[str, Node]:
    """The values of an object that is written out, by key; a spread one has the key `...`."""
    found: dict[str, Node] = {}
    for child in node.named_children if node is not None and node.type == "object" else ():
        if child.type == "pair":
            key, value = child.child_by_field_name("key"), child.child_by_field_name("value")
            if value is not None:
                found[text_of(key).strip("'\"")] = value
        elif child.type == "shorthand_property_identifier":
            found[text_of(child)] = child
        elif child.type == "spread_element":
            found["..."] = child
    return found
