"""Control flow of JavaScript: branches, loops, what a function's ends show of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from tree_sitter import Node

from casemate.agents.audit.facts.values import UNKNOWN, Value, join
from casemate.agents.audit.javascript.bindings import Binder
from casemate.agents.audit.javascript.guards import refine
from casemate.agents.audit.javascript.lexicon import ALL
from casemate.agents.audit.javascript.source import text_of
from casemate.agents.audit.javascript.state import State, inner, meet, place


class Control(Binder):
    """Statements that go several ways."""

    def block(self, statements: Iterable[Node], state: State) -> None:
        """Statements in order."""
        raise NotImplementedError

    def statement(self, node: Node, state: State) -> None:
        """One statement."""
        raise NotImplementedError

    def branch(self, node: Node, state: State) -> None:
        """`if`."""
        test = node.child_by_field_name("condition")
        truth = self.value(test, state).constant
        yes, no = state.copy(), state.copy()
        refine(self, test, state=yes, outcome=True)
        refine(self, test, state=no, outcome=False)
        for way, field_name, chosen in (
            (yes, "consequence", truth is not False),
            (no, "alternative", truth is not True),
        ):
            branch = node.child_by_field_name(field_name)
            if branch is not None and chosen:
                self.block([branch], way)
        if isinstance(truth, bool):
            state.adopt(yes if truth else no)
        else:
            state.adopt(meet(yes, no))

    def loop(self, node: Node, state: State) -> None:
        """`for`, `while`, `do`."""
        start = node.child_by_field_name("initializer")
        if start is not None:
            self.statement(start, state)
        test = node.child_by_field_name("condition")
        self._repeat(node, state, before=lambda inside: self._enter(test, inside))
        increment = node.child_by_field_name("increment")
        if increment is not None:
            self.value(increment, state)

    def _enter(self, test: Node | None, state: State) -> None:
        self.value(test, state)
        refine(self, test, state=state, outcome=True)

    def each(self, node: Node, state: State) -> None:
        """`for … of` and `for … in`."""
        left, collection = node.child_by_field_name("left"), self.value(node.child_by_field_name("right"), state)
        known = list((collection.items or {}).values())
        element = Value(taints=collection.everything()) if not known else known[0]
        for other in known[1:]:
            element = join(element, other)
        keys = text_of(node.child_by_field_name("operator")) == "in"

        def bind(inside: State) -> None:
            if left is not None:
                given = Value(taints=collection.taints) if keys else replace(element, constant=UNKNOWN)
                self.store(left, given, state=inside, declares=True)

        self._repeat(node, state, before=bind)

    def _repeat(self, node: Node, state: State, *, before: Callable[[State], None]) -> None:
        """The body of a loop, which may run or not; what it changes is known on no round."""
        mark = len(self.frame.breaks)
        _forget(state, self.notes.reassigned)
        inside = state.copy()
        before(inside)
        body = node.child_by_field_name("body")
        if body is not None:
            self.block([body], inside)
        for left in (*self.frame.breaks[mark:], inside):
            state.adopt(meet(state, left))
        del self.frame.breaks[mark:]

    def give_back(self, node: Node, state: State) -> None:
        """`return`."""
        frame, expression = self.frame, inner(node)
        value = self.value(expression, state)
        frame.returns = value if frame.returns is None else join(frame.returns, value)
        if value.constant is not False:
            self.shows(expression, state)
        frame.ensures = end(frame.names, frame.ensures, state=state)
        state.live = False

    def shows(self, answer: Node | None, state: State) -> None:
        """What a true answer of the function shows of its parameters."""
        shown = state.copy()
        refine(self, answer, state=shown, outcome=True)
        self.frame.guards = end(self.frame.names, self.frame.guards, state=shown)

    def throw(self, node: Node, state: State) -> None:
        """`throw`."""
        self.value(inner(node), state)
        state.live = False

    def switch(self, node: Node, state: State) -> None:
        """Each case is entered by its value, or from the one above."""
        subject, body = node.child_by_field_name("value"), node.child_by_field_name("body")
        self.value(subject, state)
        mark, fallen, default = len(self.frame.breaks), State(live=False), False
        for case in body.named_children if body is not None else ():
            value = case.child_by_field_name("value")
            entered = state.copy()
            default = default or value is None
            if value is not None and not self.value(value, state).everything():
                entered.clear(place(subject), ALL)
            fallen = meet(entered, fallen)
            self.block([child for child in case.named_children if child != value], fallen)
        ways = [*self.frame.breaks[mark:], fallen, *([] if default else [state.copy()])]
        del self.frame.breaks[mark:]
        merged = State(live=False)
        for way in ways:
            merged = meet(merged, way)
        state.adopt(merged)

    def leave(self, _: Node, state: State) -> None:
        """`break` and `continue`."""
        self.frame.breaks.append(state.copy())
        state.live = False

    def attempt(self, node: Node, state: State) -> None:
        """`try`: what is caught may have been thrown before anything was done."""
        before = state.copy()
        self.block(_some(node.child_by_field_name("body")), state)
        handler = node.child_by_field_name("handler")
        if handler is not None:
            caught = meet(before, state) if state.live else before
            caught = caught.copy()
            parameter = handler.child_by_field_name("parameter")
            if parameter is not None:
                self.store(parameter, Value(name="@error"), state=caught, declares=True)
            self.block(_some(handler.child_by_field_name("body")), caught)
            state.adopt(meet(state, caught))
        finalizer = node.child_by_field_name("finalizer")
        if finalizer is not None:
            live, state.live = state.live, True
            self.block(finalizer.named_children, state)
            state.live = live and state.live


def end(names: Iterable[str], known: dict[str, frozenset[str]] | None, *, state: State) -> dict[str, frozenset[str]]:
    """What all ends of a function so far show of its parameters."""
    shown = {name: state.cleared.get(name, frozenset[str]()) for name in names}
    return shown if known is None else {name: kinds & known.get(name, frozenset()) for name, kinds in shown.items()}


def _forget(state: State, names: Iterable[str]) -> None:
    """In a loop a name that is assigned again has no one constant."""
    for name in names:
        known = state.values.get(name)
        if known is not None and known.constant is not UNKNOWN:
            state.values[name] = Value(marks=known.marks, name=known.name)


def _some(node: Node | None) -> list[Node]:
    return [node] if node is not None else []
