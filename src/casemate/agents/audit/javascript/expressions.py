"""Evaluates expressions of JavaScript over abstract values; calls are evaluated beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tree_sitter import Node

from casemate.agents.audit.facts.values import NOTHING, UNKNOWN, Value, gather, join
from casemate.agents.audit.javascript import strings
from casemate.agents.audit.javascript.calls import called, imported
from casemate.agents.audit.javascript.guards import refine
from casemate.agents.audit.javascript.members import member, source
from casemate.agents.audit.javascript.notes import Notes
from casemate.agents.audit.javascript.sinks import PROPERTIES
from casemate.agents.audit.javascript.source import FUNCTIONS, text_of
from casemate.agents.audit.javascript.state import WRAPPERS, State, inner, meet, place

_ARITHMETIC = frozenset({"-", "*", "/", "%", "**", "|", "&", "^", "<<", ">>", ">>>"})
_COMPARISONS: Mapping[str, Callable[[object, object], bool]] = {
    "===": lambda a, b: a == b,
    "==": lambda a, b: a == b,
    "!==": lambda a, b: a != b,
    "!=": lambda a, b: a != b,
}


class Evaluator:
    """Values of expressions. Calls of functions that stand in them are walked by the subclass."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.peeking = False
        self.ways: dict[str, Callable[[Node, State], Value]] = {
            "identifier": self._identifier,
            "member_expression": self._member,
            "subscript_expression": self._subscript,
            "call_expression": self._call,
            "new_expression": self._call,
            "string": self._string,
            "template_string": self._template,
            "number": self._number,
            "binary_expression": self._binary,
            "ternary_expression": self._ternary,
            "object": self._object,
            "array": self._array,
            "unary_expression": self._unary,
            "regex": lambda node, _: Value(constant=text_of(node), marks=frozenset({"regex"})),
            "true": lambda _, __: Value(constant=True),
            "false": lambda _, __: Value(constant=False),
            "null": lambda _, __: Value(constant=None),
            "this": lambda _, state: state.values.get("this", NOTHING),
            "sequence_expression": self._sequence,
            "jsx_attribute": self._attribute,
            "class": self._function,
            "spread_element": lambda node, state: self.value(inner(node), state),
            "type_assertion": lambda node, state: self.value(node.named_children[-1], state),
            "yield_expression": lambda node, state: self.value(inner(node), state),
        }

    def value(self, node: Node | None, state: State) -> Value:
        """The abstract value of an expression; evaluating it notes the sinks in it."""
        while node is not None and node.type in WRAPPERS:
            node = inner(node)
        if node is None:
            return NOTHING
        way = self.ways.get(node.type)
        if way is not None:
            return way(node, state)
        if node.type in FUNCTIONS:
            return self._function(node, state)
        for child in node.named_children:
            self.value(child, state)
        return NOTHING

    def peek(self, node: Node | None, state: State) -> Value:
        """The value of an expression that was evaluated before: functions in it are not walked again."""
        before, self.peeking = self.peeking, True
        try:
            return self.value(node, state)
        finally:
            self.peeking = before

    def inline(self, function: Node, given: Sequence[Value], *, state: State) -> Value:
        """What a function gives back that is called where it stands, with what it is given."""
        raise NotImplementedError

    def define(self, node: Node, state: State) -> Value:
        """A function or class as a value; its body is walked later."""
        raise NotImplementedError

    def narrowed(self, value: Value, where: str, *, state: State) -> Value:
        """A value without what guards have shown of its place."""
        kinds = state.cleared.get(where) if where else None
        return value.clear(kinds) if kinds else value

    def _function(self, node: Node, state: State) -> Value:
        return self.define(node, state)

    def _identifier(self, node: Node, state: State) -> Value:
        name = text_of(node)
        found = state.values.get(name)
        if found is None:
            return Value(name=name) if name != "undefined" else Value(constant=None)
        return self.narrowed(found, name, state=state)

    def _member(self, node: Node, state: State) -> Value:
        base = self.value(node.child_by_field_name("object"), state)
        found = member(self.notes, node, base=base, key=text_of(node.child_by_field_name("property")))
        return self.narrowed(found, place(node), state=state) if state.cleared else found

    def _subscript(self, node: Node, state: State) -> Value:
        base = self.value(node.child_by_field_name("object"), state)
        index = self.value(node.child_by_field_name("index"), state).constant
        key = str(index) if isinstance(index, str | int) else UNKNOWN
        return self.narrowed(member(self.notes, node, base=base, key=key), place(node), state=state)

    def _call(self, node: Node, state: State) -> Value:
        package = imported(node)
        if package:
            return Value(name=package)
        return self.narrowed(called(self, node, state=state), place(node), state=state)

    def _string(self, node: Node, _: State) -> Value:
        text = strings.unescaped(text_of(node)[1:-1])
        return Value(constant=text, marks=strings.marks_of(text))

    def _number(self, node: Node, _: State) -> Value:
        try:
            return Value(constant=int(text_of(node), 0))
        except ValueError:
            return NOTHING

    def _template(self, node: Node, state: State) -> Value:
        pieces = [self._piece(child, state) for child in node.named_children]
        return strings.built(pieces) if pieces else Value(constant="")

    def _piece(self, node: Node, state: State) -> Value:
        if node.type == "template_substitution":
            return self._as_text(self.value(inner(node), state), node)
        text = strings.unescaped(text_of(node))
        return Value(constant=text, marks=strings.marks_of(text))

    def _as_text(self, value: Value, node: Node) -> Value:
        """The page's own address is an object that is often written out as a text."""
        return source(self.notes, node, name="location.href") if value.name == "location" else value

    def _binary(self, node: Node, state: State) -> Value:
        operator = text_of(node.child_by_field_name("operator"))
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if operator == "+":
            pieces = [self._as_text(self.value(part, state), node) for part in _sum(node)]
            return strings.built(pieces)
        first = self.value(left, state)
        if operator in {"&&", "||", "??"}:
            return self._either(first, right, state=state, operator=operator, left=left)
        second = self.value(right, state)
        compare = _COMPARISONS.get(operator)
        known = first.constant is not UNKNOWN and second.constant is not UNKNOWN
        return Value(constant=compare(first.constant, second.constant)) if compare is not None and known else NOTHING

    def _either(self, first: Value, right: Node | None, *, state: State, operator: str, left: Node | None) -> Value:
        """`a || b` is either; what `a` shows is known where `b` is looked at."""
        inside = state.copy()
        refine(self, left, state=inside, outcome=operator == "&&")
        second = self.value(right, inside)
        if operator == "&&":
            return second
        if first.constant is not UNKNOWN and not first.constant:
            return second
        return join(first, second)

    def _ternary(self, node: Node, state: State) -> Value:
        test = node.child_by_field_name("condition")
        truth = self.value(test, state).constant
        yes, no = state.copy(), state.copy()
        refine(self, test, state=yes, outcome=True)
        refine(self, test, state=no, outcome=False)
        first = self.value(node.child_by_field_name("consequence"), yes)
        second = self.value(node.child_by_field_name("alternative"), no)
        if isinstance(truth, bool):
            return first if truth else second
        state.adopt(meet(yes, no))
        return join(first, second)

    def _object(self, node: Node, state: State) -> Value:
        items: dict[object, Value] = {}
        rest: list[Value] = []
        for child in node.named_children:
            if child.type == "pair":
                self._pair(child, items, rest=rest, state=state)
            elif child.type == "shorthand_property_identifier":
                items[text_of(child)] = self._identifier(child, state)
            elif child.type == "spread_element":
                spread = self.value(child, state)
                if spread.taints:
                    items = {key: join(item, Value(taints=spread.taints)) for key, item in items.items()}
                items.update(spread.items or {})
                rest.append(Value(taints=spread.taints))
            elif child.type == "method_definition":
                items[text_of(child.child_by_field_name("name"))] = self.define(child, state)
        return Value(taints=gather(*rest).taints, items=dict(items))

    def _pair(self, node: Node, items: dict[object, Value], *, rest: list[Value], state: State) -> None:
        key, value = node.child_by_field_name("key"), self.value(node.child_by_field_name("value"), state)
        if key is not None and key.type == "computed_property_name":
            known = self.value(inner(key), state).constant
            if isinstance(known, str):
                items[known] = value
            else:
                rest.append(value)
            return
        name = text_of(key).strip("'\"")
        items[name] = value
        if name in PROPERTIES and node.parent is not None:
            self.notes.sink(PROPERTIES[name], node, reached=value)

    def _array(self, node: Node, state: State) -> Value:
        items: dict[object, Value] = {}
        rest: list[Value] = []
        for child in node.named_children:
            value = self.value(child, state)
            if child.type == "spread_element" or rest:
                rest.append(value)
            else:
                items[len(items)] = value
        return Value(taints=gather(*rest).taints, items=dict(items))

    def _unary(self, node: Node, state: State) -> Value:
        value = self.value(node.child_by_field_name("argument"), state)
        operator = text_of(node.child_by_field_name("operator"))
        if operator == "!" and isinstance(value.constant, bool):
            return Value(constant=not value.constant)
        return NOTHING

    def _sequence(self, node: Node, state: State) -> Value:
        values = [self.value(child, state) for child in node.named_children]
        return values[-1] if values else NOTHING

    def _attribute(self, node: Node, state: State) -> Value:
        """`dangerouslySetInnerHTML={{__html: x}}`: the object within notes the sink, a variable does not."""
        for child in node.named_children[1:]:
            value = self.value(inner(child) if child.type == "jsx_expression" else child, state)
            if text_of(node.named_children[0]) == "srcDoc":
                self.notes.sink(PROPERTIES["srcdoc"], node, reached=value)
        return NOTHING


def _sum(node: Node) -> list[Node]:
    """The terms of a sum, in order; long sums lean to the left, so they are unrolled and not recursed into."""
    terms: list[Node] = []
    here: Node | None = node
    while (
        here is not None and here.type == "binary_expression" and text_of(here.child_by_field_name("operator")) == "+"
    ):
        right = here.child_by_field_name("right")
        if right is not None:
            terms.append(right)
        here = here.child_by_field_name("left")
    if here is not None:
        terms.append(here)
    return terms[::-1]
