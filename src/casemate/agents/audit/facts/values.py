"""What the analysis knows of a value: where it may come from, what it may be, what it holds. Pure values.

A value carries *taints*: for each origin that may have fed it, what has been neutralised on the way. An origin inside
one file is symbolic (a parameter, the result of a call, an attribute); `link` resolves it over the whole project.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from casemate.finding import FlowStep

_MAX_ORIGINS = 24
_MAX_ITEMS = 64


class Unknown:
    """The constant that is not known."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __reduce__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()


@dataclass(frozen=True, slots=True)
class Source:
    """Untrusted data enters here. `kind` is `web`, `local`, `remote` or `parameter`; `key` names what is read."""

    key: str
    kind: str
    step: FlowStep = field(compare=False)


@dataclass(frozen=True, slots=True)
class Parameter:
    """Whatever callers pass; `function` is its dotted name in the project."""

    function: str
    name: str


@dataclass(frozen=True, slots=True)
class Result:
    """Whatever a call gives back; `call` is its key in the module's summary."""

    call: str


@dataclass(frozen=True, slots=True)
class Attribute:
    """Whatever is stored under this name in a class or module, by any method."""

    owner: str
    name: str


Origin = Source | Parameter | Result | Attribute


Taints = Mapping[Origin, frozenset[str]]
"""Origins, each with the kinds of sink for which it was made harmless on every way that it came.

Among the kinds may stand tokens (`guard:FUNCTION:PARAMETER`, `ensure:…`) that `link` turns into kinds.
"""
CLEAN: Taints = {}
_AS_IT_CAME: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """An abstract value.

    `name` is an access path (`sqlite3.connect().cursor()`), `constant` its value if known, `items` members by constant
    key, `marks` small facts (`built` from pieces, `normal` path, `host`, `extension`).
    """

    taints: Taints = field(default_factory=dict)
    name: str = ""
    constant: object = UNKNOWN
    items: Mapping[Hashable, Value] | None = None
    marks: frozenset[str] = frozenset()

    def clear(self, kinds: Iterable[str]) -> Value:
        """The same value, harmless for these kinds of sink."""
        more = frozenset(kinds)
        items = {key: item.clear(more) for key, item in self.items.items()} if self.items else self.items
        return replace(self, taints=clear(self.taints, more), items=items)

    def marked(self, *marks: str) -> Value:
        """The same value with these facts added."""
        return replace(self, marks=self.marks | frozenset(marks))

    def everything(self) -> Taints:
        """Taints of the value and of all that it holds."""
        if not self.items:
            return self.taints
        return merge(self.taints, *(item.everything() for item in self.items.values()))

    def put(self, key: Hashable, item: Value) -> Value:
        """A container with one member replaced; beyond a limit it is only known as a whole."""
        items = dict(self.items or {})
        if len(items) >= _MAX_ITEMS and key not in items:
            return replace(self, taints=merge(self.taints, item.everything()))
        return replace(self, items=items | {key: item}, constant=UNKNOWN)

    def take(self, key: object) -> Value:
        """The member under a constant key, or whatever may lie under an unknown one."""
        known = self.items or {}
        if isinstance(key, Unknown):
            return Value(taints=self.everything())
        if isinstance(key, int) and key < 0 and known:
            key += len(known)
        try:
            found = known.get(key)
        except TypeError:
            found = None
        return found if found is not None else Value(taints=self.taints)


NOTHING = Value()


def from_origin(origin: Origin, name: str = "") -> Value:
    """A value that comes straight from one origin."""
    return Value(taints={origin: _AS_IT_CAME}, name=name)


def clear(taints: Taints, kinds: frozenset[str]) -> Taints:
    """Mark every taint as harmless for these kinds."""
    if not taints or not kinds:
        return taints
    return {origin: cleared | kinds for origin, cleared in taints.items()}


def merge(*all_taints: Taints) -> Taints:
    """Taints of a value that may be any of several: harmless only for what all ways made harmless."""
    filled = [taints for taints in all_taints if taints]
    if len(filled) < 2:
        return filled[0] if filled else CLEAN
    result = dict(filled[0])
    for taints in filled[1:]:
        for origin, cleared in taints.items():
            known = result.get(origin)
            if known is not None:
                result[origin] = known & cleared
            elif len(result) < _MAX_ORIGINS:
                result[origin] = cleared
    return result


def join(first: Value, second: Value) -> Value:
    """What a value may be after two branches meet."""
    if first is second:
        return first
    same = type(first.constant) is type(second.constant) and first.constant == second.constant
    return Value(
        taints=merge(first.taints, second.taints),
        name=first.name if first.name == second.name else (first.name or second.name),
        constant=first.constant if same else UNKNOWN,
        items=_join_items(first, second),
        marks=first.marks & second.marks | ((first.marks | second.marks) & {"built"}),
    )


def gather(*values: Value) -> Value:
    """A value made of several: as dangerous as all of them together, with no name and no constant."""
    return Value(taints=merge(*(value.everything() for value in values)))


def _join_items(first: Value, second: Value) -> Mapping[Hashable, Value] | None:
    if first.items is None or second.items is None:
        return first.items if second.items is None else second.items
    result = dict(first.items)
    for key, item in second.items.items():
        known = result.get(key)
        result[key] = item if known is None else join(known, item)
    return result
