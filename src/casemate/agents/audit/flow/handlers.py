"""What a function is to a framework: a page handler, a command, a plain function; and what classes declare."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.syntax import nodes
from casemate.agents.audit.flow.annotations import harmless
from casemate.agents.audit.vocabulary.cleaners import NUMBER
from casemate.agents.audit.vocabulary.frameworks import FRAMEWORKS, is_clean_option, is_web_view
from casemate.agents.audit.vocabulary.handlers import (
    CLEAN_CONVERTERS,
    DECORATED,
    METHODS,
    REGISTERED,
    REMOTE_CALLBACKS,
    ROUTE_VERBS,
    Called,
)

_Definition = ast.FunctionDef | ast.AsyncFunctionDef
NEVER_RETURN = frozenset(
    {
        *("flask.abort", "abort", "sys.exit", "exit", "quit", "os._exit", "bottle.abort", "werkzeug.exceptions.abort"),
        *(
            "quart.abort",
            "os.abort",
            "pytest.fail",
            "sanic.exceptions.abort",
            "flask_restful.abort",
            "flask_restx.abort",
        ),
    }
)
_CONVERTER = re.compile(r"<(?:([^:<>]+):)?([^<>]+)>")
_TYPED = re.compile(r"\{(\w+):(int|float|uuid)\}")
_VIEW_METHODS = frozenset({"get", "post", "put", "patch", "delete", "dispatch", "head", "options"})
_OPTIONS = frozenset({"argument", "option"})
_LAMBDAS = frozenset({"handler", "lambda_handler", "main", "handle"})


@dataclass(frozen=True, slots=True)
class Role:
    """What calls a function, and so whose data its parameters are.

    `kind` is the kind of source (`web`, `message`, `local`), empty for a plain function; `html` says that its text is
    sent as a page; `clean` are parameters that are converted on the way, `skip` how many first ones the library fills.
    """

    kind: str = ""
    html: bool = False
    clean: frozenset[str] = frozenset()
    skip: int = 0

    @property
    def web(self) -> bool:
        """Whether a web framework calls it."""
        return self.kind == "web"


def role(record: Record, node: _Definition, *, owner: str = "") -> Role:
    """Decide by decorators, by the class, by where the function is handed to, and by the names of its parameters."""
    bases = ancestry(record, owner)
    return (
        _decorated(record, node)
        or _method(node, bases)
        or _registered(record, node)
        or _by_names(record, node, bases=bases)
        or Role()
    )


def ancestry(record: Record, owner: str) -> tuple[str, ...]:
    """The bases of a class and theirs, as far as the file shows."""
    found: list[str] = []
    waiting = [owner]
    while waiting and len(found) < 20:  # a class may name itself
        for base in record.bases.get(waiting.pop(), ()):
            if base not in found:
                found.append(base)
                waiting.append(base)
    return tuple(found)


def is_static(node: _Definition) -> bool:
    """Whether a method takes no instance."""
    return any(isinstance(decorator, ast.Name) and decorator.id == "staticmethod" for decorator in node.decorator_list)


def fields(record: Record, node: ast.ClassDef) -> Mapping[str, frozenset[str]]:
    """Declared fields of a class, each with the kinds for which its type makes it harmless."""
    found: dict[str, frozenset[str]] = {}
    for item in node.body:
        match item:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                found[name] = harmless(record, annotation, default=value)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=kind)):
                found[name] = harmless(record, kind, default=None)
    return found


def handed_over(record: Record) -> Mapping[str, Called]:
    """Functions of a file that it hands to a library to call, by name."""
    wanted = {name: row for name, row in REGISTERED.items() if record.imports(*row[0].packages)}
    found: dict[str, Called] = {}
    if not wanted:
        return found
    for node in nodes(record.source.tree):
        if not isinstance(node, ast.Call):
            continue
        row = wanted.get(last_name(node.func))
        if row is not None:
            found.update(dict.fromkeys(_handed(node, row[1]), row[0]))
    return found


def clean_options(record: Record) -> frozenset[str]:
    """Options of command lines and request parsers that are converted or chosen from a list."""
    if not record.imports("argparse", "flask_restful", "flask_restx", "configargparse"):
        return frozenset()
    found: set[str] = set()
    for node in nodes(record.source.tree):
        if isinstance(node, ast.Call) and last_name(node.func) == "add_argument" and _is_clean(record, node):
            found.add(_option_name(node))
    return frozenset(found)


def last_name(node: ast.expr) -> str:
    """The last name of a dotted expression."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


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


def shown_by(pattern: ast.pattern) -> frozenset[str]:
    """Kinds of sink for which a subject is harmless that matches a class pattern (`case int():`)."""
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
        return shown_by(pattern.pattern)
    if isinstance(pattern, ast.MatchClass) and isinstance(pattern.cls, ast.Name):
        return {"str": frozenset({"nosql"}), "int": NUMBER, "float": NUMBER, "bool": NUMBER}.get(
            pattern.cls.id, frozenset()
        )
    return frozenset()


def captured(pattern: ast.pattern) -> Iterator[str]:
    """Names that a pattern binds to more than a literal."""
    for node in ast.walk(pattern):
        if (isinstance(node, ast.MatchStar) and node.name) or (
            isinstance(node, ast.MatchAs) and node.name and (node.pattern is None or not literals(node.pattern))
        ):
            yield node.name
        elif isinstance(node, ast.MatchMapping) and node.rest:
            yield node.rest


def always(pattern: ast.pattern) -> bool:
    """Whether a pattern matches everything."""
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None


