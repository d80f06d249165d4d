"""Joins the summaries of a project: from each sink back to the places where untrusted data enters.

Calls are followed with their own arguments (what one caller passes does not leak into another's result). A search
that is given up says so. Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from casemate.agents.audit.facts.origins import (
    CHANGED,
    Attribute,
    Lost,
    Origin,
    Parameter,
    Path,
    Result,
    Source,
    Taints,
)
from casemate.agents.audit.facts.summary import Call, Function, Hit, Module
from casemate.agents.audit.linking.project import Project, argument, of_result
from casemate.agents.audit.linking.reach import bare, changed, living, unknown_result
from casemate.agents.audit.linking.tokens import Tokens
from casemate.agents.audit.vocabulary.lexicon import BUILT_ONLY, EVERYTHING, SOURCE_KINDS
from casemate.finding import FlowStep, Unread

_SHOWN_CALLS = 1000
"""Of the calls that a flow passes; there may be more of them than atoms in the world."""
_LONGEST_LINE = 240
"""Characters of a line that a step shows."""
_MAX_VISITS = 50_000
"""Origins that the search from one sink may look at."""


@dataclass(frozen=True, slots=True)
class Flow:
    """How one source reaches a sink, in order."""

    source: Source
    steps: tuple[FlowStep, ...]


@dataclass(frozen=True, slots=True)
class Reached:
    """A hit that is real: it needs no source (`flow` is None), or one reaches it."""

    hit: Hit
    flow: Flow | None = None


def link(modules: Iterable[Module]) -> Iterator[Reached | Unread]:
    """The hits of all modules that stand, in the order of modules and places.

    A file is Unread, once for each such sink, where the search from a sink was cut before it found a source.
    """
    project = Project.of(tuple(modules))
    tokens = Tokens(project.names)
    alive = living(project)
    for module in project.modules:
        for hit in module.hits:
            if not hit.kind:
                yield Reached(hit)
                continue
            match _Search(project, hit, tokens=tokens, alive=alive.get(hit.kind, frozenset())).best():
                case Flow() as flow:
                    yield Reached(hit, flow)
                case str(reason):
                    yield Unread(module.path, reason)


@dataclass(frozen=True, slots=True)
class _Trail:
    """Calls that a flow passes, as a tree, so that ways through a function are shared and not copied."""

    before: _Trail | None
    call: Call
    after: _Trail | None
    length: int

    def calls(self) -> Iterator[Call]:
        """From the source on."""
        waiting: list[_Trail | Call | None] = [self]
        while waiting:
            match waiting.pop():
                case _Trail() as trail:
                    waiting += (trail.after, trail.call, trail.before)
                case Call() as call:
                    yield call


def _join(before: _Trail | None, after: _Trail | None, *, call: Call) -> _Trail:
    return _Trail(before, call, after, 1 + (before.length if before else 0) + (after.length if after else 0))


@dataclass(slots=True, eq=False)
class _Inside:
    """A function seen from its result: the calls that led in, and the parameters that the result may hold."""

    arrivals: list[tuple[Call, _Place]] = field(default_factory=list)
    exits: list[tuple[Parameter, _Trail | None]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a search stands: its trail leads to the sink or, inside a function, to that function's result."""

    inside: _Inside | None = None
    trail: _Trail | None = None

    def whole(self) -> _Trail | None:
        """The trail to the sink, out of each function by the call that first led in."""
        place = self
        while place.inside is not None:
            call, outer = place.inside.arrivals[0]
            place = _Place(outer.inside, _join(place.trail, outer.trail, call=call))
        return place.trail


