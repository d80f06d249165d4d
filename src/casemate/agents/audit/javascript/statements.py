"""Walks a JavaScript file's statements over abstract values: modules, functions, classes. The result is notes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from tree_sitter import Node

from casemate.agents.audit.facts.summary import Function
from casemate.agents.audit.facts.values import NOTHING, UNKNOWN, Value, join
from casemate.agents.audit.javascript.bindings import Frame
from casemate.agents.audit.javascript.control import Control, end
from casemate.agents.audit.javascript.members import package
from casemate.agents.audit.javascript.notes import Notes
from casemate.agents.audit.javascript.parameters import declared, passed
from casemate.agents.audit.javascript.source import FUNCTIONS, text_of
from casemate.agents.audit.javascript.state import State, inner

_BLOCKS = ("statement", "block", "body", "module", "clause", "ERROR")
_DEEPEST = 12
"""Functions within functions that are walked where they stand."""


class Walker(Control):
    """Walks statements in order; a function that is not called where it stands waits until all around it is known."""

    def __init__(self, notes: Notes) -> None:
        super().__init__(notes)
        self._depth = 0
        self._statements: Mapping[str, Callable[[Node, State], None]] = {
            "expression_statement": self._expression,
            "lexical_declaration": self._declaration,
            "variable_declaration": self._declaration,
            "if_statement": self.branch,
            "for_statement": self.loop,
            "for_in_statement": self.each,
            "while_statement": self.loop,
            "do_statement": self.loop,
            "return_statement": self.give_back,
            "throw_statement": self.throw,
            "switch_statement": self.switch,
            "try_statement": self.attempt,
            "break_statement": self.leave,
            "continue_statement": self.leave,
            "import_statement": self._import,
            "class_declaration": lambda node, state: self.store_name(node, self.define(node, state), state=state),
            "abstract_class_declaration": lambda node, state: self.store_name(
                node, self.define(node, state), state=state
            ),
        }

    def program(self, root: Node) -> None:
        """Walk the whole file."""
        state = State()
        self.block(root.named_children, state)
        self._finish(state)

    def block(self, statements: Iterable[Node], state: State) -> None:
        """Statements in order; functions of the block are known from its beginning."""
        statements = list(statements)
        for statement in statements:
            self._hoist(statement, state)
        for statement in statements:
            if not state.live:
                return
            self.statement(statement, state)

    def statement(self, node: Node, state: State) -> None:
        """One statement."""
        way = self._statements.get(node.type)
        if way is not None:
            way(node, state)
        elif node.type not in FUNCTIONS and not node.type.endswith("comment"):
            # Blocks, labels, exports, namespaces, and expressions that stand alone.
            blocks = [child for child in node.named_children if child.type != "statement_identifier"]
            if node.type.endswith(_BLOCKS):
                self.block(blocks, state)
            else:
                self.value(node, state)

    def _hoist(self, node: Node, state: State) -> None:
        node = node.child_by_field_name("declaration") or node if node.type == "export_statement" else node
        if node.type in {"function_declaration", "generator_function_declaration"}:
            self.store_name(node, self.define(node, state), state=state)
        elif node.type in {"lexical_declaration", "variable_declaration"}:
            for child in node.named_children:
                value = child.child_by_field_name("value")
                name = text_of(child.child_by_field_name("name"))
                if value is not None and value.type in FUNCTIONS and name not in self.notes.reassigned:
                    state.values.setdefault(name, Value(name=self.notes.key(value)))

    def store_name(self, node: Node, value: Value, *, state: State) -> None:
        """Give a declaration's own name its value."""
        state.assign(text_of(node.child_by_field_name("name")), value)

    def _expression(self, node: Node, state: State) -> None:
        expression = inner(node)
        self.value(expression, state)
        if expression is not None and text_of(expression.child_by_field_name("function")) == "process.exit":
            state.live = False

    def _declaration(self, node: Node, state: State) -> None:
        for child in node.named_children:
            name = child.child_by_field_name("name")
            if child.type == "variable_declarator" and name is not None:
                value = self.value(child.child_by_field_name("value"), state)
                self.store(name, value, state=state, declares=True)

    def _import(self, node: Node, state: State) -> None:
        named = package(text_of(node.child_by_field_name("source"))[1:-1])
        for clause in node.named_children:
            for child in clause.named_children:
                if clause.type == "import_require_clause" and child.type == "string":
                    named = package(text_of(child)[1:-1])
            for child in clause.named_children:
                self._bind_import(child, named, state=state)

    def _bind_import(self, node: Node, named: str, *, state: State) -> None:
        if node.type == "identifier":
            state.values[text_of(node)] = Value(name=named)
        elif node.type == "namespace_import":
            state.values[text_of(inner(node))] = Value(name=named)
        elif node.type == "named_imports":
            for child in node.named_children:
                name = text_of(child.child_by_field_name("name"))
                alias = text_of(child.child_by_field_name("alias")) or name
                state.values[alias] = Value(name=named if name == "default" else f"{named}.{name}")

    def define(self, node: Node, state: State) -> Value:
        """A function or class as a value; its body is walked when all around it is known."""
        if node.type not in FUNCTIONS:
            return self._define_class(node, state)
        self.frame.waiting.setdefault(node.start_byte, (node, ""))
        return Value(name=self.notes.key(node))

    def _define_class(self, node: Node, state: State) -> Value:
        key = self.notes.key(node)
        owner, methods = f"class:{key}", self.notes.classes.setdefault(key, {})
        body = node.child_by_field_name("body")
        for child in body.named_children if body is not None else ():
            value = child.child_by_field_name("value")
            name = text_of(child.child_by_field_name("name") or child.child_by_field_name("property"))
            function = value if value is not None and value.type in FUNCTIONS else child
            if function.type in FUNCTIONS:
                methods[name] = self.notes.key(function)
                self.frame.waiting.setdefault(function.start_byte, (function, owner))
            elif value is not None:
                self.notes.store(owner, name, value=self.value(value, state))
        return Value(name=owner)

    def inline(self, function: Node, given: Sequence[Value], *, state: State) -> Value:
        """What a function gives back that is called where it stands; what it assigns outside of itself is kept."""
        if self.peeking or self._depth >= _DEEPEST:
            return NOTHING
        inside = state.copy()
        frame = self._walk(function, passed(self.notes, function, given=given), state=inside)
        for name, value in inside.values.items():
            known = state.values.get(name)
            if known is not None and value is not known and name not in frame.declared:
                state.values[name] = join(known, value)
        return frame.returns if frame.returns is not None else NOTHING

    def _walk(self, function: Node, values: Sequence[Value], *, state: State) -> Frame:
        """A function's body; `state` is what is known around it, and at the end what is known in it."""
        parameters = declared(function)
        outer, self.frame = self.frame, Frame(tuple(parameter.name for parameter in parameters))
        self._depth += 1
        for parameter, value in zip(parameters, values, strict=True):
            self.store(parameter.pattern, value, state=state, declares=True)
            if parameter.property:
                self.notes.store(state.values.get("this", NOTHING).name, parameter.name, value=value)
        body = function.child_by_field_name("body")
        if body is not None and body.type == "statement_block":
            self.block(body.named_children, state)
        elif body is not None:
            self.frame.returns = self.value(body, state)
            self.shows(body, state)
        if state.live:
            self.frame.ensures = end(self.frame.names, self.frame.ensures, state=state)
        state.live = True
        self._finish(state)
        frame, self.frame = self.frame, outer
        self._depth -= 1
        return frame

    def _finish(self, state: State) -> None:
        """Walk the functions that waited; what an outer name held when they were made may since have changed."""
        while self.frame.waiting:
            at = next(iter(self.frame.waiting))
            function, owner = self.frame.waiting.pop(at)
            around = _later(state, self.notes.reassigned)
            if owner:
                around.values["this"] = Value(name=owner)
            values = passed(self.notes, function, given=None)
            frame = self._walk(function, values, state=around)
            key = self.notes.key(function)
            returned = frame.returns.everything() if frame.returns is not None else {}
            self.notes.functions[key] = Function(
                key, frame.names, Value(taints=returned), guards=frame.guards or {}, ensures=frame.ensures or {}
            )


def _later(state: State, reassigned: frozenset[str]) -> State:
    """What is known when a function is called at some later time: a name that changes has no one constant."""
    around = State(dict(state.values))
    for name in reassigned & around.values.keys():
        known = around.values[name]
        if known.constant is not UNKNOWN:
            around.values[name] = replace(known, constant=UNKNOWN)
    return around
