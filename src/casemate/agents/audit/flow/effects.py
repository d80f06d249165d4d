"""What a call gives: untrusted data, cleaned data, a member of a container, or what the project's code returns."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.syntax import place
from casemate.agents.audit.facts.values import NOTHING, Result, Source, Taints, Value, from_origin, gather, merge
from casemate.agents.audit.flow import members
from casemate.agents.audit.vocabulary.lexicon import (
    EVERYTHING,
    EXTENSIONS,
    JOINERS,
    KEYED_READS,
    NORMALIZERS,
    PATH_KIN,
    REQUESTS,
    SANITIZERS,
    SOCKET_READS,
    SOURCES,
    URL_PARSERS,
)

_Effect = Callable[[Point, Invocation], Value | None]
_JSON = frozenset({"json", "get_json", "JSON", "media", "data", "body", "get_data", "receive_json", "DATA"})
_PATH = "pathlib.Path()"


def result(here: Point, invocation: Invocation) -> Value:
    """The value of a call; of one that nobody knows, everything that went in may come out."""
    for effect in _EFFECTS:
        found = effect(here, invocation)
        if found is not None:
            return found
    whole = gather(invocation.function, *invocation.args, *invocation.keywords.values())
    return replace(whole, marks=_carried(invocation))


def request_data(record: Record, name: str, *, node: ast.AST) -> Value:
    """Data of a request. Only what is parsed from JSON can be more than text."""
    value = record.untrusted(name, node, note=f"untrusted input: {name.removeprefix('flask.').removeprefix('web.')}")
    if name.rpartition(".")[2] in _JSON:
        return value.marked("json")
    return replace(value.clear({"nosql"}), name=name)


def is_request(name: str) -> bool:
    """Whether an access path is a request of some web framework."""
    return name in REQUESTS or name.endswith("web.request")


def keyed(record: Record, base: Value, *, key: object, node: ast.AST) -> Value | None:
    """One field of request data as its own origin; None where `base` is something else."""
    owner, _, _ = base.name.rpartition(".")
    if not isinstance(key, str) or not is_request(owner) or not base.taints:
        return None
    field = record.untrusted(f"{base.name}[{key!r}]", node)
    cleared = frozenset[str].intersection(*base.taints.values())
    return replace(field.clear(cleared), name=f"{base.name}[]", marks=base.marks)


def _carried(invocation: Invocation) -> frozenset[str]:
    marks = invocation.receiver.marks.union(*(arg.marks for arg in invocation.args))
    return marks & {"json", "built", "extension", "normal", "fixed-host"}


def _whole(invocation: Invocation) -> Value:
    return gather(invocation.function, *invocation.args)


def _suffix(invocation: Invocation) -> str:
    return "." + invocation.name.rpartition(".")[2]


def _source(here: Point, invocation: Invocation) -> Value | None:
    name, suffix = invocation.name, _suffix(invocation)
    kind = SOURCES.get(name) or SOURCES.get(suffix)
    if kind is None or (suffix in SOCKET_READS and not here.record.imports("socket", "socketserver")):
        return None
    if any(isinstance(origin, Source) for origin in invocation.function.taints):
        return None  # what is called is already known to be untrusted
    note = f"untrusted input: {name.lstrip('.')}()"
    return here.record.untrusted(f"{name}()", invocation.node, kind=kind, note=note)


def _keyed_read(here: Point, invocation: Invocation) -> Value | None:
    method = invocation.name.rpartition(".")[2]
    if method not in KEYED_READS or not invocation.args:
        return None
    if invocation.keywords.get("type", NOTHING).name in {"int", "float", "uuid.UUID"}:
        return NOTHING
    found = keyed(here.record, invocation.receiver, key=invocation.args[0].constant, node=invocation.node)
    default = invocation.argument(1, "default")
    return replace(found, taints=merge(found.taints, default.everything())) if found is not None else None


def _cleaned(here: Point, invocation: Invocation) -> Value | None:
    kinds = SANITIZERS.get(invocation.name)
    if kinds is None and not here.record.may_be_ours(invocation.name.partition("(")[0].rpartition(".")[0]):
        last_two = ".".join(["", *invocation.name.split(".")[-2:]])
        kinds = SANITIZERS.get(_suffix(invocation)) or SANITIZERS.get(last_two)
    if kinds is None:
        return None
    if EVERYTHING in kinds:
        return Value(name=f"{invocation.name}()")
    return replace(_whole(invocation).clear(kinds), marks=_carried(invocation))


def _paths(here: Point, invocation: Invocation) -> Value | None:
    """Paths remember whether they are normal and whether they were put together."""
    del here
    name, suffix, marks = invocation.name, _suffix(invocation), _carried(invocation)
    whole = _whole(invocation)
    if suffix in {".resolve", ".joinpath", ".absolute"}:
        more = {".resolve": {"normal"}, ".joinpath": {"built"}, ".absolute": set[str]()}[suffix]
        return replace(whole, marks=marks | more, name=_PATH)
    if name in NORMALIZERS:
        return replace(whole, marks=marks | {"normal"})
    if name in JOINERS:
        return replace(whole, marks=marks | {"built"})
    if name in PATH_KIN:
        return replace(whole, marks=marks | ({"built"} if len(invocation.args) > 1 else set()), name=_PATH)
    return None


def _parsed(here: Point, invocation: Invocation) -> Value | None:
    """What was taken apart: addresses, names of files, JSON, patterns, items of a mapping."""
    del here
    name, whole = invocation.name, _whole(invocation)
    if name in URL_PARSERS:
        return replace(whole, marks=frozenset({"url"}), name="urllib.parse.urlparse()")
    if name in EXTENSIONS:
        return replace(whole, marks=frozenset({"extension"}))
    if name == "json.loads":
        taints = {origin: cleared - {"nosql"} for origin, cleared in whole.taints.items()}
        return Value(taints=taints, marks=frozenset({"json"}))
    if name in {"re.compile", "regex.compile"}:
        return replace(whole, constant=invocation.argument(0).constant, name="re.compile()")
    if _suffix(invocation) == ".items" and not invocation.args and invocation.receiver.taints:
        return Value(taints=invocation.receiver.everything(), marks=_carried(invocation))
    return None


def _configured(here: Point, invocation: Invocation) -> Value | None:
    """Parsers and template environments by how they were set up."""
    del here
    name, keywords = invocation.name, invocation.keywords
    if name.endswith("XMLParser") and isinstance(keywords.get("resolve_entities", NOTHING).constant, bool):
        return Value(marks=frozenset({"safe"}))  # or told already, at this very call
    if name.startswith("jinja2.") and name.endswith("Environment"):
        escaping = keywords.get("autoescape", NOTHING)
        return Value(name="jinja2.Environment(autoescape)" if escaping.name or escaping.constant is True else "")
    if name.startswith("jinja2.Environment(autoescape)") and name.endswith(".render"):
        return _whole(invocation).clear({"html"})
    return None


def _project(here: Point, invocation: Invocation) -> Value | None:
    """A call that may lead into the project: its result is resolved when the project is linked."""
    record, name, node = here.record, invocation.name, invocation.node
    arguments: dict[str, Taints] = {str(index): arg.everything() for index, arg in enumerate(invocation.args)}
    arguments |= {key: value.everything() for key, value in invocation.keywords.items()}
    filled = {key: taints for key, taints in arguments.items() if taints}
    if not record.may_be_ours(name):
        if filled and name.startswith(".") and name.count(".") == 1:
            record.call(node, name, arguments=filled, receiver={})
        return None
    key = record.call(node, name, arguments=filled, receiver=invocation.function.everything())
    for index, argument in enumerate(node.args):
        if invocation.args[index].taints and (where := place(argument)):
            here.scope.clear(where, invocation.args[index], kinds={f"ensure:{name}:{index}"})
    return replace(from_origin(Result(key)), marks=_carried(invocation), name=f"{name}()")


_EFFECTS: tuple[_Effect, ...] = (
    _source,
    _keyed_read,
    members.of_container,
    _cleaned,
    _paths,
    _parsed,
    _configured,
    members.of_text,
    _project,
)
