"""What a condition shows of the values in it, on the way where it holds and on the way where it does not."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from casemate.agents.audit.facts.values import UNKNOWN, Value
from casemate.agents.audit.javascript import patterns
from casemate.agents.audit.javascript.lexicon import ALL
from casemate.agents.audit.javascript.point import Reader
from casemate.agents.audit.javascript.source import text_of
from casemate.agents.audit.javascript.state import WRAPPERS, State, inner, place

_ELSEWHERE = frozenset({"ssrf", "redirect"})
_PATH = frozenset({"path"})
_STRING = frozenset({"nosql", "mass"})
_HOST_PARTS = (".hostname", ".host", ".origin")
_ABSENT = {"-1", "0"}
_NUMERIC = frozenset({"Number.isInteger", "Number.isFinite", "Number.isSafeInteger", "isFinite"})
_VALIDATOR = {
    **dict.fromkeys(("isInt", "isNumeric", "isUUID", "isAlphanumeric", "isAlpha", "isMongoId", "isHexadecimal"), ALL),
    **dict.fromkeys(("isIn", "isDecimal", "isFloat", "isBoolean", "isISO8601", "isDate"), ALL),
}
"""Functions of `validator` and the like whose true answer leaves no room for an attack."""
_ROOTED, _NOT_FOREIGN = "slash", "no-slashes"
"""Half of a proof each: an address that begins with one slash, and not with two, is one of this site."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A condition that is looked at: who reads, what is known, which way is taken."""

    reader: Reader
    state: State
    outcome: bool

    def value(self, node: Node | None) -> Value:
        """The value of a part of the condition; its sinks were noted when the whole was evaluated."""
        return self.reader.peek(node, self.state)

    def clear(self, node: Node | None, kinds: frozenset[str]) -> None:
        """Note what is shown of a place, and of what it was made from."""
        if node is None or not kinds:
            return
        where = place(node)
        self.state.clear(where, kinds)
        if where.endswith(_HOST_PARTS):
            owner = where.rpartition(".")[0]
            self.state.clear(owner, _ELSEWHERE)
            self._origins(owner, _ELSEWHERE)
        elif node.type == "call_expression":
            arguments = _arguments(node)
            name = text_of(node.child_by_field_name("function"))
            if name in {"Number", "String", "path.normalize"} and arguments:
                self.clear(arguments[0], kinds)
            elif name.endswith((".toLowerCase", ".toUpperCase", ".trim", ".toString")):
                self.clear(_object(node), kinds)

    def _origins(self, name: str, kinds: frozenset[str]) -> None:
        for mark in self.state.values.get(name, Value()).marks:
            if mark.startswith("of:"):
                self.state.clear(mark[3:], kinds)


def refine(reader: Reader, test: Node | None, *, state: State, outcome: bool) -> None:
    """Add to a state what is known where the test comes out so."""
    while test is not None and test.type in WRAPPERS:
        test = inner(test)
    if test is None:
        return
    asked = Asked(reader, state, outcome)
    if test.type == "unary_expression" and text_of(test.child_by_field_name("operator")) == "!":
        refine(reader, test.child_by_field_name("argument"), state=state, outcome=not outcome)
    elif test.type == "binary_expression":
        _binary(asked, test)
    elif test.type == "call_expression":
        _call(asked, test)
    elif test.type == "subscript_expression" and outcome:
        _looked_up(asked, test)


def _binary(asked: Asked, test: Node) -> None:
    operator = text_of(test.child_by_field_name("operator"))
    left, right = test.child_by_field_name("left"), test.child_by_field_name("right")
    if operator in {"&&", "||"}:
        if asked.outcome == (operator == "&&"):
            for side in (left, right):
                refine(asked.reader, side, state=asked.state, outcome=asked.outcome)
        elif operator == "||":
            _either(asked, left, right=right)
    elif operator in {"===", "==", "!==", "!="}:
        if asked.outcome == (operator in {"===", "=="}):
            _equal(asked, left, right=right)
        else:
            _unequal(asked, left, right=right)
    elif operator == "in" and asked.outcome and not asked.value(right).everything():
        asked.clear(left, ALL)
    elif operator in {">", ">="} and left is not None:
        _found(asked, left, present=asked.outcome and text_of(right) in _ABSENT)
    elif operator == "<" and text_of(right) == "0" and left is not None:
        _found(asked, left, present=not asked.outcome)


