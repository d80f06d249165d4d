"""Which origins can hold untrusted data at all, and what a call of unknown code gives. Pure.

A search from a sink only looks at origins to which some source leads, so that its cost is that of real flows.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping

from casemate.agents.audit.facts.origins import (
    CLEAN,
    Attribute,
    Lost,
    Origin,
    Parameter,
    Path,
    Result,
    Source,
    Taints,
    merge,
)
from casemate.agents.audit.facts.summary import Call, Function
from casemate.agents.audit.facts.values import NOTHING, Value
from casemate.agents.audit.linking.project import Project, argument
from casemate.agents.audit.vocabulary.lexicon import SOURCE_KINDS

_KEYED = frozenset({"get", "pop", "setdefault", "__getitem__"})


def bare(origin: Origin) -> Origin:
    """An origin without the members that were taken of it."""
    match origin:
        case Parameter(function=function, name=name, path=path) if path:
            return Parameter(function, name)
        case Result(call=call, path=path) if path:
            return Result(call)
        case Attribute(owner=owner, name=name, path=path) if path:
            return Attribute(owner, name)
        case _:
            return origin


def living(project: Project) -> Mapping[str, frozenset[Origin]]:
    """For each kind of sink, every origin (bare) to which a source that matters there leads, or one that was lost."""
    fed, ends = _backwards(project)
    alive = {
        kind: _forwards(fed, [end for end in ends if isinstance(end, Lost) or end.kind == kind])
        for kind in SOURCE_KINDS
    }
    return {
        sink: frozenset[Origin]().union(*(alive[kind] for kind, sinks in SOURCE_KINDS.items() if sink in sinks))
        for sink in frozenset[str]().union(*SOURCE_KINDS.values())
    }


def _backwards(project: Project) -> tuple[Mapping[Origin, list[Origin]], list[Source | Lost]]:
    """All that leads to any sink: what each origin feeds, and where it all begins."""
    fed: Mapping[Origin, list[Origin]] = defaultdict(list)
    ends: list[Source | Lost] = []
    seen: set[Origin] = set()
    waiting: deque[Origin] = deque(bare(o) for m in project.modules for hit in m.hits for o in hit.taints)
    while waiting:
        origin = waiting.popleft()
        if origin in seen:
            continue
        seen.add(origin)
        if isinstance(origin, Source | Lost):
            ends.append(origin)
            continue
        for taints in _feeding(project, origin):
            for inner in taints:
                fed[bare(inner)].append(origin)
                waiting.append(bare(inner))
    return fed, ends


def _forwards(fed: Mapping[Origin, list[Origin]], ends: list[Source | Lost]) -> frozenset[Origin]:
    alive: set[Origin] = {*ends}
    fresh: deque[Origin] = deque(alive)
    while fresh:
        for origin in fed.get(fresh.popleft(), ()):
            if origin not in alive:
                alive.add(origin)
                fresh.append(origin)
    return frozenset(alive)


def unknown_result(project: Project, call: Call) -> Taints:
    """What unknown code gives back: all that it is given; a look-up in a container of the project, no key."""
    owner, _, method = call.name.rpartition(".")
    if method in _KEYED and project.names.is_container(owner):
        holder, _, name = owner.rpartition(".")
        rest = (value.everything() for at, value in call.arguments.items() if at != "0")
        return merge(project.names.written(holder, name).everything(), *rest)
    return merge(call.receiver.everything(), *(value.everything() for value in call.arguments.values()))


def changed(function: Function, at: str, *, path: Path) -> Value:
    """What a function puts into the argument at a position or under a keyword, members taken."""
    name = at
    if at.isdigit():
        position = int(at) + (1 if function.method else 0)
        name = function.parameters[position] if position < len(function.parameters) else ""
    return function.changes.get(name, NOTHING).at(path)


def _feeding(project: Project, origin: Origin) -> Iterator[Taints]:
    match origin:
        case Parameter(function=name):
            function = project.names.functions.get(name)
            for call in project.callers.get(name, {}).values() if function is not None else ():
                yield argument(call, function, parameter=origin).everything() if function is not None else CLEAN
        case Attribute():
            yield project.written(origin).everything()
        case Result(call=key):
            targets = project.targets.get(key, ())
            for target in targets:
                yield from _of_function(project, target)
            if not targets:
                yield unknown_result(project, project.calls[key])


def _of_function(project: Project, target: Function) -> Iterator[Taints]:
    yield target.returns.everything()
    for value in (*target.changes.values(), *target.instance.values()):
        yield value.everything()
    if target.name.endswith(".__init__"):
        yield from project.names.everything_of(target.name.removesuffix(".__init__"))
