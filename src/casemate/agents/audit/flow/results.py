"""What calls of the language and of its library give: constants, filled templates, matches, classes that are made."""

from __future__ import annotations

import ast

from casemate.agents.audit.checks.patterns import harmless_kinds
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.summary import constructor
from casemate.agents.audit.facts.values import NOTHING, UNKNOWN, Value, gather, join
from casemate.agents.audit.flow.binding import bind
from casemate.agents.audit.flow.folding import called, constant
from casemate.agents.audit.flow.sequences import built
from casemate.agents.audit.flow.strings import MARKUP, filled

_MATCHES = frozenset({"match", "fullmatch", "search", "findall", "finditer"})


def _by_name(here: Point, invocation: Invocation, *, name: str) -> Value | None:
    """`setattr(x, "name", value)` and `getattr(x, "name", default)` with a constant name."""
    if not name.isidentifier() or not invocation.node.args:
        return None
    node = ast.copy_location(ast.Attribute(invocation.node.args[0], name, ast.Load()), invocation.node)
    if invocation.name == "setattr":
        bind(here, node, value=invocation.argument(2))
        return NOTHING
    found = here.value(node)
    return join(found, invocation.args[2]) if len(invocation.args) > 2 else found


def made(here: Point, invocation: Invocation) -> Value | None:
    """`namedtuple("Pair", "a b")` makes a class; a member of an enumeration is one of a fixed set."""
    record, frame = here.record, here.scope.frame
    if invocation.name == "super" and frame.owner:
        return Value(name=f"{frame.owner}.<super>")
    if invocation.name in {"setattr", "getattr"} and isinstance(invocation.argument(1).constant, str):
        return _by_name(here, invocation, name=str(invocation.argument(1).constant))
    if invocation.name in {"collections.namedtuple", "dataclasses.make_dataclass"} and len(invocation.args) > 1:
        title, fields = invocation.args[0].constant, invocation.args[1]
        named = fields.constant.replace(",", " ").split() if isinstance(fields.constant, str) else constant(fields)
        if not isinstance(title, str) or not isinstance(named, list):
            return None
        name = f"{frame.name}.{title}"
        record.bases.setdefault(name, ())
        record.functions[f"{name}.__init__"] = constructor(name, tuple(str(field) for field in named))
        return Value(name=name)
    if any(base.startswith("enum.") for base in record.bases.get(invocation.name, ())):
        return invocation.function.take(UNKNOWN)
    return None


def built_in(here: Point, invocation: Invocation) -> Value | None:
    """Constants that fold, and functions over containers."""
    del here
    return called(invocation) or built(invocation)


def formatted(here: Point, invocation: Invocation) -> Value | None:
    """`template.format(…)`, `template.format_map(…)`: only the fields that the template names come out."""
    del here
    node, template = invocation.node.func, invocation.receiver
    if not isinstance(node, ast.Attribute) or node.attr not in {"format", "format_map"}:
        return None
    given = invocation.keywords if node.attr == "format" else invocation.argument(0).items or {}
    args = invocation.args if node.attr == "format" else ()
    spread = any(isinstance(arg, ast.Starred) for arg in invocation.node.args) or "**" in given
    if isinstance(template.constant, str) and not spread and (node.attr == "format" or given):
        return filled(template.constant, args, named={str(key): value for key, value in given.items()})
    made = gather(template, *invocation.args, *invocation.keywords.values()).marked("built")
    return made.clear({"html"}) if template.name in MARKUP else made


def matched(here: Point, invocation: Invocation) -> Value | None:
    """What a pattern matched holds no more than the pattern lets through."""
    del here
    name = invocation.name
    compiled = name.startswith("re.compile().")
    method = name.rpartition(".")[2]
    if not (compiled or name.startswith("re.")) or method not in _MATCHES:
        return None
    pattern = (invocation.receiver if compiled else invocation.argument(0, "pattern")).constant
    args = invocation.args if compiled else invocation.args[1:]
    if not isinstance(pattern, str) or not args:
        return None
    kinds = harmless_kinds(pattern, whole=True)
    found = args[0].clear(kinds)
    return Value(taints=found.everything(), name=f"{name}()")
