"""Everything that a judgement may look at: the command's options by meaning, and what is known of model and machine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from casemate.checkpoint.facts import Checkpoint, Compressed
from casemate.doctor.machine import Card, Machine
from casemate.plan.recipe.checking import shown
from casemate.plan.recipe.flags import FlagTable, Hit, numbers
from casemate.plan.recipe.launch import Launch
from casemate.plan.recipe.problem import Problem
from casemate.plan.recipe.uses import Use

_SUFFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Situation:
    """A launch beside its surroundings. What is None or absent is not known, and nothing is concluded from it."""

    launch: Launch
    table: FlagTable
    used: tuple[Use, ...]
    checkpoint: Checkpoint | None = None
    machine: Machine | None = None

    @cached_property
    def options(self) -> Mapping[str, Use]:
        """The options that this version knows by long name; the last use counts, as it does for the parser."""
        return {use.name: use for use in self.used if isinstance(use.meant, Hit) and not use.meant.path}

    @property
    def version(self) -> tuple[int, ...]:
        """Of the engine, as numbers; empty if the flags come from a help text."""
        return numbers(self.table.version)

    def value(self, name: str) -> str | None:
        """What an option is set to, if it is set to something that is known here."""
        use = self.options.get(name)
        return use.value if use and use.values and use.known and not use.negated else None

    def number(self, name: str) -> float | None:
        """The same as a number; 2k and 8M are understood."""
        match = re.fullmatch(r"\s*(-?\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})([kKmMgG]?)\s*", self.value(name) or "")
        return float(match[1]) * _SUFFIXES[match[2]] if match else None

    def on(self, name: str) -> bool | None:
        """Whether a switch is on; None if it is not mentioned."""
        use = self.options.get(name)
        if use is None:
            return None
        return not use.negated and use.value.lower() != "false"

    def keys(self, name: str) -> dict[str, Any]:
        """The keys of a JSON option, from its text and from dotted words; empty where they are not known."""
        found: dict[str, Any] = {}
        for use in self.used:
            if use.name != name or not isinstance(use.meant, Hit) or not use.known:
                continue
            found |= {use.meant.path[0]: _scalar(use.value)} if use.meant.path else _object(use.value)
        return found

    def variable(self, name: str) -> str | None:
        """An environment variable that the recipe sets, if its value is known."""
        found = [word for held, word in self.launch.environment if held == name]
        return found[-1].text if found and found[-1].known else None

    @property
    def cards(self) -> tuple[Card, ...]:
        """Cards that can compute; a MIG parent cannot."""
        return tuple(card for card in self.machine.cards if not card.mig_parent) if self.machine else ()

    @property
    def capability(self) -> tuple[int, int] | None:
        """Compute capability of all cards, if they agree and it is known."""
        found = {card.compute_capability for card in self.cards}
        return found.pop() if len(found) == 1 else None

    @property
    def ranks(self) -> int:
        """Cards that the command asks for on one host: tensor times pipeline times local data parallel size."""
        local = self.number("data-parallel-size-local") or self.number("data-parallel-size") or 1
        return int((self.number("tensor-parallel-size") or 1) * (self.number("pipeline-parallel-size") or 1) * local)

    @property
    def peers(self) -> bool | None:
        """Whether the cards reach each other's memory directly; None if it is not known or not the same for all."""
        found = {pair.peer_access for pair in self.machine.pairs} if self.machine else set()
        return found.pop() if len(found) == 1 else None

    @property
    def compressed(self) -> bool | None:
        """Whether the model's cache is DeepSeek-V4's compressed one; None if the model is not known."""
        if self.checkpoint is None:
            return None
        return any(isinstance(cache, Compressed) for cache in self.checkpoint.caches)

    def told(self, name: str, problem: Problem) -> Iterator[Problem]:
        """The problem, placed at the option of that long name; nothing if it is not used."""
        use = self.options.get(name) or next((use for use in self.used if use.name == name), None)
        if use is not None:
            yield replace(problem, flag=use.typed, value=shown(use), position=use.position)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _scalar(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
