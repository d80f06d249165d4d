"""The summaries of a project as one: who calls a function, what an attribute holds, what a call passes. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from casemate.agents.audit.facts.origins import ELEMENT, Attribute, Origin, Parameter, Path, Result
from casemate.agents.audit.facts.summary import Call, Function, Module
from casemate.agents.audit.facts.values import NOTHING, Value, join
from casemate.agents.audit.linking.names import Names
from casemate.agents.audit.linking.nearest import settled

_ROUNDS = 4
"""How often calls of values are looked at again, as each new target may bring new callers."""
_HOPS = 6
"""Functions and attributes through which a called value is followed."""


@dataclass(slots=True)
class Project:
    """Indices over all summaries: `targets` is what each call leads to, `callers` who calls each function."""

    modules: tuple[Module, ...]
    names: Names
    calls: dict[str, Call] = field(default_factory=dict)
    targets: dict[str, tuple[Function, ...]] = field(default_factory=dict)
    callers: dict[str, dict[str, Call]] = field(default_factory=dict)

    @classmethod
    def of(cls, modules: tuple[Module, ...]) -> Project:
        """Index summaries."""
        modules = settled(modules)
        project = cls(modules, Names.of(modules))
        for module in modules:
            project.calls.update(module.calls)
        open_calls: list[str] = []
        for key, call in project.calls.items():
            named = call.name and not call.name.startswith(".")
            project._lead(key, project.names.resolve(call.name) if named else ())
            if not project.targets[key] and call.receiver is not NOTHING:
                open_calls.append(key)
        for _ in range(_ROUNDS):
            open_calls = [key for key in open_calls if not project._lead_by_value(key)]
        for key, call in project.calls.items():
            if not project.targets[key] and call.name.startswith("."):
                project._lead(key, project.names.methods_named(call.name[1:], given=len(call.arguments)))
        return project

    def written(self, attribute: Attribute) -> Value:
        """What any method stores under an attribute, in the class, a base of it or a module; what computes it."""
        return self.names.written(attribute.owner, attribute.name)

    def passed(self, parameter: Parameter) -> Iterator[tuple[Call, Value]]:
        """What every caller passes for a parameter, members taken."""
        function = self.names.functions.get(parameter.function)
        if function is None:
            return
        for call in self.callers.get(parameter.function, {}).values():
            yield call, argument(call, function, parameter=parameter)

    def _lead(self, key: str, targets: tuple[Function, ...]) -> None:
        self.targets[key] = targets
        for target in targets:
            self.callers.setdefault(target.name, {})[key] = self.calls[key]

    def _lead_by_value(self, key: str) -> bool:
        """Follow a called value, or the owner of a called method, to the names that it may stand for."""
        call = self.calls[key]
        targets: dict[str, Function] = {}
        for name in self._stands_for(call.receiver, set(), hops=_HOPS):
            method = call.name[call.name.rfind(".") :] if "." in call.name else ""
            for target in self.names.resolve(name + method):
                targets[target.name] = target
        self._lead(key, tuple(targets.values()))
        return bool(targets)

    def _stands_for(self, value: Value, seen: set[Origin], *, hops: int) -> Iterator[str]:
        yield from value.names()
        for origin in value.taints:
            if origin in seen or not hops:
                continue
            seen.add(origin)
            for inner in self._behind(origin):
                yield from self._stands_for(inner, seen, hops=hops - 1)

    def _behind(self, origin: Origin) -> Iterator[Value]:
        match origin:
            case Parameter():
                for _, value in self.passed(origin):
                    yield value
            case Attribute(path=path):
                yield self.written(origin).at(path)
            case Result(call=key, path=path):
                for target in self.targets.get(key, ()):
                    yield of_result(self.names, target, path=path)


def of_result(names: Names, function: Function, *, path: Path) -> Value:
    """What calling a function gives, members taken; calling a class gives an instance."""
    if not function.name.endswith(".__init__"):
        return function.returns.at(path)
    owner = function.name.removesuffix(".__init__")
    return names.member_of(owner, path)


def argument(call: Call, function: Function, *, parameter: Parameter) -> Value:
    """What a call passes for a parameter, members taken."""
    name, path = parameter.name, parameter.path
    shift = 1 if function.method else 0
    if name == function.variadic:
        return _variadic(call, len(function.parameters) - shift, path=path)
    if name == function.keywords:
        return _keywords(call, function, path=path)
    if name in call.arguments:
        return call.arguments[name].at(path)
    if name not in function.parameters:
        return NOTHING
    position = function.parameters.index(name) - shift
    if position < 0:
        return call.receiver.at(path) if call.name.startswith(".") else NOTHING
    found = call.arguments.get(str(position))
    if found is None:
        found = _spread(call, position)
    named = call.arguments.get("**")
    if named is not None:
        found = join(found, named.take(name)) if found is not NOTHING else named.take(name)
    return found.at(path)


def _spread(call: Call, position: int) -> Value:
    """What `*items` puts at a position."""
    found = NOTHING
    for at, value in call.arguments.items():
        if at.startswith("*") and at[1:].isdigit() and int(at[1:]) <= position:
            found = join(found, value.take(position - int(at[1:])))
    return found


def _variadic(call: Call, start: int, *, path: Path) -> Value:
    """`*args`: by position where that is known, else all that is left."""
    if path and isinstance(path[0], int) and path[0] >= 0:
        position = start + path[0]
        given = call.arguments.get(str(position))
        return (given if given is not None else _spread(call, position)).at(path[1:])
    found = NOTHING
    for at, value in call.arguments.items():
        if at.isdigit() and int(at) >= start:
            found = join(found, value)
        elif at.startswith("*") and at[1:].isdigit():
            found = join(found, value.element())
    return found.at(path[1:] if path and path[0] == ELEMENT else path)


def _keywords(call: Call, function: Function, *, path: Path) -> Value:
    spread = call.arguments.get("**", NOTHING)
    if path and isinstance(path[0], str) and path[0] in call.arguments:
        return call.arguments[path[0]].at(path[1:])
    if path and isinstance(path[0], str) and path[0].isidentifier():
        return spread.at(path)
    found = Value(taints=spread.everything())
    for at, value in call.arguments.items():
        if at.isidentifier() and at not in function.parameters:
            found = join(found, Value(taints=value.everything()))
    return found
