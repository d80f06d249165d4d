"""What the analysis knows of a value: where it may come from, what it may be, what it holds. Pure values.

A value carries *taints*: for each origin that may have fed it, what has been neutralised on the way (`origins`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from casemate.agents.audit.facts.origins import (
    AS_IT_CAME,
    CLEAN,
    ELEMENT,
    ENTERED,
    KEYS,
    Attribute,
    Lost,
    Origin,
    Parameter,
    Path,
    Result,
    Source,
    Step,
    Taints,
    clear,
    deeper,
    merge,
    on_both,
)

__all__ = [
    "CLEAN",
    "Attribute",
    "Lost",
    "Origin",
    "Parameter",
    "Result",
    "Source",
    "Taints",
    "clear",
    "merge",
    "on_both",
]

_MAX_ITEMS = 128
_MAX_OTHERS = 8
_MAX_DEPTH = 4
_OF_ITS_OWN = frozenset({"literal", "whole"})
"""Marks that a change takes away."""


class Unknown:
    """The constant that is not known."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __reduce__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()


@dataclass(frozen=True, slots=True)
class Value:
    """An abstract value.

    `name` is an access path (`sqlite3.connect().cursor()`), `others` the paths that it may stand for as well,
    `constant` its value if known, `items` members by constant key, `marks` small facts (`built` from pieces, `normal`
    path, `host`, `extension`, `literal`: all members are known, `whole`: all that its one origin gave).
    """

    taints: Taints = field(default_factory=dict)
    name: str = ""
    constant: object = UNKNOWN
    items: Mapping[Hashable, Value] | None = None
    marks: frozenset[str] = frozenset()
    others: tuple[str, ...] = ()

    def clear(self, kinds: Iterable[str]) -> Value:
        """The same value, harmless for these kinds of sink."""
        more = frozenset(kinds)
        items = {key: item.clear(more) for key, item in self.items.items()} if self.items else self.items
        return replace(self, taints=clear(self.taints, more), items=items)

    def clear_origins(self, origins: frozenset[Origin], kinds: frozenset[str]) -> Value:
        """The same value, harmless for these kinds as far as it comes from these origins."""
        if origins.isdisjoint(self.everything()):
            return self
        taints = {o: cleared | kinds if o in origins else cleared for o, cleared in self.taints.items()}
        items = {k: item.clear_origins(origins, kinds) for k, item in self.items.items()} if self.items else self.items
        return replace(self, taints=taints, items=items)

    def kept(self) -> Kept:
        """What of it is kept in a file."""
        items = self.items or {}
        plain = tuple((key, item) for key, item in items.items() if isinstance(key, str | int | float | None))
        return Kept(self.taints, self.names(), plain if self.items is not None else None)

    @classmethod
    def of_kept(cls, kept: Kept) -> Value:
        """The value that was kept."""
        if kept == Kept({}, (), None):
            return NOTHING
        items = dict[Hashable, Value](kept.items) if kept.items is not None else None
        return cls(kept.taints, kept.names[0] if kept.names else "", items=items, others=kept.names[1:])

    def marked(self, *marks: str) -> Value:
        """The same value with these facts added."""
        return replace(self, marks=self.marks | frozenset(marks))

    def names(self) -> tuple[str, ...]:
        """Every access path that it may stand for."""
        return (self.name, *self.others) if self.name else self.others

    def everything(self) -> Taints:
        """Taints of the value and of all that it holds."""
        if not self.items:
            return self.taints
        return merge(self.taints, *(item.everything() for item in self.items.values()))

    def put(self, key: Hashable, item: Value) -> Value:
        """A container with one member replaced; beyond a limit it is only known as a whole."""
        items = dict(self.items or {})
        if len(items) >= _MAX_ITEMS and key not in items:
            return self.put_somewhere(NOTHING, item)
        items[key] = item
        return replace(self, items=items, constant=UNKNOWN, marks=self.marks - {"whole"})

    def put_somewhere(self, key: Value, item: Value) -> Value:
        """A container with a member under a key that is not known."""
        items = dict(self.items or {})
        for place, more in ((ELEMENT, item), (KEYS, key)):
            if more.everything() or more.name:
                items[place] = join(items[place], more) if place in items else more
        return replace(self, items=items, constant=UNKNOWN, marks=self.marks - _OF_ITS_OWN)

    def take(self, key: object) -> Value:
        """The member under a constant key, or whatever may lie under an unknown one."""
        known = self.items or {}
        if isinstance(key, Unknown) or not isinstance(key, Hashable):
            return _any_of(self, [k for k in known if k != KEYS])
        if isinstance(key, int) and key < 0 and known and in_order(self):
            if self.taints or ELEMENT in known:
                return _any_of(self, list(known))
            key += len(known)
        found = known.get(key)
        if found is not None:
            return found
        somewhere = known.get(ELEMENT)
        if somewhere is not None:
            return replace(somewhere, taints=merge(somewhere.taints, deeper(self.taints, ELEMENT)))
        return Value(taints=deeper(self.taints, key))

    def attribute(self, name: str) -> Value:
        """A member under its name; of what holds no such members (a text, a list) the whole."""
        step = f".{name}"
        known = self.items or {}
        if step in known:
            return known[step]
        if any(isinstance(key, str) and key.startswith(".") for key in known):
            return Value(taints=deeper(self.taints, step))
        taints = deeper(self.everything(), step)
        if not taints and self.name.endswith("()"):
            return from_origin(Attribute(self.name[:-2], name))
        return Value(taints=taints)

    def element(self) -> Value:
        """What iterating gives: members of a sequence, keys of a dictionary."""
        known = self.items
        if not known:
            name = f"{self.name}[]" if self.name else ""
            return Value(taints=deeper(self.taints, ELEMENT), name=name, marks=self.marks & {"json", "built"})
        if KEYS in known or not in_order(self):
            keys = known.get(KEYS, NOTHING)
            return replace(keys, taints=merge(keys.taints, deeper(self.taints, KEYS)))
        return _any_of(self, list(known))

    def entered(self) -> Value:
        """What `with` binds: of a generator what it yields, of an object of the project what it says."""
        if self.items and ELEMENT in self.items:
            return self.items[ELEMENT]
        if not any(isinstance(origin, Result) for origin in self.taints):
            return self
        return replace(self, taints=deeper(self.taints, ENTERED))

    def at(self, path: Path) -> Value:
        """The member at the end of a path."""
        value = self
        for step in path:
            if step == ELEMENT:
                value = value.element()
            elif step == ENTERED:
                value = value.entered()
            elif isinstance(step, str) and step[:1] == "." and step[1:].isidentifier():
                value = value.attribute(step[1:])
            else:
                value = value.take(step)
        return value