def _decorated(record: Record, node: _Definition) -> Role | None:
    clean: set[str] = set()
    command = False
    for decorator in node.decorator_list:
        function = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = last_name(function)
        if isinstance(decorator, ast.Call) and name in ROUTE_VERBS and record.speaks_web and _is_rule(decorator.args):
            return Role("web", _sends_pages(record, decorator), _converted(decorator.args))
        if isinstance(decorator, ast.Call) and name in _OPTIONS and record.imports("click"):
            command = True
            clean |= {_option_name(decorator)} if _is_clean(record, decorator) else set()
        if name in {"command", "callback"} and record.imports("typer"):
            return Role("local")
        row = DECORATED.get(name)
        if name == "filter" and any(argument.arg == "autoescape" for argument in node.args.args):
            continue  # told by the template whether to escape, and so does it
        if row is not None and record.imports(*row.packages):
            return Role(row.kind, html=row.packages == ("cherrypy",), skip=row.skip)
    return Role("local", clean=frozenset(clean)) if command else None


def _is_rule(args: list[ast.expr]) -> bool:
    return not args or isinstance(args[0], ast.Constant)


def _method(node: _Definition, bases: tuple[str, ...]) -> Role | None:
    for base in bases:
        for beginning, (names, kind, skip) in METHODS.items():
            if base.startswith(beginning) and any(_is_called(name, node.name) for name in names):
                return Role(kind, html=beginning == "flask.views.", skip=skip - 1)
    return None


def _is_called(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def _registered(record: Record, node: _Definition) -> Role | None:
    row = record.handed_over.get(node.name)
    if row is not None:
        html = row.packages[0] in {"flask", "quart"}
        return Role(row.kind, html=html, skip=row.skip)
    packages = REMOTE_CALLBACKS.get(node.name)
    return Role("message", skip=2) if packages and record.imports(*packages) else None


def _by_names(record: Record, node: _Definition, *, bases: tuple[str, ...]) -> Role | None:
    """Handlers that only their parameters show: Django's views, falcon's resources, functions of clouds."""
    names = [argument.arg for argument in node.args.args]
    if names[:1] == ["event"] and len(names) == 2 and (names[1] in {"context", "_context"} or node.name in _LAMBDAS):
        return Role("web")
    if names[1:3] == ["req", "resp"] and node.name.startswith("on_") and record.imports("falcon"):
        return Role("web")
    if names == ["self", "request", "context"] and any(base.endswith("Servicer") for base in bases):
        return Role("web")
    return Role("web") if _is_view(record, node, names=names, bases=bases) else None


def _is_view(record: Record, node: _Definition, *, names: list[str], bases: tuple[str, ...]) -> bool:
    if not record.imports("django", "rest_framework", "ninja"):
        return False
    if names[:1] == ["self"]:
        return names[1:2] == ["request"] and (node.name in _VIEW_METHODS or is_web_view(bases))
    return names[:1] == ["request"] and not node.name.startswith("_") and (len(names) == 1 or _answers(node))


def _answers(node: _Definition) -> bool:
    """Whether a function gives an answer of the web; many that are handed a request only help."""
    if node.decorator_list:
        return True
    given = (
        step.value.func for step in ast.walk(node) if isinstance(step, ast.Return) and isinstance(step.value, ast.Call)
    )
    return any(re.search(r"Response|render|redirect|Redirect", last_name(function)) for function in given)


def _handed(node: ast.Call, places: tuple[int | str, ...]) -> Iterator[str]:
    given = [node.args[at] for at in places if isinstance(at, int) and at < len(node.args)]
    given += [keyword.value for keyword in node.keywords if keyword.arg in places]
    for argument in given:
        if name := last_name(argument):
            yield name


def _is_clean(record: Record, node: ast.Call) -> bool:
    """`type=int`, `choices=[…]`, `is_flag=True`, `action="store_true"`."""
    for keyword in node.keywords:
        value = keyword.value
        shown = value.func if isinstance(value, ast.Call) else value
        if keyword.arg in {"choices", "is_flag", "count"}:
            return True
        if keyword.arg == "action" and isinstance(value, ast.Constant) and str(value.value).startswith("store_"):
            return True
        if keyword.arg == "type" and is_clean_option(record.dotted(shown)):
            return True
    return False


def _option_name(node: ast.Call) -> str:
    given = [str(arg.value) for arg in node.args if isinstance(arg, ast.Constant)]
    named = [keyword.value for keyword in node.keywords if keyword.arg == "dest"]
    if named and isinstance(named[0], ast.Constant):
        return str(named[0].value)
    plain = [name for name in given if not name.startswith("-")]
    return (plain or sorted(given, key=len, reverse=True) or [""])[0].lstrip("-").replace("-", "_")


def _sends_pages(record: Record, decorator: ast.Call) -> bool:
    for keyword in decorator.keywords:
        if keyword.arg == "response_class":
            return "HTML" in ast.unparse(keyword.value)
    return record.imports("flask", "quart", "bottle", "cherrypy", "apiflask") or not record.imports(*FRAMEWORKS)


def _converted(args: list[ast.expr]) -> frozenset[str]:
    if not args or not isinstance(args[0], ast.Constant) or not isinstance(args[0].value, str):
        return frozenset()
    rule = args[0].value
    clean = {name for converter, name in _CONVERTER.findall(rule) if converter.partition("(")[0] in CLEAN_CONVERTERS}
    return frozenset(clean | {name for name, _ in _TYPED.findall(rule)})
