"""What else a dotted name is called: by imports, by stars, by modules that lie deeper than they are named. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from casemate.agents.audit.facts.summary import Module

_MAX_PARTS = 32
"""No module of a project lies so deep: a name that grows beyond this by renaming leads nowhere."""


@dataclass(slots=True)
class Renaming:
    """Aliases of all modules, the stars of each, and modules by the endings of their names (`suffixes`)."""

    aliases: dict[str, str] = field(default_factory=dict)
    stars: dict[str, tuple[str, ...]] = field(default_factory=dict)
    suffixes: dict[str, set[str]] = field(default_factory=dict)
    defined: set[tuple[str, str]] = field(default_factory=set)

    def add(self, module: Module) -> None:
        """Take a module in."""
        self.aliases.update(module.aliases)
        self.defined.update(module.stored)
        self.stars[module.name] = module.stars
        parts = module.name.split(".")
        for start in range(1, len(parts)):
            self.suffixes.setdefault(".".join(parts[start:]), set()).add(module.name)

    def nearer(self, name: str) -> Iterator[str]:
        """One step nearer: an alias of a prefix, a module under a longer name, a name that a star brought in."""
        parts = name.split(".")
        if len(parts) > _MAX_PARTS:
            return
        prefixes = [(".".join(parts[:end]), parts[end:]) for end in range(len(parts), 0, -1)]
        in_place = any(prefix in self.stars for prefix, _ in prefixes)  # it begins with a module as it lies in the tree
        for prefix, rest in prefixes:
            alias = self.aliases.get(prefix)
            if alias is not None and alias != prefix and not alias.startswith(f"{prefix}."):
                yield ".".join([alias, *rest])
            longer = self.suffixes.get(prefix, ()) if not in_place else ()
            if len(longer) == 1:
                yield ".".join([*longer, *rest])
            if rest and (giver := self._starred(prefix, rest[0])):
                yield ".".join([giver, *rest])

    def _starred(self, module: str, name: str) -> str:
        """The module that a star brings this name from, through as many stars as it takes; empty if none does."""
        seen, waiting = {module}, [*self.stars.get(module, ())]
        while waiting:
            giver = waiting.pop(0)
            whole = next(iter(self.suffixes.get(giver, ())), giver) if giver not in self.stars else giver
            if whole in seen:
                continue
            seen.add(whole)
            if (whole, name) in self.defined or f"{whole}.{name}" in self.aliases:
                return whole
            waiting += self.stars.get(whole, ())
        return ""
