"""What a function is to a framework: a page handler, a command, a plain function; and what its parameters carry."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.scope import Frame
from casemate.agents.audit.facts.values import NOTHING, Value
from casemate.agents.audit.vocabulary.lexicon import (
    CLEAN_CONVERTERS,
    CLEAN_TYPES,
    FRAMEWORKS,
    INJECTED,
    REQUEST_CLASSES,
    ROUTE_VERBS,
)

NEVER_RETURN = frozenset(
    {
        *("flask.abort", "abort", "sys.exit", "exit", "quit", "os._exit", "bottle.abort", "werkzeug.exceptions.abort"),
        *("quart.abort", "os.abort", "pytest.fail", "sanic.exceptions.abort"),
    }
)
_CONVERTER = re.compile(r"<(?:([^:<>]+):)?([^<>]+)>")
_TYPED = re.compile(r"\{(\w+):(int|float|uuid)\}")
_VIEW_METHODS = frozenset({"get", "post", "put", "patch", "delete", "dispatch", "head", "options"})
_COMMANDS = frozenset({"argument", "option"})


@dataclass(frozen=True, slots=True)
class Role:
    """`web`: called by a web framework; `html`: its text is sent as a page; `command`: called by a command line.

    `clean` are parameters that the framework converts to numbers.
    """

    web: bool = False
    html: bool = False
    command: bool = False
    clean: frozenset[str] = frozenset()


def role(record: Record, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Role:
    """Decide by decorators, and for Django by the first parameter."""
    for decorator in node.decorator_list:
        match decorator:
            case ast.Call(func=ast.Attribute(attr=verb) | ast.Name(id=verb), args=args) if (
                verb in ROUTE_VERBS and record.speaks_web and (not args or isinstance(args[0], ast.Constant))
            ):
                return Role(web=True, html=_sends_pages(record, decorator), clean=_converted(args))
            case ast.Call(func=ast.Attribute(attr=verb)) if verb in _COMMANDS and record.imports("click"):
                return Role(command=True)
            case _:
                continue
    names = [argument.arg for argument in node.args.args]
    return Role(web=_is_view(record, node.name, names=names) or names == ["event", "context"])


def arguments(
    record: Record, node: ast.FunctionDef | ast.AsyncFunctionDef, *, frame: Frame, role: Role
) -> dict[str, Value]:
    """The value of each parameter."""
    spec = node.args
    plain = [*spec.posonlyargs, *spec.args]
    defaults = dict(zip(reversed([a.arg for a in plain]), reversed(spec.defaults), strict=False))
    defaults |= {a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None}
    everyone = [*plain, *spec.kwonlyargs, *(a for a in (spec.vararg, spec.kwarg) if a is not None)]
    skip = 1 if frame.owner and not is_static(node) else 0
    return {a.arg: _argument(record, a, frame=frame, role=role, default=defaults.get(a.arg)) for a in everyone[skip:]}


def is_static(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a method takes no instance."""
    return any(isinstance(decorator, ast.Name) and decorator.id == "staticmethod" for decorator in node.decorator_list)


def fields(node: ast.ClassDef) -> Mapping[str, str]:
    """Annotated fields of a class, as written."""
    return {
        item.target.id: ast.unparse(item.annotation)
        for item in node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }


def literals(pattern: ast.pattern) -> list[object]:
    """The constants that a pattern stands for; empty if it matches anything else too."""
    match pattern:
        case ast.MatchValue(value=ast.Constant(value=constant)):
            return [constant]
        case ast.MatchSingleton(value=constant):
            return [constant]
        case ast.MatchOr(patterns=patterns):
            found = [literals(inner) for inner in patterns]
            return [constant for group in found for constant in group] if all(found) else []
        case ast.MatchAs(pattern=inner) if inner is not None:
            return literals(inner)
        case _:
            return []


def captured(pattern: ast.pattern) -> Iterator[str]:
    """Names that a pattern binds to more than a literal."""
    for node in ast.walk(pattern):
        if (isinstance(node, ast.MatchStar) and node.name) or (
            isinstance(node, ast.MatchAs) and node.name and (node.pattern is None or not literals(node.pattern))
        ):
            yield node.name


def always(pattern: ast.pattern) -> bool:
    """Whether a pattern matches everything."""
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None


def _argument(record: Record, node: ast.arg, *, frame: Frame, role: Role, default: ast.expr | None) -> Value:
    annotation = ast.unparse(node.annotation) if node.annotation is not None else ""
    written = _resolved(record, annotation)
    if _is_request(record, node.arg, annotation=written):
        plain = record.parameter(frame.name, node) if not record.snippet else NOTHING
        return Value(taints=plain.taints, name="web.request")
    if role.web and node.arg not in {"self", "context", "start_response", "websocket"}:
        if node.arg in role.clean or written in CLEAN_TYPES or _injected(annotation, default):
            return NOTHING
        return record.untrusted(node.arg, node, note=f"untrusted input: route argument {node.arg}").clear({"nosql"})
    if role.command:
        return record.untrusted(node.arg, node, kind="local", note=f"command line: {node.arg}")
    if node.arg == "environ" and "start_response" in frame.parameters:
        return record.untrusted("environ", node)
    value = record.parameter(frame.name, node)
    named = written if written and written[:1].isalpha() and "[" not in written and "|" not in written else ""
    return Value(taints=value.taints, name=f"{named}()" if named and named not in {"str", "Any"} else "")


def _resolved(record: Record, annotation: str) -> str:
    """An annotation as a dotted name, without `Optional` and `| None`."""
    text = annotation.strip("'\"").removesuffix("| None").strip()
    text = re.sub(r"^(?:typing\.)?(?:Optional|Annotated)\[([^\],]+).*\]$", r"\1", text)
    head, dot, rest = text.partition(".")
    if not head.isidentifier():
        return text
    known = record.names.get(head)
    local = f"{record.name}.{head}"
    if known is None:
        return local + dot + rest if local in record.bases else text
    return known + dot + rest


def _is_request(record: Record, name: str, *, annotation: str) -> bool:
    last = annotation.rpartition(".")[2]
    if last in REQUEST_CLASSES:
        return annotation.partition(".")[0] not in {"urllib", "requests", "scrapy"}
    return name in {"request", "req"} and not annotation and record.speaks_web


def _injected(annotation: str, default: ast.expr | None) -> bool:
    text = annotation + (ast.unparse(default) if isinstance(default, ast.Call) else "")
    return any(re.search(rf"\b{word}\b", text) for word in INJECTED)


def _sends_pages(record: Record, decorator: ast.Call) -> bool:
    for keyword in decorator.keywords:
        if keyword.arg == "response_class":
            return "HTML" in ast.unparse(keyword.value)
    return record.imports("flask", "quart", "bottle", "cherrypy") or not record.imports(*FRAMEWORKS)


def _converted(args: list[ast.expr]) -> frozenset[str]:
    if not args or not isinstance(args[0], ast.Constant) or not isinstance(args[0].value, str):
        return frozenset()
    rule = args[0].value
    clean = {name for converter, name in _CONVERTER.findall(rule) if converter.partition("(")[0] in CLEAN_CONVERTERS}
    return frozenset(clean | {name for name, _ in _TYPED.findall(rule)})


def _is_view(record: Record, function: str, *, names: list[str]) -> bool:
    if not record.imports("django", "rest_framework"):
        return False
    if names[:1] == ["self"]:
        return function in _VIEW_METHODS and names[1:2] == ["request"]
    return names[:1] == ["request"] and not function.startswith("_")
