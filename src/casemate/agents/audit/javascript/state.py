"""What is known at a point of a JavaScript program: values by name, and what guards have shown. Plain data."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tree_sitter import Node

from casemate.agents.audit.facts.values import Value, join
from casemate.agents.audit.javascript.source import text_of

_BLANK = re.compile(r"\s+|[?!](?=[.\[)]|$)")
_PLACES = frozenset({"identifier", "member_expression", "subscript_expression", "this", "non_null_expression"})
_ASKED = frozenset({"get", "header", "param"})


@dataclass(slots=True)
class State:
    """`values` by name, `cleared` kinds by place (`req.query.id`); not `live` after a return or a throw."""

    values: dict[str, Value] = field(default_factory=dict)
    cleared: dict[str, frozenset[str]] = field(default_factory=dict)
    live: bool = True

    def copy(self) -> State:
        """The same knowledge, to go another way with."""
        return State(dict(self.values), dict(self.cleared), self.live)

    def adopt(self, other: State) -> None:
        """Know what another state knows."""
        self.values, self.cleared, self.live = other.values, other.cleared, other.live

    def assign(self, name: str, value: Value) -> None:
        """Give a name a value; what was shown of the old one is forgotten."""
        self.values[name] = value
        stale = [place for place in self.cleared if place == name or place.startswith((f"{name}.", f"{name}["))]
        for place in stale:
            del self.cleared[place]

    def clear(self, place: str, kinds: frozenset[str]) -> None:
        """Note that what stands at a place is harmless for these kinds."""
        if place:
            self.cleared[place] = self.cleared.get(place, frozenset()) | kinds


def meet(first: State, second: State) -> State:
    """What is known after two ways meet; one that ended says nothing."""
    if not first.live or not second.live:
        return first if first.live else second
    values = _shown(first)
    for name, value in _shown(second).items():
        known = values.get(name)
        values[name] = value if known is None else join(known, value)
    cleared = {
        place: both
        for place, kinds in first.cleared.items()
        if place in second.cleared and (both := kinds & second.cleared[place])
    }
    return State(values, cleared)


def _shown(state: State) -> dict[str, Value]:
    """Values with what guards have shown of them: on the other way the same name may hold something else."""
    values = dict(state.values)
    for name in state.cleared.keys() & values.keys():
        values[name] = values[name].clear(state.cleared[name])
    return values


def place(node: Node | None) -> str:
    """A name for an expression whose value can be asked twice (`x`, `this.x`, `q['k']`, `p.get('k')`); else empty."""
    if node is None:
        return ""
    if node.type in _PLACES:
        return _BLANK.sub("", text_of(node)) if _is_plain(node) else ""
    if node.type == "call_expression":
        function = node.child_by_field_name("function")
        arguments = node.child_by_field_name("arguments")
        asked = function is not None and text_of(function.child_by_field_name("property")) in _ASKED
        if asked and arguments is not None and all(child.type == "string" for child in arguments.named_children):
            return _BLANK.sub("", text_of(node)) if place(function) else ""
    return place(inner(node)) if node.type in WRAPPERS else ""


def inner(node: Node) -> Node | None:
    """What a wrapper wraps: parentheses, `await`, a type assertion."""
    return node.named_children[0] if node.named_children else None


WRAPPERS = frozenset(
    {"parenthesized_expression", "await_expression", "as_expression", "satisfies_expression", "non_null_expression"}
)
"""Expressions that are worth what they wrap."""


def _is_plain(node: Node) -> bool:
    """Whether no part of an access path is a call or an expression."""
    here: Node | None = node
    while here is not None:
        if here.type in {"identifier", "this"}:
            return True
        if here.type == "subscript_expression":
            index = here.child_by_field_name("index")
            if index is None or index.type not in {"string", "number"}:
                return False
        here = here.child_by_field_name("object") if here.type != "non_null_expression" else inner(here)
        if here is not None and here.type not in _PLACES:
            return False
    return False
