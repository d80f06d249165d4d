"""Gives values to the targets of JavaScript: names, members, patterns that take a value apart."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tree_sitter import Node

from casemate.agents.audit.facts.values import NOTHING, UNKNOWN, Value, join
from casemate.agents.audit.javascript import strings
from casemate.agents.audit.javascript.expressions import Evaluator
from casemate.agents.audit.javascript.members import member
from casemate.agents.audit.javascript.notes import Notes
from casemate.agents.audit.javascript.sinks import NAVIGATION, PROPERTIES
from casemate.agents.audit.javascript.source import text_of
from casemate.agents.audit.javascript.state import State, place

_ADDRESSES = frozenset({"location", "location.href"})
_BOUND = frozenset({"identifier", "shorthand_property_identifier_pattern"})


@dataclass(slots=True)
class Frame:
    """A function that is being walked.

    `names` are those of its parameters, `waiting` functions in it that are walked later, `breaks` what was known where
    a loop or a switch was left, `declared` names of its own.
    """

    names: tuple[str, ...] = ()
    returns: Value | None = None
    guards: dict[str, frozenset[str]] | None = None
    ensures: dict[str, frozenset[str]] | None = None
    waiting: dict[int, tuple[Node, str]] = field(default_factory=dict)
    breaks: list[State] = field(default_factory=list)
    declared: set[str] = field(default_factory=set)


class Binder(Evaluator):
    """Assignments; `frame` is the function that is being walked."""

    def __init__(self, notes: Notes) -> None:
        super().__init__(notes)
        self.frame = Frame()
        self.ways["assignment_expression"] = self._assignment
        self.ways["augmented_assignment_expression"] = self._augmented

    def store(self, target: Node, value: Value, *, state: State, declares: bool = False) -> None:
        """Give a target a value: a name, a member, a pattern."""
        if target.type in _BOUND:
            state.assign(text_of(target), value)
            if declares:
                self.frame.declared.add(text_of(target))
        elif target.type in {"object_pattern", "array_pattern"}:
            for position, child in enumerate(target.named_children):
                self._take_apart(child, value, position=position, state=state, declares=declares)
        elif target.type in {"assignment_pattern", "object_assignment_pattern"}:
            left, default = target.named_children[0], self.value(target.named_children[-1], state)
            missing = value.constant is UNKNOWN and not value.taints and not value.name and value.items is None
            self.store(left, default if missing else join(value, default), state=state, declares=declares)
        elif target.type == "rest_pattern" and target.named_children:
            self.store(target.named_children[0], value, state=state, declares=declares)
        elif target.type in {"member_expression", "subscript_expression"}:
            self._store_member(target, value, state=state)

    def _take_apart(self, child: Node, value: Value, *, position: int, state: State, declares: bool) -> None:
        bound, key = child, str(position)
        if child.type == "pair_pattern":
            bound = child.child_by_field_name("value") or child
            key = text_of(child.child_by_field_name("key")).strip("'\"")
        elif child.parent is not None and child.parent.type == "object_pattern":
            named = child.named_children[0] if child.type == "object_assignment_pattern" else child
            key = text_of(named)
        if child.type == "rest_pattern":
            self.store(child, replace(value, name=""), state=state, declares=declares)
            return
        found = self.narrowed(member(self.notes, child, base=value, key=key), "", state=state)
        self.store(bound, found, state=state, declares=declares)

    def _store_member(self, target: Node, value: Value, *, state: State) -> None:
        owner = target.child_by_field_name("object")
        if owner is None:
            return
        base = self.value(owner, state)
        if target.type == "member_expression":
            key: object = text_of(target.child_by_field_name("property"))
        else:
            key = self.value(target.child_by_field_name("index"), state).constant
        if base.name.startswith("class:") and isinstance(key, str):
            self.notes.store(base.name, key, value=value)
            return
        state.clear(place(target), frozenset())
        state.cleared.pop(place(target), None)
        root = owner
        while root.type in {"member_expression", "subscript_expression"}:
            root = root.child_by_field_name("object") or root.named_children[0]
        if text_of(root) not in state.values or root.type != "identifier":
            return
        if isinstance(key, str | int):
            changed = base.put(int(key) if isinstance(key, str) and key.isdecimal() else key, value)
        else:
            changed = join(base, replace(base, taints={**base.taints, **value.everything()}))
        self.store(owner, changed, state=state)

    def _assignment(self, node: Node, state: State) -> Value:
        target, value = node.child_by_field_name("left"), self.value(node.child_by_field_name("right"), state)
        if target is not None:
            self.put(target, value, node=node, state=state)
        return value

    def _augmented(self, node: Node, state: State) -> Value:
        target = node.child_by_field_name("left")
        operator = text_of(node.child_by_field_name("operator"))
        value = self.value(node.child_by_field_name("right"), state)
        if target is None:
            return value
        known = self.value(target, state)
        if operator == "+=":
            value = strings.built([known, value])
        elif operator in {"||=", "??=", "&&="}:
            value = join(known, value)
        else:
            value = NOTHING
        self.put(target, value, node=node, state=state)
        return value

    def put(self, target: Node, value: Value, *, node: Node, state: State) -> None:
        """Assign, and note where the target is a sink."""
        if target.type == "member_expression":
            name = text_of(target.child_by_field_name("property"))
            sink = PROPERTIES.get(name)
            if sink is not None:
                self.notes.sink(sink, node, reached=value)
        self._navigate(target, value, node=node, state=state)
        self.store(target, value, state=state)

    def _navigate(self, target: Node, value: Value, *, node: Node, state: State) -> None:
        """`location = …`, `window.location.href = …`; `ctx.body = …` too."""
        if target.type not in {"identifier", "member_expression"} or not value.everything():
            return
        if target.type == "member_expression":
            base = self.value(target.child_by_field_name("object"), state)
            full = member(self.notes, target, base=base, key=text_of(target.child_by_field_name("property"))).name
        else:
            name = text_of(target)
            full = name if name not in state.values else ""
        if full in _ADDRESSES and "own" not in value.marks:
            self.notes.sink(NAVIGATION, node, reached=value)
        elif full == "@ctx.body" and "markup" in value.marks:
            self.notes.sink(PROPERTIES["innerHTML"], node, reached=value)
