"""Several projects in one tree: a name that more than one of them could mean, means the nearest. Pure.

`import app` in `services/a/main.py` is `services/a/app.py` although `services/b/app.py` has the same name; so it is
with `src` folders and with scripts beside their modules. Names that can mean one module only are left as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from casemate.agents.audit.facts.summary import Call, Function, Module
from casemate.agents.audit.facts.values import NOTHING, Attribute, Taints, Value


def settled(modules: tuple[Module, ...]) -> tuple[Module, ...]:
    """The same summaries, with ambiguous names of modules written in full."""
    known = _known(modules)
    ambiguous = frozenset(short.partition(".")[0] for short, names in known.items() if len(names) > 1)
    if not ambiguous:
        return modules
    return tuple(_settled(module, _Names(module.name, ambiguous, known)) for module in modules)


def _known(modules: Iterable[Module]) -> dict[str, list[str]]:
    """Every module by every ending of its name, the whole name included."""
    known: dict[str, list[str]] = {}
    for module in modules:
        parts = module.name.split(".") if module.name else []
        for start in range(len(parts)):
            known.setdefault(".".join(parts[start:]), []).append(module.name)
    return known


@dataclass(frozen=True, slots=True)
class _Names:
    """How names read in one module."""

    here: str
    ambiguous: frozenset[str]
    known: Mapping[str, list[str]]

    def settle(self, name: str) -> str:
        """An access path, with the module that it begins with written in full."""
        if name.partition(".")[0].removesuffix("()") not in self.ambiguous:
            return name
        parts = name.split(".")
        for end in range(len(parts), 0, -1):
            meant = self._nearest(self.known.get(".".join(parts[:end]), ()))
            if meant:
                return ".".join((meant, *parts[end:]))
        return name

    def _nearest(self, names: Iterable[str]) -> str:
        """The one that shares most folders with this module; empty where two share as many."""
        ranked = sorted(((_shared(self.here, name), name) for name in names), reverse=True)
        if not ranked or (len(ranked) > 1 and ranked[0][0] == ranked[1][0]):
            return ""
        return ranked[0][1]


def _shared(one: str, other: str) -> int:
    """How many folders two modules have in common from the top."""
    folders, others = one.split(".")[:-1], other.split(".")[:-1]
    return next(
        (at for at, (a, b) in enumerate(zip(folders, others, strict=False)) if a != b), min(len(folders), len(others))
    )


def _settled(module: Module, names: _Names) -> Module:
    return replace(
        module,
        hits=tuple(replace(hit, taints=_taints(hit.taints, names)) for hit in module.hits),
        calls={key: _call(call, names) for key, call in module.calls.items()},
        functions={name: _function(function, names) for name, function in module.functions.items()},
        stored={(names.settle(owner), name): _value(value, names) for (owner, name), value in module.stored.items()},
        aliases={name: names.settle(meaning) for name, meaning in module.aliases.items()},
        bases={name: tuple(map(names.settle, bases)) for name, bases in module.bases.items()},
    )


def _call(call: Call, names: _Names) -> Call:
    arguments = {at: _value(value, names) for at, value in call.arguments.items()}
    return replace(call, name=names.settle(call.name), arguments=arguments, receiver=_value(call.receiver, names))


def _function(function: Function, names: _Names) -> Function:
    return replace(
        function,
        returns=_value(function.returns, names),
        changes={name: _value(value, names) for name, value in function.changes.items()},
        instance={name: _value(value, names) for name, value in function.instance.items()},
    )


def _value(value: Value, names: _Names) -> Value:
    if value is NOTHING:
        return value
    return replace(
        value,
        taints=_taints(value.taints, names),
        name=names.settle(value.name),
        others=tuple(map(names.settle, value.others)),
        items={key: _value(item, names) for key, item in value.items.items()} if value.items else value.items,
    )


def _taints(taints: Taints, names: _Names) -> Taints:
    return {
        replace(origin, owner=names.settle(origin.owner)) if isinstance(origin, Attribute) else origin: cleared
        for origin, cleared in taints.items()
    }
