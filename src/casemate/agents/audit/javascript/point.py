"""Who reads the expressions of a JavaScript program. Calls and guards are given one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tree_sitter import Node

from casemate.agents.audit.facts.values import Value
from casemate.agents.audit.javascript.notes import Notes
from casemate.agents.audit.javascript.state import State


class Reader(Protocol):
    """Anything that evaluates expressions and takes notes; `statements.Walker` does."""

    notes: Notes

    def value(self, node: Node | None, state: State) -> Value:
        """The abstract value of an expression; evaluating it notes the sinks in it."""
        ...

    def peek(self, node: Node | None, state: State) -> Value:
        """The value of an expression that was evaluated before: functions in it are not walked again."""
        ...

    def inline(self, function: Node, given: Sequence[Value], *, state: State) -> Value:
        """What a function gives back that is called where it stands, with what it is given."""
        ...
