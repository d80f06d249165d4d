"""Branches, loops and handlers over abstract values: which scopes meet where."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.scope import Scope, meet
from casemate.agents.audit.facts.syntax import place
from casemate.agents.audit.facts.values import NOTHING, Unknown, Value
from casemate.agents.audit.flow import guards, handlers
from casemate.agents.audit.flow.binding import bind, element_of
from casemate.agents.audit.flow.expressions import Evaluator
from casemate.agents.audit.vocabulary.lexicon import EVERYTHING

Step = Callable[[Any, Any, Scope], Scope]


class Control:
    """Walks control flow; a subclass adds the steps of the statements that do something."""

    steps: ClassVar[Mapping[type[ast.stmt], Step]] = {}

    def __init__(self, record: Record) -> None:
        self.record = record
        self.evaluator = Evaluator(record)

    def block(self, body: Iterable[ast.stmt], scope: Scope) -> Scope:
        """The scope after a run of statements; it stops where nothing is reached."""
        for statement in body:
            if not scope.alive:
                break
            step = self.steps.get(type(statement))
            self.record.statement = statement
            if step is not None:
                scope = step(self, statement, scope)
        return scope

    def choose(self, node: ast.If, scope: Scope) -> Scope:
        """`if`: each branch under what the test shows; a constant test leaves one."""
        test = self.evaluator.value(node.test, scope).constant
        yes, no = scope.copy(), scope
        guards.refine(Point(self.evaluator, yes), node.test, outcome=True)
        guards.refine(Point(self.evaluator, no), node.test, outcome=False)
        if not isinstance(test, Unknown):
            return self.block(node.body, yes) if test else self.block(node.orelse, no)
        return meet(self.block(node.body, yes), self.block(node.orelse, no))

    def repeat(self, node: ast.For | ast.AsyncFor | ast.While, scope: Scope) -> Scope:
        """A loop: walked once, and once more if that taught something new."""
        outer, scope.frame.breaks = scope.frame.breaks, []
        before = scope.copy()
        after = self._once(node, scope)
        around = meet(before, after)
        again = after.alive and _grew(before, around)
        after = meet(around, self._once(node, around.copy())) if again else around
        for left in scope.frame.breaks:
            after = meet(after, left)
        scope.frame.breaks = outer
        return self.block(node.orelse, after)

    def _once(self, node: ast.For | ast.AsyncFor | ast.While, scope: Scope) -> Scope:
        if isinstance(node, ast.While):
            self.evaluator.value(node.test, scope)
            guards.refine(Point(self.evaluator, scope), node.test, outcome=True)
        else:
            bind(node.target, element_of(self.evaluator.value(node.iter, scope)), scope=scope)
        return self.block(node.body, scope)

    def attempt(self, node: ast.Try | ast.TryStar, scope: Scope) -> Scope:
        """`try`: a handler starts from anything between the beginning and the end of the body."""
        before = scope.copy()
        after = self.block(node.body, scope)
        middle = meet(before, after.copy())
        after = self.block(node.orelse, after)
        for handler in node.handlers:
            inner = middle.copy()
            inner.alive = True
            if handler.name:
                inner.bind(handler.name, NOTHING)
            after = meet(after, self.block(handler.body, inner))
        if node.finalbody:
            was_alive = after.alive
            last = after if was_alive else middle.copy()
            after = self.block(node.finalbody, last)
            after.alive = after.alive and was_alive
        return after

    def select(self, node: ast.Match, scope: Scope) -> Scope:
        """`match`: a literal pattern shows that the subject is that literal."""
        subject = self.evaluator.value(node.subject, scope)
        where = place(node.subject)
        result: Scope | None = None
        for case in node.cases:
            literals = handlers.literals(case.pattern)
            if not isinstance(subject.constant, Unknown) and literals and subject.constant not in literals:
                continue
            inner = scope.copy()
            if literals:
                inner.clear(where, subject, kinds={EVERYTHING})
            for name in handlers.captured(case.pattern):
                inner.bind(name, Value(taints=subject.everything()))
            if case.guard is not None:
                guards.refine(Point(self.evaluator, inner), case.guard, outcome=True)
            after = self.block(case.body, inner)
            result = after if result is None else meet(result, after)
            if not isinstance(subject.constant, Unknown) and literals:
                return result
        complete = any(handlers.always(case.pattern) and case.guard is None for case in node.cases)
        return result if result is not None and complete else meet(scope, result or scope)

    def within(self, node: ast.With | ast.AsyncWith, scope: Scope) -> Scope:
        """`with`: the target is what the manager stands for."""
        for item in node.items:
            value = self.evaluator.value(item.context_expr, scope)
            if item.optional_vars is not None:
                bind(item.optional_vars, value, scope=scope)
        return self.block(node.body, scope)

    def leave(self, node: ast.Break | ast.Continue, scope: Scope) -> Scope:
        """`break` and `continue`: what is known here is known after the loop."""
        del node
        scope.frame.breaks.append(scope.copy())
        scope.alive = False
        return scope


def _grew(before: Scope, after: Scope) -> bool:
    for key, value in after.values.items():
        old = before.values.get(key)
        if old is not value and (old is None or old.everything().keys() != value.everything().keys()):
            return True
    return False


CONTROL: Mapping[type[ast.stmt], Step] = {
    ast.If: Control.choose,
    ast.For: Control.repeat,
    ast.AsyncFor: Control.repeat,
    ast.While: Control.repeat,
    ast.Try: Control.attempt,
    ast.TryStar: Control.attempt,
    ast.With: Control.within,
    ast.AsyncWith: Control.within,
    ast.Match: Control.select,
    ast.Break: Control.leave,
    ast.Continue: Control.leave,
}
