"""What the parameters of a JavaScript function are: a role that a framework gives, or whatever callers pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from casemate.agents.audit.facts.values import NOTHING, Value
from casemate.agents.audit.javascript.lexicon import (
    DECORATORS,
    NO_KINDS,
    REQUEST_NAMES,
    RESPONSE_NAMES,
    ROLES_OF_TYPES,
    WEB,
)
from casemate.agents.audit.javascript.notes import Notes, name_of
from casemate.agents.audit.javascript.source import text_of

_PATTERNS = frozenset({"identifier", "object_pattern", "array_pattern", "assignment_pattern", "rest_pattern"})
_TYPED = frozenset({"required_parameter", "optional_parameter"})
_PAGES = frozenset({"getServerSideProps", "getInitialProps", "generateMetadata"})
_VERBS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True, slots=True)
class Declared:
    """One parameter: its pattern, its name (`#1` for one that is taken apart), its type's and its decorators' names."""

    pattern: Node
    name: str
    type: str = ""
    decorators: tuple[str, ...] = ()
    property: bool = False


def declared(function: Node) -> tuple[Declared, ...]:
    """The parameters of a function, in order."""
    alone = function.child_by_field_name("parameter")
    if alone is not None:
        return (Declared(alone, text_of(alone)),)
    listed = function.child_by_field_name("parameters")
    return tuple(_declared(listed)) if listed is not None else ()


def _declared(listed: Node) -> Iterator[Declared]:
    for child in listed.named_children:
        typed = child.type in _TYPED
        pattern = child.child_by_field_name("pattern") if typed else child
        if pattern is None or pattern.type not in _PATTERNS:
            continue
        named = pattern
        while named.type in {"assignment_pattern", "rest_pattern"} and named.named_children:
            named = named.named_children[0]
        name = text_of(named) if named.type == "identifier" else f"#{child.start_byte}"
        if not typed:
            yield Declared(pattern, name)
            continue
        kinds = [grandchild.type for grandchild in child.named_children]
        decorators = tuple(_decorators(child))
        typed_as = _type_name(child.child_by_field_name("type"))
        yield Declared(pattern, name, typed_as, decorators, "accessibility_modifier" in kinds)


def _type_name(annotation: Node | None) -> str:
    """The last part of a type's name, without what stands in angles."""
    return text_of(annotation).lstrip(": ").partition("<")[0].rpartition(".")[2].strip()


def _decorators(parameter: Node) -> Iterator[str]:
    for child in parameter.named_children:
        if child.type == "decorator":
            yield text_of(child)[1:].partition("(")[0].rpartition(".")[2]


def passed(notes: Notes, function: Node, *, given: Sequence[Value] | None) -> list[Value]:
    """The value of each parameter.

    Args:
        notes: of the file.
        function: the function.
        given: what it is called with where it stands; None where callers are looked for.
    """
    parameters, name = declared(function), name_of(function)
    values: list[Value] = []
    for position, parameter in enumerate(parameters):
        role = _role(parameter, position, function=name, parameters=parameters, before=values)
        explicit = given[position] if given is not None and position < len(given) else NOTHING
        if set(parameter.decorators) & DECORATORS:
            key = f"@{parameter.decorators[0]} {parameter.name}"
            values.append(notes.untrusted(parameter.pattern, key, kind=WEB, cleared=NO_KINDS))
        elif explicit is not NOTHING and role != "@ctx":
            values.append(explicit)
        elif role:
            values.append(Value(name=role))
        elif given is None:
            values.append(notes.parameter(notes.key(function), parameter.name))
        else:
            values.append(NOTHING)
    return values


def _role(
    parameter: Declared, position: int, *, function: str, parameters: tuple[Declared, ...], before: list[Value]
) -> str:
    taken, answers = parameter.name.startswith("#"), parameter.name in RESPONSE_NAMES
    asked = any(value.name.startswith("@") for value in before)
    roles = (
        (parameter.type in ROLES_OF_TYPES, ROLES_OF_TYPES.get(parameter.type, "")),
        (parameter.name in REQUEST_NAMES or (function in _PAGES and taken), "@req"),
        (taken and position == 0 and len(parameters) > 1 and parameters[1].name in RESPONSE_NAMES, "@req"),
        (taken and position == 1 and function in _VERBS, "@req"),
        (answers and (asked or (position == 1 and parameters[0].name.startswith("#"))), "@res"),
        (parameter.name == "ctx", "@ctx"),
        (parameter.name == "event" and "handler" in function.lower(), "@event"),
    )
    return next((role for applies, role in roles if applies), "")
