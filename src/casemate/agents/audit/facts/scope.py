"""What is known at one point of the program: values by place, and the function that we are in."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from casemate.agents.audit.facts.values import Value, join


@dataclass(slots=True)
class Frame:
    """The function under analysis: its dotted name, its class, what it returns, and what it is to a framework.

    `html` says that what it returns is sent as a page; `parameters` are its parameters' names, `shared` the globals
    that it may set, `exits` its returns with what is known there (None: the end of its body).
    """

    name: str
    owner: str = ""
    html: bool = False
    route: bool = False
    parameters: tuple[str, ...] = ()
    shared: frozenset[str] = frozenset()
    returns: list[Value] = field(default_factory=list)
    exits: list[tuple[ast.expr | None, Scope]] = field(default_factory=list)
    breaks: list[Scope] = field(default_factory=list)


class Scope:
    """Values by place (`x`, `self.x`, `d['k']`). A scope that is not `alive` lies after a return or raise."""

    __slots__ = ("alive", "frame", "parts", "values")

    def __init__(self, frame: Frame, values: dict[str, Value] | None = None) -> None:
        self.frame = frame
        self.values: dict[str, Value] = {} if values is None else values
        self.parts: set[str] = {key for key in self.values if not key.isidentifier()}
        self.alive = True

    def copy(self) -> Scope:
        """An independent scope that knows the same."""
        twin = Scope(self.frame, dict(self.values))
        twin.alive = self.alive
        return twin

    def bind(self, name: str, value: Value) -> None:
        """Put a value at a place; what was known of its parts is forgotten."""
        for part in [part for part in self.parts if part.startswith((f"{name}.", f"{name}["))]:
            self.parts.discard(part)
            self.values.pop(part, None)
        self._put(name, value)

    def clear(self, place: str, value: Value, *, kinds: Iterable[str]) -> None:
        """A test passed: the value at this place, and the same value under other names, is harmless for `kinds`."""
        cleaned = value.clear(kinds)
        for key, known in list(self.values.items()):
            if known is value:
                self.values[key] = cleaned
        if place:
            self._put(place, cleaned)

    def clear_origins(self, value: Value, kinds: Iterable[str]) -> None:
        """A test of a part passed (the host of an address): everything of the same origin is harmless for `kinds`."""
        origins = value.everything().keys()
        for key, known in list(self.values.items()):
            if known.taints.keys() & origins:
                self.values[key] = known.clear(kinds)

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
    return Scope(first.frame, merged)
