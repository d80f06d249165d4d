"""Moves every place in a summary. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from casemate.agents.audit.facts.summary import Module
from casemate.finding import Location

Move = Callable[[Location], Location]


def relocated(module: Module, move: Move) -> Module:
    """The same summary with each Location moved, wherever in it one stands."""
    return _moved(module, move)  # type: ignore[no-any-return]  # a walk over any value cannot be typed


def _moved(value: Any, move: Move) -> Any:
    if isinstance(value, Location):
        return move(value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{part.name: _moved(getattr(value, part.name), move) for part in fields(value)})
    if isinstance(value, Mapping):
        return {_moved(key, move): _moved(held, move) for key, held in value.items()}
    if isinstance(value, tuple | frozenset):
        return type(value)(_moved(part, move) for part in value)
    return value
