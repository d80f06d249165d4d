"""A point of the program: who reads expressions there, and what is known. Calls, guards and checks are given one."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Protocol

from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.scope import Scope
from casemate.agents.audit.facts.values import Value


class Reader(Protocol):
    """Anything that evaluates expressions and takes notes; `expressions.Evaluator` does."""

    record: Record

    def value(self, node: ast.expr | None, scope: Scope) -> Value:
        """The abstract value of an expression."""
        ...

    def iterated(self, generators: list[ast.comprehension], scope: Scope) -> Scope:
        """What is known inside a comprehension."""
        ...

    def member(self, node: ast.Attribute, scope: Scope, *, base: Value) -> Value:
        """The member of a value that is already known."""
        ...


@dataclass(frozen=True, slots=True)
class Point:
    """Where the walk stands."""

    reader: Reader
    scope: Scope

    @property
    def record(self) -> Record:
        """Where notes are taken."""
        return self.reader.record

    def value(self, node: ast.expr | None) -> Value:
        """The abstract value of an expression here."""
        return self.reader.value(node, self.scope)