NOTHING = Value()


def in_order(value: Value) -> bool:
    """Whether a value is a sequence: its members lie under numbers or under no known key."""
    return all(key == ELEMENT or (isinstance(key, int) and not isinstance(key, bool)) for key in value.items or ())


def _any_of(value: Value, keys: list[Hashable]) -> Value:
    """A member of several; of a container that is empty, what may have been put in."""
    known = value.items or {}
    result = Value(taints=deeper(value.taints, ELEMENT)) if value.taints or not keys else known[keys[0]]
    for key in keys:
        result = join(result, known[key])
    return replace(result, name="", others=(result.name, *result.others)) if result.others else result


def from_origin(origin: Origin, name: str = "") -> Value:
    """A value that comes straight from one origin."""
    return Value(taints={origin: AS_IT_CAME}, name=name, marks=frozenset({"whole"}))


def of_elements(element: Value, keys: Value | None = None) -> Value:
    """A container of unknown keys whose members are alike."""
    return Value(items={ELEMENT: element} if keys is None else {ELEMENT: element, KEYS: keys})


def join(first: Value, second: Value) -> Value:
    """What a value may be after two branches meet."""
    if first is second:
        return first
    same = type(first.constant) is type(second.constant) and first.constant == second.constant
    every = first.names()
    if every != second.names():
        every = tuple(dict.fromkeys((*every, *second.names())))[:_MAX_OTHERS]
    items, rest = _join_items(first, second)
    return Value(
        taints=merge(first.taints, second.taints, rest),
        name=every[0] if every else "",
        constant=first.constant if same else UNKNOWN,
        items=items,
        marks=(first.marks & second.marks - _OF_ITS_OWN) | ((first.marks | second.marks) & {"built"}),
        others=every[1:],
    )


def of_list(values: Iterable[Value]) -> Value:
    """A sequence of which every member is known."""
    return Value(items=dict[Hashable, Value](enumerate(values)))


def gather(*values: Value) -> Value:
    """A value made of several, as dangerous as all of them together."""
    return Value(taints=merge(*(value.everything() for value in values)))


@dataclass(frozen=True, slots=True)
class Kept:
    """A value as it is kept in a file: no constant, no marks."""

    taints: Taints
    names: tuple[str, ...]
    items: tuple[tuple[Step, Value], ...] | None


def slim(value: Value, keep: Callable[[str], bool], *, depth: int = _MAX_DEPTH) -> Value:
    """What a summary needs of a value: taints, names that lead into the project, and members that have such."""
    if not depth:
        return Value(taints=value.everything())
    items: dict[Hashable, Value] = {
        key if isinstance(key, str | int | float | None) else ELEMENT: slim(item, keep, depth=depth - 1)
        for key, item in (value.items or {}).items()
    }
    names = tuple(name for name in value.names() if keep(name))
    telling = any(item is not NOTHING for item in items.values())
    if not (value.taints or names or telling):
        return NOTHING
    return Value(value.taints, names[0] if names else "", items=items if telling else None, others=names[1:])


def _join_items(first: Value, second: Value) -> tuple[Mapping[Hashable, Value] | None, Taints]:
    """Members of both; what lies at the end of the longer of two sequences may lie anywhere."""
    if first.items is None or second.items is None:
        return first.items if second.items is None else second.items, CLEAN
    result = dict(first.items)
    for key, item in second.items.items():
        known = result.get(key)
        result[key] = item if known is None else join(known, item)
    ragged = first.items.keys() ^ second.items.keys()
    if not ragged or not (in_order(first) and in_order(second)):
        return result, CLEAN
    extra = merge(*(result.pop(key).everything() for key in ragged if key != ELEMENT))
    return result, extra
