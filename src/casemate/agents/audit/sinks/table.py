"""How tables of sinks are written: one row for each name, several sinks under one name, values taken out of a call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from casemate.agents.audit.facts.sink import Condition, Invocation, Reach, Sink
from casemate.agents.audit.facts.values import NOTHING, Attribute, Result, Value, gather

Table = Mapping[str, tuple[Sink, ...]]


def always(call: Invocation) -> bool:
    """The condition of a sink that is one whatever it is told."""
    del call
    return True


def rows(sink: Sink, *names: str) -> Table:
    """The same sink under each name; a text may hold several names apart by spaces."""
    return {name: (sink,) for text in names for name in text.split()}


def sink(of: tuple[str, str], *arguments: int | str, when: Condition = always, reach: Reach | None = None) -> Sink:
    """A sink of a rule and a kind, with the arguments that matter, or a function that finds them."""
    rule, kind = of
    return Sink(rule, kind, arguments or (0,), when, reach=reach)


def joined(tables: Iterable[Table]) -> Table:
    """One table of several; a name that stands in more than one keeps all of its sinks."""
    result: dict[str, tuple[Sink, ...]] = {}
    for table in tables:
        for name, sinks in table.items():
            result[name] = (*result.get(name, ()), *sinks)
    return result


def members(value: Value) -> list[Value]:
    """The members of a list or tuple in order; none where they are not known one by one."""
    items = value.items
    return list(items.values()) if items and all(isinstance(key, int) for key in items) else []


def first_member(value: Value) -> Value:
    """The first member of an address such as `(host, port)`; the whole where its members are not known."""
    found = members(value)
    return found[0] if found else value


def all_of(values: Iterable[Value]) -> Value:
    """Several values as one, which remembers whether any was built from pieces."""
    found = tuple(values)
    marks = frozenset[str]().union(*(value.marks for value in found))
    return gather(*found).marked(*(marks & {"built"}))


def built_only(value: Value) -> Value:
    """A value that counts only as a piece of something longer; what a function gave may be one."""
    given = any(isinstance(origin, Result | Attribute) for origin in value.taints)
    return value if given or "built" in value.marks else NOTHING
