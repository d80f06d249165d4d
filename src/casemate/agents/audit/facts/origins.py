"""Where a value may come from. An origin inside one file is symbolic; `link` resolves it over the whole project. Pure.

A symbolic origin may carry a *path*: the members that were taken of it on the way (`job.cmd`, `pair()[0]`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from casemate.agents.audit.vocabulary.lexicon import EVERYTHING
from casemate.finding import FlowStep

_MAX_ORIGINS = 256
_MAX_PATH = 2
Step = str | int | float | bool | None
Path = tuple[Step, ...]

ELEMENT = "[]"
"""As a step or key: any member of a container whose keys are not known."""
KEYS = "<keys>"
"""As a key: the keys of a dictionary."""
ENTERED = "<entered>"
"""As a step: what `with` binds of a manager."""
CHANGED = "<changed>"
"""As a step: what a call puts into an argument; the next step is its position or keyword."""


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
    path: Path = ()


@dataclass(frozen=True, slots=True)
class Result:
    """Whatever a call gives back; `call` is its key in the module's summary."""

    call: str
    path: Path = ()


@dataclass(frozen=True, slots=True)
class Attribute:
    """Whatever is stored under this name in a class or module, by any method."""

    owner: str
    name: str
    path: Path = ()


@dataclass(frozen=True, slots=True)
class Lost:
    """There were more origins than are kept apart; a search that meets this is incomplete."""


Origin = Source | Parameter | Result | Attribute | Lost


Taints = Mapping[Origin, frozenset[str]]
"""Origins, each with the kinds of sink for which it was made harmless on every way that it came.

Among the kinds may stand tokens (`guard:FUNCTION:PARAMETER`, `ensure:…`, `fixed:OWNER:NAME`) that `link` turns into
kinds.
"""
CLEAN: Taints = {}
AS_IT_CAME: frozenset[str] = frozenset()
_LOST = Lost()


def deeper(taints: Taints, step: object) -> Taints:
    """The same origins one member further in; a path that is full stands for all below it."""
    if not taints:
        return CLEAN
    result: dict[Origin, frozenset[str]] = {}
    for origin, cleared in taints.items():
        inner = origin
        if not isinstance(origin, Source | Lost) and len(origin.path) < _MAX_PATH:
            inner = replace(
                origin, path=(*origin.path, step if isinstance(step, str | int | float | None) else ELEMENT)
            )
        known = result.get(inner)
        result[inner] = cleared if known is None else on_both(known, cleared)
    return result


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
        if taints is filled[0]:
            continue
        for origin, cleared in taints.items():
            known = result.get(origin)
            if known is not None:
                result[origin] = on_both(known, cleared)
            elif len(result) < _MAX_ORIGINS:
                result[origin] = cleared
            else:
                result[_LOST] = result.get(_LOST, cleared) & cleared
    return result


def on_both(first: frozenset[str], second: frozenset[str]) -> frozenset[str]:
    """Kinds that two ways have in common; a way that is harmless for everything takes nothing from the other."""
    if EVERYTHING in first or EVERYTHING in second:
        return second if EVERYTHING in first else first
    return first & second
