"""Evaluates calls of JavaScript: sources, sinks, what makes harmless, functions of the same file, callbacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tree_sitter import Node

from casemate.agents.audit.checks.words import words
from casemate.agents.audit.facts.values import NOTHING, Value, gather, join, merge
from casemate.agents.audit.javascript import lexicon
from casemate.agents.audit.javascript.members import member, package
from casemate.agents.audit.javascript.point import Reader
from casemate.agents.audit.javascript.reaching import Invocation
from casemate.agents.audit.javascript.results import Called, result
from casemate.agents.audit.javascript.sinks import reached
from casemate.agents.audit.javascript.source import FUNCTIONS, text_of
from casemate.agents.audit.javascript.state import State, place

_CONTENT_TYPE = "@sends"
_SOCKETS = frozenset({"socket", "ws", "websocket", "conn", "client"})


def imported(node: Node) -> str:
    """The package that `require("…")` or `import("…")` names; empty for any other call."""
    function = node.child_by_field_name("function")
    if (
        function is None
        or function.type not in {"identifier", "import"}
        or text_of(function) not in {"require", "import"}
    ):
        return ""
    given = _arguments(node)
    return package(text_of(given[0])[1:-1]) if len(given) == 1 and given[0].type == "string" else ""


def called(reader: Reader, node: Node, *, state: State) -> Value:
    """The value of a call or of `new`; notes the sinks that it is."""
    target = node.child_by_field_name("function") or node.child_by_field_name("constructor")
    if target is not None and target.type == "parenthesized_expression" and target.named_children:
        target = target.named_children[0]
    if target is None:
        return NOTHING
    arguments = node.child_by_field_name("arguments")
    if arguments is not None and arguments.type == "template_string":
        return _tagged(reader, text_of(target), template=arguments, state=state)
    given = _arguments(node)
    if target.type in FUNCTIONS:
        return reader.inline(target, [reader.value(argument, state) for argument in given], state=state)
    call = _invocation(reader, node, target=target, state=state)
    values = [NOTHING if argument.type in FUNCTIONS else reader.value(argument, state) for argument in given]
    call = replace(call, args=tuple(values), sends=str(state.values.get(_CONTENT_TYPE, NOTHING).constant))
    for sink, value in reached(call):
        reader.notes.sink(sink, node, reached=value)
    back = _callbacks(reader, call, given=given, state=state)
    _effects(call, given, state=state)
    return result(Called(reader, call, given, back))


def _invocation(reader: Reader, node: Node, *, target: Node, state: State) -> Invocation:
    if target.type == "member_expression":
        owner = target.child_by_field_name("object")
        receiver = reader.value(owner, state)
        method = text_of(target.child_by_field_name("property"))
        name = member(reader.notes, target, base=receiver, key=method).name or f"{receiver.name}.{method}"
        owner_text = text_of(owner)[:200]
    else:
        receiver, owner_text = NOTHING, ""
        value = reader.value(target, state)
        name = value.name
        method = name.rpartition(".")[2]
    return Invocation(node, name, method, owner_text, receiver, (), reader.notes, new=node.type == "new_expression")


def _arguments(node: Node) -> list[Node]:
    arguments = node.child_by_field_name("arguments")
    return [child for child in arguments.named_children if child.type != "comment"] if arguments is not None else []


def _tagged(reader: Reader, tag: str, *, template: Node, state: State) -> Value:
    """A tag decides what becomes of the pieces; those of queries and pages bind or escape them."""
    whole = reader.value(template, state)
    return whole if tag in {"String.raw", "dedent"} else Value()


def _callbacks(reader: Reader, call: Invocation, *, given: Sequence[Node], state: State) -> Value:
    """Functions that stand among the arguments are walked here, with what they will be given."""
    back = NOTHING
    for position, argument in enumerate(given):
        if argument.type in FUNCTIONS:
            passed = _passed(reader, call, position=position, function=argument)
            given_back = reader.inline(argument, passed, state=state)
            back = given_back if back is NOTHING else join(back, given_back)
    return back


def _passed(reader: Reader, call: Invocation, *, position: int, function: Node) -> list[Value]:
    event = call.argument(0).constant
    found: list[Value] = []
    if call.method in lexicon.LISTENERS or call.method in {"reduce", "reduceRight"}:
        elements = Value(taints=call.receiver.everything(), marks=call.receiver.marks & {"sql", "markup"})
        found = [elements] if call.method in lexicon.LISTENERS else [call.argument(1), elements]
    elif call.method == "then" and position == 0:
        found = [replace(call.receiver, name="")]
    elif _routes(call, position):
        found = _handler(function)
    elif call.name in {"http.createServer", "https.createServer"}:
        found = [Value(name="@req"), Value(name="@res")]
    elif call.method in {"on", "once", "addListener", "addEventListener"} and isinstance(event, str):
        found = _listener(reader, call, event=event, function=function)
    return found


def _routes(call: Invocation, position: int) -> bool:
    """`app.get("/path", …, handler)`: registered with a path on what is an application, by its making or its name."""
    if call.method not in lexicon.ROUTES or position == 0:
        return False
    made = call.receiver.name.startswith(("express", "fastify", "koa", "@koa", "restify", "polka"))
    named = call.owner.rpartition(".")[2] in lexicon.APPLICATIONS or ".route(" in call.owner
    path = call.argument(0).constant
    return (made or named) and isinstance(path, str) and path.startswith(("/", "*", ":"))


def _handler(function: Node) -> list[Value]:
    parameters = function.child_by_field_name("parameters")
    count = len(parameters.named_children) if parameters is not None else 1
    roles = [Value(name="@req"), Value(name="@res")]
    return [NOTHING, *roles] if count == 4 else roles


def _listener(reader: Reader, call: Invocation, *, event: str, function: Node) -> list[Value]:
    """What an event brings: a posted message, a frame of a socket, a chunk of a body, a member of an archive."""
    owner = call.owner.rpartition(".")[2].lower()
    if event == "message" and (call.method == "addEventListener" or owner == "window"):
        return [Value(name="@message")]
    socket = bool(words(owner) & _SOCKETS) and event not in {"connect", "error", "close"}
    if socket or (event == "data" and call.receiver.name == "@req"):
        return [reader.notes.untrusted(function, f"{call.owner}.on({event})", kind="web", cleared=frozenset())]
    if event == "entry":
        return [Value(name="@entry"), Value(name="@entry")]
    return []


def _effects(call: Invocation, given: Sequence[Node], *, state: State) -> None:
    """What a call does to what is known: an answer's content type, what a list holds, what an own guard ensures."""
    if call.receiver.name.startswith("@res"):
        _answers(call, state)
    elif call.method in {"push", "unshift", "add", "append", "set"} and call.owner in state.values:
        _fill(call, state)
    elif call.name == "Object.assign" and given and given[0].type == "identifier":
        name = text_of(given[0])
        if name in state.values:
            state.values[name] = replace(state.values[name], taints=merge(*(v.everything() for v in call.args)))
    if call.notes.owns(call.name):
        for position, argument in enumerate(given):
            state.clear(place(argument), frozenset({f"ensure:{call.name}:{position}"}))


