"""Branches, loops and handlers over abstract values: which scopes meet where."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.scope import Scope, meet
from casemate.agents.audit.facts.syntax import place
from casemate.agents.audit.facts.values import NOTHING, Unknown
from casemate.agents.audit.flow import guards, handlers
from casemate.agents.audit.flow.binding import bind
from casemate.agents.audit.flow.expressions import Evaluator
from casemate.agents.audit.flow.folding import truth
from casemate.agents.audit.flow.matching import captured
from casemate.agents.audit.flow.quantifiers import every_one
from casemate.agents.audit.vocabulary.lexicon import EVERYTHING

_MAX_ROUNDS = 4

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
        test = truth(self.evaluator.value(node.test, scope))
        yes, no = scope.copy(), scope
        guards.refine(Point(self.evaluator, yes), node.test, outcome=True)
        guards.refine(Point(self.evaluator, no), node.test, outcome=False)
        if not isinstance(test, Unknown):
            return self.block(node.body, yes) if test else self.block(node.orelse, no)
        return meet(self.block(node.body, yes), self.block(node.orelse, no))

    def repeat(self, node: ast.For | ast.AsyncFor | ast.While, scope: Scope) -> Scope:
        """A loop: walked once, and once more if that taught something new."""
        frame = scope.frame
        outer, frame.breaks, frame.continues = (frame.breaks, frame.continues), [], []
        before = scope.copy()
        endless, never = self._runs(node, scope)
        if not never:
            around = self._rounds(node, before, scope=scope)
            scope = around
            scope.alive = scope.alive and not endless
        left, (frame.breaks, frame.continues) = frame.breaks, outer
        after = self.block(node.orelse, scope)
        for other in left:
            after = meet(after, other)
        return after

    def _rounds(self, node: ast.For | ast.AsyncFor | ast.While, before: Scope, *, scope: Scope) -> Scope:
        """What is known before any round: it is taken round until it tells nothing new."""
        around = before
        for _ in range(_MAX_ROUNDS):
            scope.frame.continues.clear()
            after = self._once(node, scope)
            for other in scope.frame.continues:
                after = meet(after, other)
            wider = meet(around, after)
            every_one(Point(self.evaluator, wider), node, after=after)
            if not (after.alive and _grew(around, wider)):
                return wider
            around, scope = wider, wider.copy()
        return around

    def _runs(self, node: ast.For | ast.AsyncFor | ast.While, scope: Scope) -> tuple[bool, bool]:
        """Whether a loop only ends by `break`, and whether it never begins."""
        if isinstance(node, ast.While):
            test = truth(self.evaluator.value(node.test, scope))
            return test is True, test is False
        many = self.evaluator.value(node.iter, scope)
        return False, "literal" in many.marks and not many.items and not many.taints

    def _once(self, node: ast.For | ast.AsyncFor | ast.While, scope: Scope) -> Scope:
        if isinstance(node, ast.While):
            self.evaluator.value(node.test, scope)
            guards.refine(Point(self.evaluator, scope), node.test, outcome=True)
        else:
            bind(Point(self.evaluator, scope), node.target, value=self.evaluator.value(node.iter, scope).element())
        return self.block(node.body, scope)

    def attempt(self, node: ast.Try | ast.TryStar, scope: Scope) -> Scope:
        """`try`: a handler starts from anything between the beginning and the end of the body."""
        quiet = next((at for at, statement in enumerate(node.body) if not _is_quiet(statement)), len(node.body))
        scope = self.block(node.body[:quiet], scope)
        before = scope.copy()
        if quiet == len(node.body):
            return self.block(node.finalbody, self.block(node.orelse, scope))
        after = self.block(node.body[quiet:], scope)
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
            elif shown := handlers.shown_by(case.pattern):
                inner.clear(where, subject, kinds=shown)
            for name, value in captured(case.pattern, subject):
                inner.bind(name, value)
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
                bind(Point(self.evaluator, scope), item.optional_vars, value=value.entered())
        return self.block(node.body, scope)

    def leave(self, node: ast.Break | ast.Continue, scope: Scope) -> Scope:
        """`break` and `continue`: what is known here is known after the loop."""
        ways = scope.frame.breaks if isinstance(node, ast.Break) else scope.frame.continues
        ways.append(scope.copy())
        scope.alive = False
        return scope


def _is_quiet(statement: ast.stmt) -> bool:
    """Whether a statement cannot raise."""
    match statement:
        case ast.Pass() | ast.Assign(targets=[ast.Name()], value=ast.Constant() | ast.Name()):
            return True
        case _:
            return False


def _grew(before: Scope, after: Scope) -> bool:
    for key, value in after.values.items():
        old = before.values.get(key)
        if old is not value and (
            old is None
            or old.everything().keys() != value.everything().keys()
            or (isinstance(value.constant, Unknown) and not isinstance(old.constant, Unknown))
        ):
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
