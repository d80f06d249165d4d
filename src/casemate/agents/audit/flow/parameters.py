"""What the parameters of a function carry: a client's data, what a caller passes, objects of a framework."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.scope import Frame
from casemate.agents.audit.facts.values import NOTHING, Result, Value, from_origin, gather
from casemate.agents.audit.flow.annotations import harmless, last, resolved
from casemate.agents.audit.flow.handlers import Role, is_static
from casemate.agents.audit.vocabulary.cleaners import NUMBER
from casemate.agents.audit.vocabulary.frameworks import FRAMEWORKS, REQUEST_CLASSES
from casemate.agents.audit.vocabulary.handlers import FIRM_NAMES, INJECTED, OPEN_TYPES, OUTSIDE_WORDS, UNTRUSTED_TYPES
from casemate.agents.audit.vocabulary.lexicon import EVERYTHING

_Definition = ast.FunctionDef | ast.AsyncFunctionDef
_DEPENDS = frozenset({"Depends", "Security"})
_SOCKETS = frozenset({"websocket", "ws"})
_CLIENTS = frozenset({"requests", "urllib", "urllib3", "httpx", "scrapy", "grpc", "pytest"})
"""Modules that make requests of their own, or have another idea of what one is."""


@dataclass(frozen=True, slots=True)
class _Parameter:
    """One parameter, its type as a dotted name, and what is written behind it."""

    node: ast.arg
    written: str
    default: ast.expr | None


def passed(record: Record, node: _Definition, *, frame: Frame, role: Role) -> dict[str, Value]:
    """The value of each parameter, and of the fields of those whose class declares them (`item.count`)."""
    spec = node.args
    plain = [*spec.posonlyargs, *spec.args]
    defaults = dict(zip(reversed([a.arg for a in plain]), reversed(spec.defaults), strict=False))
    defaults |= {a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None}
    everyone = [*plain, *spec.kwonlyargs, *(a for a in (spec.vararg, spec.kwarg) if a is not None)]
    first = 1 if frame.owner and not is_static(node) else 0
    found: dict[str, Value] = {}
    for index, argument in enumerate(everyone[first:]):
        given = _Parameter(argument, resolved(record, argument.annotation), defaults.get(argument.arg))
        value = _argument(record, given, frame=frame, role=role if index >= role.skip else Role())
        found[argument.arg] = value
        if role.kind and value.taints:
            found |= _fields(record, given, value=value)
    return found


def _argument(record: Record, given: _Parameter, *, frame: Frame, role: Role) -> Value:
    node, written = given.node, given.written
    if _is_request(record, node.arg, annotation=written):
        plain = record.parameter(frame.name, node) if not record.snippet else NOTHING
        return Value(taints=plain.taints, name="web.request")
    if node.arg == "start_response":
        return Value(name=node.arg)
    if role.kind and node.arg not in FIRM_NAMES:
        return _clients(record, given, role=role)
    return _outsiders(record, given, frame=frame) or _callers(record, given, frame=frame)


def _outsiders(record: Record, given: _Parameter, *, frame: Frame) -> Value | None:
    """Data of others by the type or the name of the parameter, whoever calls the function."""
    node, kind = given.node, UNTRUSTED_TYPES.get(given.written)
    if kind is not None or (node.arg in _SOCKETS and record.imports("websockets")):
        return record.untrusted(_key(given), node, kind=kind or "web")
    if node.arg in OUTSIDE_WORDS and not record.snippet and not frame.name.rpartition(".")[2].startswith("_"):
        told = record.untrusted(node.arg, node, kind="parameter", note=f"parameter {node.arg}")
        return gather(record.parameter(frame.name, node), told)
    if node.arg == "environ" and "start_response" in frame.parameters:
        return record.untrusted("environ", node)
    return None


def _callers(record: Record, given: _Parameter, *, frame: Frame) -> Value:
    """What callers pass, under the name of its type."""
    node, written = given.node, given.written
    value = record.parameter(frame.name, node)
    named = written if written and written not in {"str", "Any", "typing.Any"} else ""
    kinds = harmless(record, node.annotation, default=None) if node.annotation is not None else frozenset[str]()
    cleared = value.clear({"nosql"}) if "nosql" in kinds else value
    return Value(taints=cleared.taints, name=f"{named}()" if named else "")


def _clients(record: Record, given: _Parameter, *, role: Role) -> Value:
    """A parameter that a library fills with what a client sent, as far as its type lets it through."""
    node = given.node
    depends = _dependency(given)
    if depends is not None:
        return _result(record, depends, written=given.written)
    if _injected(given):
        return NOTHING
    kinds = harmless(record, node.annotation, default=given.default) | (
        NUMBER if node.arg in role.clean else frozenset()
    )
    if EVERYTHING in kinds:
        return NOTHING
    note = {"web": "untrusted input: route argument", "local": "command line:"}.get(role.kind, "untrusted message:")
    value = record.untrusted(_key(given), node, kind=role.kind, note=f"{note} {node.arg}").clear(kinds)
    if _holder(node.annotation) in OPEN_TYPES or _holder(given.default) == "Body":
        return value.marked("json")
    return value if given.written.rpartition(".")[0] == record.name else value.clear({"nosql"})


def _key(given: _Parameter) -> str:
    return f"upload {given.node.arg}" if given.written.endswith(("UploadFile", "FileStorage")) else given.node.arg


def _fields(record: Record, given: _Parameter, *, value: Value) -> dict[str, Value]:
    """Fields of a model: each is what its own type lets through."""
    declared = record.fields.get(f"{given.written}()", {})
    return {
        f"{given.node.arg}.{name}": NOTHING if EVERYTHING in kinds else value.clear(kinds)
        for name, kinds in declared.items()
    }


def _holder(node: ast.expr | None) -> str:
    """`dict` of `dict[str, Any]`, `Body` of `Body(…)`."""
    if isinstance(node, ast.Subscript):
        return last(node.value)
    return last(node.func) if isinstance(node, ast.Call) else last(node) if node is not None else ""


def _dependency(given: _Parameter) -> ast.Call | None:
    """`= Depends(function)` or `Annotated[T, Depends(function)]`."""
    written = [given.default]
    if isinstance(given.node.annotation, ast.Subscript) and isinstance(given.node.annotation.slice, ast.Tuple):
        written += given.node.annotation.slice.elts[1:]
    for node in written:
        if isinstance(node, ast.Call) and last(node.func) in _DEPENDS:
            return node
    return None


def _result(record: Record, node: ast.Call, *, written: str) -> Value:
    """What a dependency gives: the result of its function, which is a handler of its own."""
    function = node.args[0] if node.args else None
    name = record.dotted(function) if isinstance(function, ast.Name | ast.Attribute) else ""
    if not name:
        return Value(name=f"{written}()" if written else "")
    local = f"{record.name}.{name}"
    target = local if "." not in name else name
    if not record.may_be_ours(target):
        return NOTHING
    return from_origin(Result(record.call(node, target, arguments={})), f"{target}()")


def _is_request(record: Record, name: str, *, annotation: str) -> bool:
    if annotation.rpartition(".")[2] in REQUEST_CLASSES:
        parts = annotation.split(".")
        return parts[0] in FRAMEWORKS or not _CLIENTS & set(parts)
    if annotation or name not in {"request", "req"}:
        return False
    asks = any(_CLIENTS & set(dotted.split(".")) for dotted in record.names.values())
    return record.speaks_web or (name == "request" and not asks)


def _injected(given: _Parameter) -> bool:
    text = ast.unparse(given.node.annotation) if given.node.annotation is not None else ""
    text += ast.unparse(given.default) if isinstance(given.default, ast.Call) else ""
    return any(re.search(rf"\b{word}\b", text) for word in INJECTED)