class _Search:
    """One walk from a sink back to sources, nearest first.

    What the result of a function may hold is worked out once for all its calls, so the walk is linear in what it
    reaches, however calls nest (tabulation: Reps, Horwitz, Sagiv, POPL 1995).
    """

    def __init__(self, project: Project, hit: Hit, *, tokens: Tokens, alive: frozenset[Origin]) -> None:
        self._project = project
        self._hit = hit
        self._tokens = tokens
        self._alive = alive
        self._lost = False
        self._visits = 0
        self._queue: deque[tuple[Origin, _Place]] = deque()
        self._known: set[tuple[Origin, _Inside | None]] = set()
        self._insides: dict[tuple[str, Path], _Inside] = {}

    def best(self) -> Flow | str | None:
        """The most telling flow that harms: from the web first, then the shortest; else why the search was cut."""
        found = [(source, place.whole()) for source, place in self._sources() if self._harms(source)]
        if not found:
            cut = f"flow search cut after {_MAX_VISITS} steps, findings may be missing"
            if self._visits > _MAX_VISITS:
                return cut
            return "a value has too many origins, findings may be missing" if self._lost else None
        order = ("web", "parameter", "message", "remote", "local", "archive")
        source, trail = min(
            found, key=lambda f: (order.index(f[0].kind), f[1].length if f[1] else 0, f[0].step.location.line)
        )
        return Flow(source, (source.step, *_steps(trail), _sink(self._hit)))

    def _harms(self, source: Source) -> bool:
        kind = self._hit.kind
        if kind not in SOURCE_KINDS[source.kind]:
            return False
        return not (source.kind == "parameter" and kind in BUILT_ONLY and not self._hit.built)

    def _sources(self) -> Iterator[tuple[Source, _Place]]:
        self._add(self._hit.taints, _Place())
        while self._queue and self._visits <= _MAX_VISITS:
            origin, place = self._queue.popleft()
            match origin:
                case Source():
                    yield origin, place
                case Parameter():
                    self._leave(origin, place)
                case Attribute(path=path):
                    self._add(self._project.written(origin).at(path).everything(), _Place(None, place.whole()))
                case Result(call=key, path=path):
                    self._enter(key, path, place=place)
                case Lost():
                    self._lost = True

    def _add(self, taints: Taints, place: _Place) -> None:
        for origin, cleared in taints.items():
            if bare(origin) not in self._alive:
                continue
            self._visits += 1
            # Equal sources may stand at several places, so each is looked at.
            new = isinstance(origin, Source) or (origin, place.inside) not in self._known
            if new and not self._tokens.expanded(cleared) & {self._hit.kind, EVERYTHING}:
                self._known.add((origin, place.inside))
                self._queue.append((origin, place))

    def _enter(self, key: str, path: Path, *, place: _Place) -> None:
        """From the result of a call to what its function returns; of an unknown function, to all that it is given."""
        call, targets = self._project.calls[key], self._project.targets[key]
        if path and path[0] == CHANGED:
            for target in targets:
                self._go_in(
                    target,
                    path,
                    arrival=(call, place),
                    taints=changed(target, str(path[1]), path=path[2:]).everything(),
                )
            return
        for target in targets:
            given = of_result(self._project.names, target, path=path)
            self._go_in(target, path, arrival=(call, place), taints=given.everything())
        if not targets:
            self._add(unknown_result(self._project, call), place)

    def _go_in(self, target: Function, path: Path, *, arrival: tuple[Call, _Place], taints: Taints) -> None:
        inside = self._insides.setdefault((target.name, path), _Inside())
        inside.arrivals.append(arrival)
        if len(inside.arrivals) == 1:
            self._add(taints, _Place(inside))
        for parameter, trail in inside.exits:
            self._pass(parameter, arrival, trail=trail)

    def _leave(self, parameter: Parameter, place: _Place) -> None:
        """From a parameter to what the very calls pass that led in; else to what every caller passes."""
        if place.inside is not None:
            place.inside.exits.append((parameter, place.trail))
            for arrival in place.inside.arrivals:
                self._pass(parameter, arrival, trail=place.trail)
            return
        for call in self._project.callers.get(parameter.function, {}).values():
            self._pass(parameter, (call, place), trail=None)

    def _pass(self, parameter: Parameter, arrival: tuple[Call, _Place], *, trail: _Trail | None) -> None:
        call, place = arrival
        function = self._project.names.functions.get(parameter.function)
        if function is not None:
            passed = argument(call, function, parameter=parameter).everything()
            self._add(passed, _Place(place.inside, _join(trail, place.trail, call=call)))


def _sink(hit: Hit) -> FlowStep:
    return FlowStep(hit.location, "sink", hit.evidence.partition("\n")[0].strip()[:_LONGEST_LINE])


def _steps(trail: _Trail | None) -> Iterator[FlowStep]:
    if trail is None:
        return
    calls = trail.calls()
    for call in islice(calls, _SHOWN_CALLS):
        yield FlowStep(call.location, f"call of {call.name.removesuffix('()').rpartition('.')[2]}", call.text)
    for call in islice(calls, 1):
        yield FlowStep(call.location, "further calls, not shown")
