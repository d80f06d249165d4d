"""What a call in JavaScript gives back: what it is given, less what it makes harmless."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tree_sitter import Node

from casemate.agents.audit.checks.words import words
from casemate.agents.audit.facts.values import NOTHING, UNKNOWN, Result, Value, clear, from_origin, gather, merge
from casemate.agents.audit.javascript import lexicon, patterns, strings
from casemate.agents.audit.javascript.lexicon import ALL, CLEANERS, CLEANING_METHODS, SOURCES
from casemate.agents.audit.javascript.members import source
from casemate.agents.audit.javascript.point import Reader
from casemate.agents.audit.javascript.reaching import Invocation
from casemate.agents.audit.javascript.sinks import BY_NAME
from casemate.agents.audit.javascript.state import place

_NORMALIZERS = frozenset(
    {"path.relative", "path.join", "path.resolve", "path.normalize", "fs.realpathSync", "fs.promises.realpath"}
)
_CALLED = frozenset({"Function", "RegExp", "Response", "URL", "URLSearchParams", "Array", "Object", "String"})


@dataclass(frozen=True, slots=True)
class Called:
    """A call that was made: `given` are its arguments as written, `back` what the functions among them give back."""

    reader: Reader
    call: Invocation
    given: Sequence[Node]
    back: Value

    @property
    def name(self) -> str:
        """The access path of the result."""
        return f"{self.call.name}()"

    @property
    def method(self) -> str:
        """The last part of what is called."""
        return self.call.method

    @property
    def first(self) -> object:
        """The constant of the first argument."""
        return self.call.argument(0).constant


def result(called: Called) -> Value:
    """What a call gives back."""
    return next(way(called) for applies, way in _WAYS if applies(called))


def _source(called: Called) -> Value:
    return source(called.reader.notes, called.call.node, name=called.name)


def _cleaned(called: Called) -> Value:
    taints = clear(gather(*called.call.args).taints, CLEANERS[called.call.name])
    return Value(taints=taints, name="" if taints else called.name)


def _path(called: Called) -> Value:
    marks = {"normal", "built"}
    if called.call.name == "path.relative" and len(called.given) == 2:
        marks = {f"relative:{place(called.given[1])}"}
    elif len(called.given) == 1:
        marks = {"normal"}
    return Value(taints=gather(*called.call.args).taints, marks=frozenset(marks))


def _passes(called: Called) -> bool:
    return called.call.name in lexicon.PASSING or called.call.name.startswith(lexicon.PASSING_PACKAGES)


def _passed_on(called: Called) -> Value:
    call, first = called.call, called.call.argument(0)
    if call.name in {"Array", "Map", "Set"} and not call.args:
        return Value(name=called.name, items={})
    if call.name in {"Set", "Array.from", "Object.freeze", "Promise.resolve"} and len(call.args) == 1:
        return replace(first, name=called.name if call.name == "Set" else first.name)
    if call.name == "util.format" and isinstance(first.constant, str):
        return strings.built([first, *call.args[1:]])
    marks = first.marks & {"sql", "markup", "built"}
    if call.name.endswith("URL") and called.given:
        marks |= {f"of:{place(called.given[0])}"}
    return Value(taints=gather(*call.args).taints, name=called.name, marks=marks)


def _of_callback(called: Called) -> Value:
    return replace(called.back, name="", items=None, taints=called.back.everything())


def _mapped(called: Called) -> Value:
    """`names.map(encodeURIComponent)`."""
    return Value(taints=clear(called.call.receiver.everything(), CLEANERS[called.call.argument(0).name]))


def _split(called: Called) -> Value:
    """Of an own address, the part before its query is a path that was sent encoded."""
    receiver = called.call.receiver
    return Value(taints=receiver.everything(), items={0: Value(name=receiver.name)})


def _measured(called: Called) -> Value:
    whole = gather(called.call.receiver, *called.call.args)
    return Value(taints=clear(whole.taints, CLEANING_METHODS[called.method]))


def _method(called: Called) -> Value:
    """Of untrusted data a method mostly gives back untrusted data, of anything else it does not."""
    receiver = called.call.receiver
    if receiver.items is not None and called.method in {"slice", "reverse", "sort", "filter"}:
        return receiver
    kept = receiver.marks & {"sql", "markup", "built", "normal"}
    return Value(taints=receiver.everything(), name=called.name if receiver.name else "", marks=kept)


def _joined(called: Called) -> Value:
    call = called.call
    if call.method == "concat" and call.receiver.items is None:
        return strings.built([call.receiver, *call.args])
    items = list((call.receiver.items or {}).values())
    if call.method == "join" and items and not call.receiver.taints:
        glue = call.argument(0)
        return strings.built([piece for item in items for piece in (item, glue)][:-1] if glue is not NOTHING else items)
    whole = gather(call.receiver, *call.args)
    return Value(
        taints=whole.taints, items=None, marks=frozenset({"built"}) | (call.receiver.marks & {"sql", "markup"})
    )


def _replaced(called: Called) -> Value:
    """`replace`: what it cuts or escapes for good, and what it puts in."""
    call = called.call
    pattern, new, receiver = call.argument(0), call.argument(1), call.receiver
    marks = (receiver.marks | new.marks) & {"sql", "markup"}
    if receiver.constant is not UNKNOWN or not receiver.everything():
        return Value(taints=gather(receiver, new).taints, marks=frozenset(marks | {"built"}))
    kinds = frozenset[str]()
    if "regex" in pattern.marks:
        literal = str(pattern.constant)
        kinds = patterns.left_by_removal(literal) if new.constant == "" else patterns.escaped_by(literal)
        safe = isinstance(new.constant, str) and patterns.is_harmless(new.constant)
        kinds = patterns.left_by_removal(literal) | kinds if safe else kinds
    elif call.method == "replaceAll" and pattern.constant == "<":
        kinds = frozenset({"html"})
    return Value(taints=merge(clear(receiver.everything(), kinds), new.everything()), marks=frozenset(marks))


def _own(called: Called) -> Value:
    """A function of this file: what it gives back is known when the file is linked."""
    call = called.call
    arguments = {str(position): value.everything() for position, value in enumerate(call.args)}
    key = called.reader.notes.call(call.node, call.name, arguments=arguments, receiver={})
    return from_origin(Result(key))


def _constructed(called: Called) -> Value:
    call = called.call
    owner = call.name.removeprefix("class:")
    maker = called.reader.notes.classes.get(owner, {}).get("constructor")
    if maker is not None:
        arguments = {str(position): value.everything() for position, value in enumerate(call.args)}
        called.reader.notes.call(call.node, maker, arguments=arguments, receiver={})
    return Value(name=f"class:{owner}")


def _foreign(called: Called) -> Value:
    """A function that is not in this file: it may give back what it is given, unless its name says that it cleans."""
    call, name = called.call, called.name
    if call.new and call.name not in _CALLED:
        return Value(name=name)
    if words(call.method) & lexicon.CLEANING_WORDS or call.name in {"parseInt", "Number"}:
        return Value(taints=clear(gather(*call.args).taints, ALL), name=name)
    of_a_library = "." in call.name and not call.name.startswith(".")
    if of_a_library or call.name in BY_NAME or words(call.method) & lexicon.LOOKING_UP:
        return Value(name=name)
    whole = gather(*call.args)
    marks = frozenset[str]().union(*(value.marks & {"sql", "markup"} for value in call.args))
    return Value(taints=whole.taints, name=name, marks=marks)


_METHOD_WAYS: Sequence[tuple[Callable[[Called], bool], Callable[[Called], Value]]] = (
    (lambda c: c.method in {"map", "flatMap", "reduce", "then"} and c.back is not NOTHING, _of_callback),
    (lambda c: c.method in {"map", "flatMap"} and c.call.argument(0).name in CLEANERS, _mapped),
    (lambda c: c.method in {"filter", "map"} and c.call.argument(0).name in {"Boolean", "String"}, _method),
    (lambda c: c.method == "toString" and c.first in {"hex", "base64", "base64url"}, lambda _: NOTHING),
    (lambda c: c.method == "get" and c.call.receiver.items is not None, lambda c: c.call.receiver.take(c.first)),
    (lambda c: c.method in {"replace", "replaceAll"}, _replaced),
    (lambda c: c.method == "split" and "own" in c.call.receiver.marks and c.first in {"?", "#"}, _split),
    (lambda c: c.method in CLEANING_METHODS, _measured),
    (lambda c: c.method == "concat" or (c.method == "join" and c.call.receiver.items is not None), _joined),
    (lambda _: True, _method),
)
"""For methods whose receiver is an expression; the first that applies."""
_WAYS: Sequence[tuple[Callable[[Called], bool], Callable[[Called], Value]]] = (
    (lambda c: c.name in SOURCES, _source),
    (lambda c: c.call.name.startswith("class:"), _constructed),
    (lambda c: c.reader.notes.owns(c.call.name), _own),
    (lambda c: c.call.name in CLEANERS, _cleaned),
    (lambda c: c.call.name in lexicon.RETURNS_FIRST, lambda c: c.call.argument(0)),
    (lambda c: c.call.name in _NORMALIZERS, _path),
    (_passes, _passed_on),
    (
        lambda c: bool(c.call.owner) and not c.call.new,
        lambda c: next(way(c) for applies, way in _METHOD_WAYS if applies(c)),
    ),
    (lambda _: True, _foreign),
)
"""What a call gives back, by the first that applies."""
