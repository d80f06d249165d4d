"""What is known at one point of the program: values by place, and the function that we are in."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from casemate.agents.audit.facts.syntax import walk
from casemate.agents.audit.facts.values import Value, join

CONTENT_TYPE = "<content-type>"
"""The place of the content type that the answer was given, as nothing in the program is called."""
VERIFIED = "<verified>"
"""The place that is known where a signature was checked."""


@dataclass(slots=True)
class Frame:
    """The function under analysis: its dotted name, its class, what it returns, and what it is to a framework.

    `html` says that what it returns is sent as a page; `parameters` are its parameters' names; `shared` the names of
    others that it may set and `outside` its own that inner functions may set, each with its owner; `exits` its returns
    with what is known there (None: the end of its body).
    """

    name: str
    owner: str = ""
    html: bool = False
    route: bool = False
    parameters: tuple[str, ...] = ()
    shared: dict[str, str] = field(default_factory=dict)
    outside: dict[str, str] = field(default_factory=dict)
    yields: list[Value] = field(default_factory=list)
    returns: list[Value] = field(default_factory=list)
    exits: list[tuple[ast.expr | None, Scope]] = field(default_factory=list)
    breaks: list[Scope] = field(default_factory=list)
    continues: list[Scope] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Test:
    """A test whose outcome a name holds: its expression, the value of the name, and what the tested names were then."""

    node: ast.expr
    value: Value
    tested: tuple[tuple[str, Value], ...]

    def holds(self, scope: Scope) -> bool:
        """Whether what was tested is still the same."""
        return all(scope.values.get(name) is value for name, value in self.tested)


class Scope:
    """Values by place (`x`, `self.x`, `d['k']`). A scope that is not `alive` lies after a return or raise."""

    __slots__ = ("alive", "frame", "parts", "tests", "values")

    def __init__(self, frame: Frame, values: dict[str, Value] | None = None, *, parts: set[str] | None = None) -> None:
        self.frame = frame
        self.values: dict[str, Value] = {} if values is None else values
        self.parts = {key for key in self.values if not key.isidentifier()} if parts is None else parts
        self.alive = True
        self.tests: dict[str, Test] = {}

    def copy(self) -> Scope:
        """An independent scope that knows the same."""
        twin = Scope(self.frame, dict(self.values), parts=set(self.parts))
        twin.alive = self.alive
        twin.tests = self.tests
        return twin

    def bind(self, name: str, value: Value) -> None:
        """Put a value at a place; what was known of its parts is forgotten."""
        for part in [part for part in self.parts if part.startswith((f"{name}.", f"{name}["))]:
            self.parts.discard(part)
            self.values.pop(part, None)
        self._put(name, value)

    def remember(self, name: str, node: ast.expr) -> None:
        """A name was given the outcome of a test."""
        names = {inner.id for inner in walk(node) if isinstance(inner, ast.Name)}
        if name in names:
            return  # the name now means something else
        tested = tuple((inner, self.values[inner]) for inner in sorted(names) if inner in self.values)
        if tested and name in self.values:
            self.tests = {**self.tests, name: Test(node, self.values[name], tested)}

    def replace(self, old: Value, new: Value) -> None:
        """A container was changed in place: every name of it means the changed one."""
        for key, known in list(self.values.items()):
            if known is old:
                self.values[key] = new

    def clear(self, place: str, value: Value, *, kinds: Iterable[str]) -> None:
        """A test passed: the value at this place, and the same value under other names, is harmless for `kinds`.

        Where the value is all that its origin gave, so is everything that was made of it before.
        """
        more = frozenset(kinds)
        cleaned = value.clear(more)
        if "whole" in value.marks:
            self.clear_origins(value, more)
        for key, known in list(self.values.items()):
            if known is value:
                self.values[key] = cleaned
        if place:
            self._put(place, cleaned)

    def clear_origins(self, value: Value, kinds: Iterable[str]) -> None:
        """A test of a part passed (the host of an address): everything of the same origin is harmless for `kinds`."""
        origins = frozenset(value.everything())
        kinds = frozenset(kinds)
        for key, known in list(self.values.items()):
            if known.taints.keys() & origins or known.items:
                self.values[key] = known.clear_origins(origins, kinds)

    def mark(self, place: str, value: Value, *, mark: str) -> Value:
        """Note a small fact about the value at a place."""
        marked = value.marked(mark)
        if place:
            self._put(place, marked)
        return marked

    def _put(self, place: str, value: Value) -> None:
        self.values[place] = value
        if not place.isidentifier():
            self.parts.add(place)


def meet(first: Scope, second: Scope) -> Scope:
    """What is known after two branches; a branch that ended does not count."""
    if not first.alive:
        return second
    if not second.alive:
        return first
    merged: dict[str, Value] = {}
    for key in first.values.keys() | second.values.keys():
        left, right = first.values.get(key), second.values.get(key)
        if left is not None and right is not None:
            merged[key] = left if left is right else join(left, right)
        elif key.isidentifier():
            merged[key] = left or right or Value()
    both = Scope(first.frame, merged)
    both.tests = {name: test for name, test in first.tests.items() if second.tests.get(name) is test}
    return both