def _answers(call: Invocation, state: State) -> None:
    """The content type that an answer is given."""
    kind = call.argument(0).constant
    if call.method in {"type", "contentType"} and isinstance(kind, str):
        state.values[_CONTENT_TYPE] = Value(constant=kind)
    elif call.method in {"set", "setHeader", "header"} and str(kind).lower() == "content-type":
        state.values[_CONTENT_TYPE] = call.argument(1)
    elif call.method == "attachment":
        state.values[_CONTENT_TYPE] = Value(constant="application/octet-stream")
    elif call.method == "writeHead":
        headers = call.argument(len(call.args) - 1).items or {}
        named = [value for key, value in headers.items() if str(key).lower() == "content-type"]
        state.values[_CONTENT_TYPE] = named[0] if named else state.values.get(_CONTENT_TYPE, NOTHING)


def _fill(call: Invocation, state: State) -> None:
    """A collection is known as a whole once it is filled; an array by position as long as it is pushed to."""
    known = state.values[call.owner]
    value = call.argument(-1)
    if call.method == "push" and known.items is not None and not known.taints and len(call.args) == 1:
        state.values[call.owner] = known.put(len(known.items), value)
    elif call.method == "set" and known.name == "Map()" and isinstance(call.argument(0).constant, str):
        state.values[call.owner] = known.put(call.argument(0).constant, value)
    else:
        taints = merge(known.taints, gather(*call.args).taints)
        state.values[call.owner] = replace(known, taints=taints, marks=known.marks | (value.marks & {"sql", "markup"}))
