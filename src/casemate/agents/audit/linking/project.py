"""The summaries of a project as one: what a call leads to, who calls a function, what an attribute holds. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from casemate.agents.audit.facts.summary import Call, Function, Module
from casemate.agents.audit.facts.values import Attribute, Taints

_MAX_NAMES = 12
"""Renamings of a name, and bases above a class, that are followed."""


@dataclass(slots=True)
class Project:
    """Indices over all summaries: `targets` is what each call leads to, `callers` who calls each function."""

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
    def of(cls, modules: tuple[Module, ...]) -> Project:
        """Index summaries."""
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
        if depth > _MAX_NAMES or not name:
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
        for _ in range(_MAX_NAMES):
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
        if found is not None or depth > _MAX_NAMES:
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
