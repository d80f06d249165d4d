"""Values of calls: what they are told to do is noted, what they give is found by `effects`."""

from __future__ import annotations

import ast
from dataclasses import replace

from casemate.agents.audit.checks import weak
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.scope import CONTENT_TYPE, VERIFIED
from casemate.agents.audit.facts.sink import Invocation, Sink
from casemate.agents.audit.facts.syntax import place
from casemate.agents.audit.facts.values import NOTHING, Value, gather
from casemate.agents.audit.flow import effects
from casemate.agents.audit.flow.leads import BOUND, resumed
from casemate.agents.audit.flow.strings import percent
from casemate.agents.audit.sinks.tables import answers, sinks_of
from casemate.agents.audit.vocabulary.cleaners import NUMBER
from casemate.agents.audit.vocabulary.lexicon import EVERYTHING

_MAX_NAME = 160
_NUMBERS = frozenset({"int", "float", "uuid.UUID", "decimal.Decimal", "ipaddress.ip_address"})


def call(here: Point, node: ast.Call) -> Value:
    """The value that a call gives, after everything that can be said about it has been noted."""
    invocation = _invocation(here, node)
    known = here.scope.values.get(place(node))
    if known is not None:
        return known
    weak.call(here, invocation)
    kind = _note_sinks(here, invocation)
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
    if BOUND in (function.items or {}):
        args, keywords = resumed(function, args, keywords=keywords)
    bases = here.record.bases.get((receiver.name or name).removesuffix("()"))
    sends = str(here.scope.values.get(CONTENT_TYPE, NOTHING).constant)
    ours = bases is not None and not set(bases) - {"object"}
    return Invocation(name, node, function, receiver, args, keywords, bases=bases or (), ours=ours, sends=sends)


def _note_sinks(here: Point, invocation: Invocation) -> str:
    """Note every sink that a call is; gives the kind of the main one, whether or not anything reaches it."""
    sinks = sinks_of(invocation)
    for sink in sinks:
        if sink.kind != "object" or VERIFIED not in here.scope.values:
            _note(here.record, invocation, sink=sink)
    return answers(invocation.name) or next((sink.kind for sink in sinks if sink.ends), "")


def _note(record: Record, invocation: Invocation, *, sink: Sink) -> None:
    if sink.kind == "log" and len(invocation.args) > 1 and isinstance(invocation.args[0].constant, str):
        rest = Value(items=dict(enumerate(invocation.args[1:])))
        record.sink(sink, invocation.node, reached=percent(invocation.args[0].constant, rest))
        return
    if sink.reach is not None:
        record.sink(sink, invocation.node, reached=sink.reach(invocation))
        return
    reached: list[Value] = []
    for argument in sink.arguments:
        if argument == -1:
            reached.append(invocation.receiver)
        elif isinstance(argument, int):
            reached.append(invocation.argument(argument))
        else:
            reached.append(invocation.keywords.get(argument, NOTHING))
    if not any(value.everything() for value in reached) and "**" in invocation.keywords and not invocation.args:
        spread = invocation.keywords["**"]
        reached += [spread.take(argument) for argument in sink.arguments if isinstance(argument, str)]
    marks = frozenset[str]().union(*(value.marks for value in reached))
    record.sink(sink, invocation.node, reached=replace(gather(*reached), marks=marks))


def _learn(here: Point, invocation: Invocation) -> None:
    """What is known after a call returned: a number was one, a path lies under its root."""
    node = invocation.node
    one_of = any(base.startswith("enum.") for base in here.record.bases.get(invocation.name, ()))
    if one_of and node.args and (where := place(node.args[0])):
        here.scope.clear(where, invocation.args[0], kinds={EVERYTHING})
    if invocation.name in _NUMBERS and node.args and (where := place(node.args[0])):
        # that a text is an address says nothing of whose it is
        kinds = NUMBER - {"ssrf"} if invocation.name == "ipaddress.ip_address" else NUMBER
        here.scope.clear(where, invocation.args[0], kinds=kinds)
    if (
        invocation.name.endswith(("_header", ".header"))
        and str(invocation.argument(0).constant).lower() == "content-type"
    ):
        here.scope.bind(CONTENT_TYPE, invocation.argument(1))
    under = isinstance(node.func, ast.Attribute) and node.func.attr == "relative_to"
    if under and isinstance(node.func, ast.Attribute) and "normal" in invocation.receiver.marks:
        here.scope.clear(place(node.func.value), invocation.receiver, kinds={"path"})