def _either(asked: Asked, left: Node | None, *, right: Node | None) -> None:
    """Of two conditions of which one holds, only what both show is known."""
    first, second = asked.state.copy(), asked.state.copy()
    refine(asked.reader, left, state=first, outcome=asked.outcome)
    refine(asked.reader, right, state=second, outcome=asked.outcome)
    for where, kinds in first.cleared.items():
        asked.state.clear(where, kinds & second.cleared.get(where, frozenset()))


def _equal(asked: Asked, left: Node | None, *, right: Node | None) -> None:
    for one, other in ((left, right), (right, left)):
        if one is None or other is None:
            continue
        if one.type == "unary_expression" and text_of(one).startswith("typeof"):
            kind = text_of(other).strip("'\"")
            known = {"string": _STRING, "number": ALL, "boolean": ALL}.get(kind, frozenset[str]())
            asked.clear(one.child_by_field_name("argument"), known)
        elif not asked.value(other).everything() and other.type not in {"null", "undefined", "true", "false"}:
            asked.clear(one, ALL)
            if place(one).endswith(".origin"):
                asked.state.clear(place(one).rpartition(".")[0] + ".data", ALL)


def _unequal(asked: Asked, left: Node | None, *, right: Node | None) -> None:
    """`list.indexOf(x) !== -1`, and the way past `if (re.exec(x) === null) return`."""
    text = text_of(right)
    if left is not None and text == "-1":
        _found(asked, left, present=True)
    elif (
        left is not None
        and text in {"null", "undefined", "false"}
        and left.type in {"call_expression", "subscript_expression"}
    ):
        refine(asked.reader, left, state=asked.state, outcome=True)


def _found(asked: Asked, node: Node, *, present: bool) -> None:
    if present and node.type == "call_expression" and _method(node) in {"indexOf", "findIndex"}:
        arguments = _arguments(node)
        if arguments and not asked.value(_object(node)).everything():
            asked.clear(arguments[0], ALL)


def _looked_up(asked: Asked, test: Node) -> None:
    """`if (TABLE[x])`: what has an entry in a fixed table is one of its keys."""
    table = asked.value(test.child_by_field_name("object"))
    if table.items is not None and not table.everything():
        asked.clear(test.child_by_field_name("index"), ALL)


def _call(asked: Asked, test: Node) -> None:
    method, arguments = _method(test), _arguments(test)
    if not arguments:
        return
    subject = arguments[0]
    function = text_of(test.child_by_field_name("function"))
    if method in {"startsWith", "includes", "endsWith"} and _on_text(asked, test):
        _text_test(asked, test, method=method)
    elif not asked.outcome:
        if function in {"isNaN", "Number.isNaN"}:
            asked.clear(subject, ALL)
    elif method in {"includes", "has", "hasOwnProperty", "hasOwn", "contains"}:
        _listed(asked, test, arguments=arguments)
    elif method == "test" or (method in {"match", "exec"}):
        _matched(asked, test)
    elif function in _NUMERIC:
        asked.clear(subject, ALL)
    elif (
        method in _VALIDATOR and function.startswith(("validator.", "isInt", "isUUID"))
    ) or function == "uuid.validate":
        asked.clear(subject, _VALIDATOR.get(method, ALL))
    elif function.endswith("ObjectId.isValid"):
        asked.clear(subject, ALL)
    else:
        _own_guard(asked, test, arguments=arguments)


