"""What `casemate plan` is asked for: which machine, which model, which release of the engine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from casemate import settings
from casemate.checkpoint import reading
from casemate.checkpoint.facts import Checkpoint, Gguf
from casemate.cli import hosts
from casemate.doctor.machine import Machine
from casemate.engine.flags.advice import advice
from casemate.engine.flags.choosing import Asked, chosen
from casemate.engine.flags.table import recorded
from casemate.errors import UsageError
from casemate.plan import catalogue
from casemate.plan.catalogue import Chip
from casemate.plan.recipe.flags import FlagTable
from casemate.plan.recipe.judging import Ground, judge
from casemate.plan.recipe.launch import Launch
from casemate.plan.recipe.shell import Word

_VERSION = re.compile(r"v?(\d{1,4}(?:\.\d{1,4}){1,3})\S{0,24}", re.ASCII)
_CACHE = ("HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME")


@dataclass(frozen=True, slots=True)
class Release:
    """A release of the engine: its version, the flags to write for, and a note where those are another's."""

    version: str
    table: FlagTable
    note: str


def chips() -> tuple[Chip, ...]:
    """The kinds of cards that are known by name."""
    return catalogue.chips((resources.files("casemate.plan") / "cards.tsv").read_text(encoding="utf-8"))


def machine_of(file: Path | None, gpus: str, *, model: str) -> tuple[Machine, tuple[str, ...]]:
    """The machine to plan for, with notes: a recording, named cards, or this host as it is now.

    Raises:
        UsageError: both were given, or what was given is no machine.
    """
    if file is not None and gpus:
        raise UsageError("--machine and --gpus exclude each other", remedy="give one of them")
    if file is not None:
        return hosts.told(file)
    if gpus:
        return catalogue.machine_of(gpus, chips()), ()
    return hosts.this_host(Path(model)), ()


def model_of(model: str) -> Checkpoint | Gguf:
    """The model by its path or hub id; a hub id is looked up in the local cache and nowhere else.

    Raises:
        UsageError: there is none, or it does not tell what is needed.
    """
    variables = settings.of_environment(_CACHE)
    home = Path(variables.get("HOME", "/nonexistent"))
    cache = Path(variables.get("XDG_CACHE_HOME") or home / ".cache") / "huggingface"
    hub = Path(variables.get("HF_HUB_CACHE") or Path(variables.get("HF_HOME") or cache) / "hub")
    return reading.read(Path(model), hub=hub)


def release_of(version: str, machine: Machine) -> Release:
    """The release to plan for: the asked one, the installed one, else the newest that is recorded.

    Raises:
        UsageError: it is no version, or older than all that is recorded.
    """
    installed = next((package.version for package in machine.packages if package.name == "vllm"), "")
    wanted = version or installed or recorded().versions[-1]
    matched = _VERSION.fullmatch(wanted)
    if matched is None:
        raise UsageError(
            "this is no version of vLLM", where=wanted[:40], remedy=f"write it as {recorded().versions[-1]}"
        )
    table, note = chosen(Asked(matched[1]))
    return Release(matched[1], table, note.replace("judged by", "its flags are taken from"))


def remarks(words: tuple[str, ...], variables: tuple[tuple[str, str], ...], *, ground: Ground) -> tuple[str, ...]:
    """What the linter says of a command of ours, advice for unknown surroundings left out; it should be nothing."""
    arguments = tuple(Word(word, 1) for word in words)
    environment = tuple((name, Word(value, 1)) for name, value in variables)
    report = judge(Launch("serve", arguments[:2], arguments[2:], environment), ground)
    if report.clean:
        return ()
    return tuple(f"{problem.flag} {problem.value}: {problem.says}" for problem in report.problems)


def ground_of(release: Release, checkpoint: Checkpoint, *, machine: Machine) -> Ground:
    """What the linter judges a plan's command by."""
    return Ground(release.table, recorded(), advice(), checkpoint, machine)
