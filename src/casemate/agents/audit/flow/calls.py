"""Values of calls: what they are told to do is noted, what they give is found by `effects`."""

from __future__ import annotations

import ast
from dataclasses import replace

from casemate.agents.audit.checks import weak
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.sink import Invocation, Sink
from casemate.agents.audit.facts.syntax import place
from casemate.agents.audit.facts.values import NOTHING, Value, gather
from casemate.agents.audit.flow import effects
from casemate.agents.audit.flow.strings import percent
from casemate.agents.audit.sinks.tables import answers, sink_of
from casemate.agents.audit.vocabulary.lexicon import EVERYTHING
from casemate.finding import Confidence

_MAX_NAME = 160
_NUMBERS = frozenset({"int", "float", "uuid.UUID", "decimal.Decimal", "ipaddress.ip_address"})
_SHELLS = frozenset({"sh", "bash", "/bin/sh", "/bin/bash", "zsh", "cmd", "cmd.exe", "powershell", "ssh"})
_SPAWNERS = frozenset(f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen"))
_QUERY_CODE = frozenset({"$where", "$function", "$accumulator"})
_PROGRAM = Sink("command-injection", "command")
_QUERY = Sink("nosql-injection", "code")
_MASS = Sink("mass-assignment", "mass")
_UPLOAD_PATH = Sink("path-traversal", "path")
_UPLOAD = Sink("unrestricted-upload", "upload", confidence=Confidence.MEDIUM)


def call(here: Point, node: ast.Call) -> Value:
    """The value that a call gives, after everything that can be said about it has been noted."""
    invocation = _invocation(here, node)
    known = here.scope.values.get(place(node))
    if known is not None:
        return known
    weak.call(here, invocation)
    kind = _note_sinks(here.record, invocation)
    _learn(here, invocation)
    result = effects.result(here, invocation)
    if kind:
        result = result.clear({kind, "html"})  # told once; what an answer is made of is not its page
    name = result.name or f"{invocation.name}()"
    return replace(result, name=name if len(name) < _MAX_NAME else "")


def _invocation(here: Point, node: ast.Call) -> Invocation:
    if isinstance(node.func, ast.Attribute):
        receiver = here.value(node.func.value)
        known = here.scope.values.get(place(node.func))
        function = known if known is not None else here.reader.member(node.func, here.scope, base=receiver)
    else:
        receiver, function = NOTHING, here.value(node.func)
    name = function.name
    if isinstance(node.func, ast.Attribute) and not name.endswith(node.func.attr):
        name = f"{receiver.name}.{node.func.attr}"
    args = tuple(here.value(arg) for arg in node.args)
    keywords = {keyword.arg or "**": here.value(keyword.value) for keyword in node.keywords}
    return Invocation(name, node, function, receiver, args, keywords)


def _note_sinks(record: Record, invocation: Invocation) -> str:
    """Note every sink that a call is; gives the kind of the main one, whether or not anything reaches it."""
    sink = sink_of(invocation)
    if sink is not None:
        _note(record, invocation, sink=sink)
    if invocation.name in _SPAWNERS and not invocation.is_set("shell"):
        _note_program(record, invocation)
    last = invocation.name.rpartition(".")[2]
    if last == "save" and ".files" in invocation.name.lower():
        _note_upload(record, invocation)
    query = invocation.argument(0, "filter")
    if last.startswith(("find", "count", "aggregate")) and query.items and _QUERY_CODE & query.items.keys():
        code = gather(*(item for key, item in query.items.items() if key in _QUERY_CODE))
        record.sink(_QUERY, invocation.node, reached=code)
    spread = invocation.keywords.get("**")
    if spread is not None and not spread.items and (last[:1].isupper() or last in {"create", "update"}):
        record.sink(_MASS, invocation.node, reached=spread)
    return answers(invocation.name) or (sink.kind if sink is not None else "")


def _note(record: Record, invocation: Invocation, *, sink: Sink) -> None:
    if sink.kind == "log" and len(invocation.args) > 1 and isinstance(invocation.args[0].constant, str):
        rest = Value(items=dict(enumerate(invocation.args[1:])))
        record.sink(sink, invocation.node, reached=percent(invocation.args[0].constant, rest))
        return
    reached: list[Value] = []
    for argument in sink.arguments:
        if argument == -1:
            reached.append(invocation.receiver)
        elif isinstance(argument, int):
            reached.append(invocation.argument(argument))
        else:
            reached.append(invocation.keywords.get(argument, NOTHING))
    marks = frozenset[str]().union(*(value.marks for value in reached))
    record.sink(sink, invocation.node, reached=replace(gather(*reached), marks=marks))


def _note_upload(record: Record, invocation: Invocation) -> None:
    """An upload under a name of the sender's: its path, or at least its extension, is theirs to choose."""
    name = invocation.argument(0, "dst")
    record.sink(_UPLOAD_PATH, invocation.node, reached=name)
    if all("path" in cleared for cleared in name.everything().values()):
        record.sink(_UPLOAD, invocation.node, reached=name)


def _note_program(record: Record, invocation: Invocation) -> None:
    """Without a shell only the program itself, or what a shell is told to run, is dangerous."""
    command = invocation.argument(0, "args")
    items = command.items or {}
    program = items.get(0)
    if program is None:
        dangerous = command if command.items is None and "built" in command.marks else NOTHING
    elif program.constant in _SHELLS:
        dangerous = gather(*(item for key, item in items.items() if key != 0))
    else:
        dangerous = program
    record.sink(_PROGRAM, invocation.node, reached=dangerous)


def _learn(here: Point, invocation: Invocation) -> None:
    """What is known after a call returned: a number was one, a path lies under its root."""
    node = invocation.node
    if invocation.name in _NUMBERS and node.args and (where := place(node.args[0])):
        here.scope.clear(where, invocation.args[0], kinds={EVERYTHING})
    under = isinstance(node.func, ast.Attribute) and node.func.attr == "relative_to"
    if under and isinstance(node.func, ast.Attribute) and "normal" in invocation.receiver.marks:
        here.scope.clear(place(node.func.value), invocation.receiver, kinds={"path"})
