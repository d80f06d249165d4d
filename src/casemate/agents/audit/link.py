"""Joins the summaries of a project: from each sink back to the places where untrusted data enters.

Calls are followed with their own arguments (what one caller passes does not leak into another's result). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from casemate.agents.audit.lexicon import BUILT_ONLY, SOURCE_KINDS
from casemate.agents.audit.summary import Call, Function, Hit, Module
from casemate.agents.audit.values import EVERYTHING, Attribute, Origin, Parameter, Result, Source, Taints
from casemate.finding import FlowStep

_MAX_DEPTH = 12
_MAX_VISITS = 4000


@dataclass(frozen=True, slots=True)
class Flow:
    """How one source reaches a sink, in order; `cleared` are kinds of sink for which it is harmless."""

    source: Source
    cleared: frozenset[str]
    steps: tuple[FlowStep, ...]


@dataclass(frozen=True, slots=True)
class Reached:
    """A hit that is real: it needs no source (`flow` is None), or one reaches it."""

    hit: Hit
    flow: Flow | None = None


def link(modules: Iterable[Module]) -> Iterator[Reached]:
    """The hits of all modules that stand, in the order of modules and places."""
    project = _Project.of(tuple(modules))
    for module in project.modules:
        for hit in module.hits:
            if not hit.kind:
                yield Reached(hit)
                continue
            flow = _Search(project, hit).best()
            if flow is not None:
                yield Reached(hit, flow)


@dataclass(slots=True)
class _Project:
    """Indices over all summaries."""

    modules: tuple[Module, ...]
    functions: dict[str, Function] = field(default_factory=dict)
    methods: dict[str, list[Function]] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)
    targets: dict[str, Function | None] = field(default_factory=dict)
    callers: dict[str, list[Call]] = field(default_factory=dict)
    stored: dict[tuple[str, str], Taints] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    bases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    suffixes: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, modules: tuple[Module, ...]) -> _Project:
        project = cls(modules)
        for module in modules:
            project.functions.update(module.functions)
            project.calls.update(module.calls)
            project.stored.update(module.stored)
            project.aliases.update(module.aliases)
            project.bases.update(module.bases)
            parts = module.name.split(".")
            for start in range(1, len(parts)):
                project.suffixes.setdefault(".".join(parts[start:]), set()).add(module.name)
        for function in project.functions.values():
            if function.method:
                project.methods.setdefault(function.name.rpartition(".")[2], []).append(function)
        for key, call in project.calls.items():
            target = project.resolve(call.name)
            project.targets[key] = target
            if target is not None:
                project.callers.setdefault(target.name, []).append(call)
        return project

    def resolve(self, name: str, depth: int = 0) -> Function | None:
        """The function that an access path leads to: a function, a constructor, a method of what a call gives."""
        if depth > _MAX_DEPTH or not name:
            return None
        if name.startswith("."):
            candidates = self.methods.get(name[1:], [])
            return candidates[0] if len(candidates) == 1 else None
        found = self.functions.get(name)
        if found is not None:
            return found
        if name in self.bases:
            return self._method(name, "__init__")
        owner, _, last = name.rpartition(".")
        if owner.endswith("()"):
            return self._member_of_result(owner[:-2], last, depth=depth)
        return self._renamed(name, depth)

    def _member_of_result(self, made_by: str, method: str, *, depth: int) -> Function | None:
        made_by = self._class_name(made_by)
        if made_by in self.bases:
            return self._method(made_by, method)
        maker = self.resolve(made_by, depth + 1)
        if maker is not None and maker.returned.endswith("()"):
            return self.resolve(f"{maker.returned}.{method}", depth + 1)
        return None

    def _class_name(self, name: str) -> str:
        for _ in range(_MAX_DEPTH):
            if name in self.bases:
                return name
            renamed = self._rename(name)
            if renamed is None:
                return name
            name = renamed
        return name

    def _renamed(self, name: str, depth: int) -> Function | None:
        renamed = self._rename(name)
        return self.resolve(renamed, depth + 1) if renamed is not None else None

    def _rename(self, name: str) -> str | None:
        """One step nearer: an alias of a prefix, or a module known under a longer name."""
        parts = name.split(".")
        for end in range(len(parts), 0, -1):
            prefix, rest = ".".join(parts[:end]), parts[end:]
            alias = self.aliases.get(prefix)
            if alias is not None and alias != prefix and not alias.startswith(f"{prefix}."):
                return ".".join([alias, *rest])
            longer = self.suffixes.get(prefix)
            if longer is not None and len(longer) == 1:
                return ".".join([*longer, *rest])
        return None

    def _method(self, owner: str, method: str, *, depth: int = 0) -> Function | None:
        found = self.functions.get(f"{owner}.{method}")
        if found is not None or depth > _MAX_DEPTH:
            return found
        for base in self.bases.get(owner, ()):
            found = self._method(self._class_name(base), method, depth=depth + 1)
            if found is not None:
                return found
        return None

    def written(self, attribute: Attribute) -> Taints:
        """What any method stores under an attribute, in the class or a base of it."""
        found = self.stored.get((attribute.owner, attribute.name))
        if found is not None:
            return found
        for base in self.bases.get(attribute.owner, ()):
            found = self.stored.get((self._class_name(base), attribute.name))
            if found is not None:
                return found
        return {}


def argument(call: Call, function: Function, *, parameter: str) -> Taints:
    """What a call passes for a parameter."""
    if parameter in call.arguments:
        return call.arguments[parameter]
    if parameter not in function.parameters:
        return call.arguments.get("**", {})
    position = function.parameters.index(parameter) - (1 if function.method else 0)
    return call.arguments.get(str(position), {})


@dataclass(frozen=True, slots=True)
class _Way:
    """How a search came here: through which calls, past which cleanings, over which origins."""

    stack: tuple[Call, ...] = ()
    cleared: frozenset[str] = frozenset()
    seen: tuple[Origin, ...] = ()


class _Search:
    """One walk from a sink back to sources."""

    def __init__(self, project: _Project, hit: Hit) -> None:
        self._project = project
        self._hit = hit
        self._visits = 0

    def best(self) -> Flow | None:
        """The most telling flow that harms: from the web first, then the shortest."""
        sink = FlowStep(self._hit.location, "sink")
        flows = [
            Flow(flow.source, flow.cleared, (flow.source.step, *flow.steps, sink))
            for flow in self._from(self._hit.taints, _Way())
            if self._harms(flow)
        ]
        order = ("web", "parameter", "remote", "local")
        return min(
            flows, key=lambda f: (order.index(f.source.kind), len(f.steps), f.source.step.location.line), default=None
        )

    def _harms(self, flow: Flow) -> bool:
        kind = self._hit.kind
        if flow.cleared & {kind, EVERYTHING} or kind not in SOURCE_KINDS[flow.source.kind]:
            return False
        return not (flow.source.kind == "parameter" and kind in BUILT_ONLY and not self._hit.built)

    def _from(self, taints: Taints, way: _Way) -> Iterator[Flow]:
        for origin, own in taints.items():
            self._visits += 1
            if self._visits > _MAX_VISITS:
                return
            kinds = way.cleared | self._expanded(own)
            again = origin in way.seen and not isinstance(origin, Parameter)
            if kinds & {self._hit.kind, EVERYTHING} or again or len(way.seen) > _MAX_DEPTH:
                continue
            yield from self._of(origin, _Way(way.stack, kinds, (*way.seen, origin)))

    def _of(self, origin: Origin, way: _Way) -> Iterator[Flow]:
        project = self._project
        match origin:
            case Source():
                yield Flow(origin, way.cleared, ())
            case Parameter():
                yield from self._of_parameter(origin, way)
            case Attribute():
                yield from self._from(project.written(origin), replace(way, stack=()))
            case Result(call=key):
                call, target = project.calls[key], project.targets[key]
                if target is not None:
                    inside = replace(way, stack=(*way.stack, call))
                    yield from _stepped(self._from(target.returns, inside), call)
                else:
                    for taints in (*call.arguments.values(), call.receiver):
                        yield from self._from(taints, way)

    def _of_parameter(self, origin: Parameter, way: _Way) -> Iterator[Flow]:
        """From the very call that we came through; else from every caller."""
        function = self._project.functions.get(origin.function)
        if function is None:
            return
        if way.stack:
            taints = argument(way.stack[-1], function, parameter=origin.name)
            yield from self._from(taints, replace(way, stack=way.stack[:-1]))
        elif way.seen.count(origin) == 1:
            for call in self._project.callers.get(function.name, ()):
                yield from _stepped(self._from(argument(call, function, parameter=origin.name), way), call)

    def _expanded(self, cleared: frozenset[str]) -> frozenset[str]:
        """Kinds, with tokens of guards replaced by what those functions show."""
        tokens = [kind for kind in cleared if ":" in kind]
        if not tokens:
            return cleared
        kinds = set(cleared) - set(tokens)
        for token in tokens:
            what, _, rest = token.partition(":")
            name, _, position = rest.rpartition(":")
            function = self._project.resolve(name)
            if function is None:
                continue
            index = int(position) + (1 if function.method else 0)
            if index < len(function.parameters):
                shown: Mapping[str, frozenset[str]] = function.guards if what == "guard" else function.ensures
                kinds |= {kind for kind in shown.get(function.parameters[index], frozenset()) if ":" not in kind}
        return frozenset(kinds)


def _stepped(flows: Iterator[Flow], call: Call) -> Iterator[Flow]:
    step = FlowStep(call.location, f"call of {call.name.removesuffix('()').rpartition('.')[2]}")
    for flow in flows:
        yield Flow(flow.source, flow.cleared, (*flow.steps, step))