def _on_text(asked: Asked, test: Node) -> bool:
    """Whether the method is one of the untrusted text itself."""
    subject = asked.value(_object(test))
    return (
        bool(subject.everything()) or "normal" in subject.marks or any(m.startswith("relative:") for m in subject.marks)
    )


def _text_test(asked: Asked, test: Node, *, method: str) -> None:
    subject, given = _object(test), _arguments(test)[0]
    value, text = asked.value(subject), asked.value(given).constant
    if method == "includes" and not asked.outcome and text in {"..", "../"}:
        asked.clear(subject, _PATH)
    elif method == "startsWith":
        _starts(asked, subject, given=given)
        for mark in value.marks:
            if mark.startswith("relative:") and text == ".." and not asked.outcome:
                asked.state.clear(mark.partition(":")[2], _PATH)


def _starts(asked: Asked, subject: Node | None, *, given: Node) -> None:
    value, prefix = asked.value(subject), asked.value(given)
    text = prefix.constant
    if text == "/":
        _halves(asked, subject, half=_ROOTED if asked.outcome else "")
    elif text == "//":
        _halves(asked, subject, half="" if asked.outcome else _NOT_FOREIGN)
    elif asked.outcome and isinstance(text, str) and text.count("/") >= 3 and "://" in text:
        asked.clear(subject, _ELSEWHERE)
    if asked.outcome and "normal" in value.marks and not prefix.everything() and _ends_with_separator(given, text):
        asked.clear(subject, _PATH)


def _halves(asked: Asked, subject: Node | None, *, half: str) -> None:
    if half:
        asked.clear(subject, frozenset({half}))
        if asked.state.cleared.get(place(subject), frozenset()) >= {_ROOTED, _NOT_FOREIGN}:
            asked.clear(subject, frozenset({"redirect"}))


def _ends_with_separator(node: Node, text: object) -> bool:
    if isinstance(text, str):
        return text.endswith(("/", "\\"))
    written = text_of(node).replace(" ", "").rstrip("`)")
    return text is UNKNOWN and written.endswith(("path.sep", "+sep", "path.sep}", "{sep}", "+'/'", '+"/"', "}/"))


def _listed(asked: Asked, test: Node, *, arguments: list[Node]) -> None:
    """The member of a fixed collection."""
    owner = _object(test)
    if (
        (text_of(owner) == "Object" and len(arguments) == 2)
        or (text_of(owner).endswith("prototype.hasOwnProperty") and len(arguments) == 2)
        or (text_of(owner).endswith("hasOwnProperty") and len(arguments) == 2)
    ):  # Object.hasOwn(table, key)
        owner, subject = arguments[0], arguments[1]
    else:
        subject = arguments[0]
    if not asked.value(owner).everything():
        asked.clear(subject, ALL)


def _matched(asked: Asked, test: Node) -> None:
    first, second = _object(test), _arguments(test)[0]
    subject, pattern = (first, second) if _method(test) == "match" else (second, first)
    found = asked.value(pattern)
    if "regex" in found.marks:
        asked.clear(subject, patterns.shown(str(found.constant)))


def _own_guard(asked: Asked, test: Node, *, arguments: list[Node]) -> None:
    """A function of this file that answers yes or no: what its answer shows is known when the file is linked."""
    key = asked.value(test.child_by_field_name("function")).name
    if asked.reader.notes.owns(key):
        for position, argument in enumerate(arguments):
            asked.clear(argument, frozenset({f"guard:{key}:{position}"}))


def _method(call: Node) -> str:
    function = call.child_by_field_name("function")
    if function is None:
        return ""
    name = function.child_by_field_name("property")
    return text_of(name if name is not None else function)


def _object(call: Node) -> Node | None:
    function = call.child_by_field_name("function")
    return function.child_by_field_name("object") if function is not None else None


def _arguments(call: Node) -> list[Node]:
    arguments = call.child_by_field_name("arguments")
    return arguments.named_children if arguments is not None else []
