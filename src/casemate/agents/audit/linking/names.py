"""What a dotted name or an access path leads to over a whole project: functions, classes, members. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from casemate.agents.audit.facts.origins import ENTERED, Path, Taints
from casemate.agents.audit.facts.summary import Function, Module
from casemate.agents.audit.facts.values import NOTHING, Value, join
from casemate.agents.audit.linking.renaming import Renaming

SUPER = "<super>"
"""As a member of a class: what `super()` gives in its methods."""
_MAX_CANDIDATES = 1
_MAX_DEPTH = 24
"""Renamings, results and attributes on the way from a name to a function; import cycles would go on for ever."""
_EMPTY_BASES = frozenset({"object", "abc.ABC", "typing.Protocol", "typing.Generic"})
_SHOWN_AS_TEXT = ("__str__", "__repr__", "__format__")


@dataclass(slots=True)
class Names:
    """Indices by name."""

    functions: dict[str, Function] = field(default_factory=dict)
    methods: dict[str, list[Function]] = field(default_factory=dict)
    stored: dict[tuple[str, str], Value] = field(default_factory=dict)
    renaming: Renaming = field(default_factory=Renaming)
    bases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    children: dict[str, list[str]] = field(default_factory=dict)
    _known: dict[str, tuple[Function, ...]] = field(default_factory=dict)
    _attributes: dict[str, set[str]] = field(default_factory=dict)
    _owners: dict[str, str] = field(default_factory=dict)
    _depth: int = 0

    @classmethod
    def of(cls, modules: tuple[Module, ...]) -> Names:
        """Index summaries."""
        names = cls()
        for module in modules:
            names.functions.update(module.functions)
            names.stored.update(module.stored)
            names.renaming.add(module)
            names.bases.update(module.bases)
        for owner, attribute in names.stored:
            names._attributes.setdefault(owner, set()).add(attribute)
        for function in names.functions.values():
            owner, _, last = function.name.rpartition(".")
            if function.computed:
                names._attributes.setdefault(owner, set()).add(last)
            if function.instance:
                names._attributes.setdefault(owner, set()).update(function.instance)
            if function.method:
                names.methods.setdefault(function.name.rpartition(".")[2], []).append(function)
        for name, bases in names.bases.items():
            for base in bases:
                names.children.setdefault(names.class_name(base), []).append(name)
        return names

    def resolve(self, name: str) -> tuple[Function, ...]:
        """The functions that an access path leads to: a function, a constructor, a method of what a call gives."""
        known = self._known.get(name)
        if known is None and self._depth < _MAX_DEPTH:
            self._known[name] = ()  # a name that leads to itself leads nowhere
            self._depth += 1
            known = self._known[name] = self._resolve(name)
            self._depth -= 1
        return known or ()

    def methods_named(self, name: str, *, given: int) -> tuple[Function, ...]:
        """The methods of this name anywhere, where there is but one that takes so many arguments."""
        found = self.methods.get(name, [])
        fit = [f for f in found if given < len(f.parameters) + 1 or f.variadic] if len(found) > 1 else found
        return tuple(fit) if len(fit) <= _MAX_CANDIDATES else ()

    def class_name(self, name: str) -> str:
        """The class that a name stands for, or the name itself."""
        seen = set()
        while name not in self.bases and name not in seen:
            seen.add(name)
            name = next(self.renaming.nearer(name), name)
        return name

    def written(self, owner: str, name: str) -> Value:
        """What is stored under a name of a class, a base of it or a module; what a property of that name gives."""
        found = self._stored(self._owner(owner), name)
        made_by = self.resolve(owner) if owner not in self.bases and (owner, name) not in self.stored else ()
        for given in (given for maker in made_by if not _makes(maker) for given in maker.returns.names()):
            if given.endswith("()") and given[:-2] != owner:
                found = join(self._stored(self.class_name(given[:-2]), name), found)
        return found

    def member_of(self, owner: str, path: Path) -> Value:
        """A member of a new instance: what its constructor stores, or what is stored later by anyone."""
        if not path:
            shown = (self._method(owner, name) for name in _SHOWN_AS_TEXT)
            return next((method.returns for method in shown if method is not None), NOTHING)
        if path[0] == ENTERED:
            enter = self._method(owner, "__enter__") or self._method(owner, "__aenter__")
            if enter is None or f"{owner}()" in enter.returns.names():
                return self.member_of(owner, path[1:]) if len(path) > 1 else NOTHING
            return enter.returns.at(path[1:])
        if isinstance(path[0], str) and path[0].startswith("."):
            name = path[0][1:]
            made = self._method(owner, "__init__")
            first = made.instance.get(name) if made is not None else None
            return join(first or NOTHING, self._stored(owner, name, fresh=first is not None)).at(path[1:])
        get = self._method(owner, "__getitem__") or self._method(owner, "__iter__") or self._method(owner, "__next__")
        return get.returns if get is not None else NOTHING

    def everything_of(self, owner: str) -> Iterator[Taints]:
        """All that an instance of a class may hold or compute."""
        for holder in self._ancestry(owner):
            for name in self._attributes.get(holder, ()):
                yield self._stored(holder, name).everything()
            for method in ("__str__", "__repr__", "__format__", "__enter__", "__aenter__", "__getitem__", "__iter__"):
                found = self.functions.get(f"{holder}.{method}")
                if found is not None:
                    yield found.returns.everything()

    def is_fixed(self, owner: str, name: str) -> bool:
        """Whether nothing untrusted is ever put under a global or attribute, as far as its summary shows."""
        return not self.written(owner, name).everything()

    def is_container(self, name: str) -> bool:
        """Whether an access path is a global or attribute of the project that is no instance of its classes."""
        owner, _, last = name.rpartition(".")
        value = self.stored.get((self._owner(owner), last))
        return value is not None and not value.names()

    def _owner(self, name: str) -> str:
        """The class or module that a name stands for, or the name itself."""
        known = self._owners.get(name)
        if known is None:
            known = self._owners[name] = self._found_owner(name)
        return known

    def _found_owner(self, name: str) -> str:
        first, seen = name, set[str]()
        while name not in seen:
            if name in self.bases or name in self.renaming.stars:
                return name
            seen.add(name)
            others = list(self.renaming.nearer(name))
            name = next(
                (other for other in others if other in self.bases or other in self.renaming.stars),
                (others or [name])[0],
            )
        return first

    def _stored(self, owner: str, name: str, *, fresh: bool = False) -> Value:
        """Without `fresh` also what constructors store: that is for whom the instance is not known."""
        found = NOTHING
        for holder in self._ancestry(owner):
            value = self.stored.get((holder, name))
            made = self.functions.get(f"{holder}.__init__")
            first = made.instance.get(name) if made is not None and not fresh else None
            computed = self.functions.get(f"{holder}.{name}")
            for part in (value, first, computed.returns if computed is not None and computed.computed else None):
                if part is not None:
                    found = part if found is NOTHING else join(found, part)
            if value is not None and holder == owner and not self.bases.get(owner):
                break
        return found

    def _ancestry(self, owner: str) -> Iterator[str]:
        seen = {owner}
        waiting = [owner]
        while waiting:
            name = waiting.pop(0)
            yield name
            for base in self.bases.get(name, ()):
                parent = self.class_name(base)
                if parent not in seen:
                    seen.add(parent)
                    waiting.append(parent)

    def _resolve(self, name: str) -> tuple[Function, ...]:
        found = self.functions.get(name)
        if found is not None:
            return (found, *self._overrides(name)) if found.abstract else (found,)
        if name in self.bases:
            return self._makers(name)
        through = self._of_path(name) if "(" in name or SUPER in name else None
        if through is not None:
            return through
        owner, _, last = name.rpartition(".")
        method = self._method(owner, last) if owner in self.bases else None
        if method is not None:
            return (method,)
        kept = self.stored.get((self._owner(owner), last)) if owner else None
        if kept is not None and kept.names():
            return tuple(f for given in kept.names() if given != name for f in self.resolve(given))
        renamed = next(filter(None, map(self.resolve, self.renaming.nearer(name))), None)
        return renamed if renamed is not None else self._of_stored(owner, last)

    def _of_path(self, name: str) -> tuple[Function, ...] | None:
        """What a path through calls leads to; None where it ends in an attribute of what a call gives."""
        owner, _, last = name.rpartition(".")
        if name.endswith("()"):
            return self._of_instance(name[:-2], "__call__")
        if name.endswith(")"):
            return ()
        if owner.endswith("()"):
            return self._of_instance(owner[:-2], last)
        return self._of_base(owner.removesuffix(f".{SUPER}"), last) if owner.endswith(f".{SUPER}") else None

    def _makers(self, owner: str) -> tuple[Function, ...]:
        """The constructor of a class; of one whose bases are all of the project and have none, an empty one."""
        made = self._method(owner, "__init__")
        if made is None and all(name in self.bases or name in _EMPTY_BASES for name in self._all_bases(owner)):
            name = f"{owner}.__init__"
            made = self.functions[name] = Function(name, ("self",), method=True)
        return (made,) if made is not None else ()

    def _all_bases(self, owner: str) -> Iterator[str]:
        for holder in self._ancestry(owner):
            if holder != owner:
                yield holder

    def _of_stored(self, owner: str, last: str) -> tuple[Function, ...]:
        """A method of what lies in a global or attribute: `module.runner.go`, `app.Service().repo.find`."""
        holder, dot, attribute = owner.rpartition(".")
        if not dot:
            return ()
        holder = holder.removesuffix("()")
        value = self.written(holder, attribute)
        return tuple(f for given in value.names() if given != owner for f in self.resolve(f"{given}.{last}"))

    def _of_instance(self, made_by: str, method: str) -> tuple[Function, ...]:
        made_by = self.class_name(made_by)
        if made_by in self.bases:
            found = self._method(made_by, method)
            if found is None or found.abstract:
                below = self._below(made_by, method)
                return (found, *below) if found is not None else below
            return (found,)
        targets: dict[str, Function] = {}
        for maker in self.resolve(made_by):
            for given in maker.returns.names():
                if given.endswith("()") and given[:-2] != made_by:
                    targets.update({f.name: f for f in self.resolve(f"{given}.{method}")})
        return tuple(targets.values())

    def _of_base(self, owner: str, method: str) -> tuple[Function, ...]:
        for base in self.bases.get(owner, ()):
            found = self._method(self.class_name(base), method)
            if found is not None:
                return (found,)
        return ()

    def _overrides(self, name: str) -> tuple[Function, ...]:
        owner, _, method = name.rpartition(".")
        return self._below(owner, method)

    def _below(self, owner: str, method: str) -> tuple[Function, ...]:
        """What the classes below make of a method."""
        below: dict[str, None] = {}
        waiting = [owner]
        while waiting:
            children = [child for child in self.children.get(waiting.pop(), ()) if child not in below]
            below |= dict.fromkeys(children)
            waiting += children
        own = (self.functions.get(f"{child}.{method}") for child in below if child != owner)
        return tuple(found for found in own if found is not None and not found.abstract)

    def _method(self, owner: str, method: str) -> Function | None:
        for holder in self._ancestry(owner):
            found = self.functions.get(f"{holder}.{method}")
            if found is not None:
                return found
        return None


def _makes(function: Function) -> bool:
    return function.name.endswith(".__init__")
