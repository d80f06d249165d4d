"""The engine port: what a CpuPlan needs to become a process that answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from casemate.chat.model import Endpoint
from casemate.plan.decision import CpuPlan


@dataclass(frozen=True, slots=True)
class Launch:
    """A process to start. Secrets are in `environment`, never in `argv`."""

    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Ready:
    """The engine made a real token."""


@dataclass(frozen=True, slots=True)
class Starting:
    """Not yet; `phase` is what it is doing (`start`, `load`, `warm`), `share` how far, from 0 to 1."""

    phase: str
    share: float = 0.0


class Engine(Protocol):
    """One kind of engine. Pure: it describes the process and reads its signs; `supervisor` acts.

    Implementations: `llamacpp.LlamaCpp`, `simulator.Simulator` (both start a process), `remote.Remote` (starts none).
    """

    @property
    def name(self) -> str:
        """Its kind, as in `CpuPlan.engine`."""
        ...

    @property
    def key(self) -> str:
        """The secret that its HTTP server asks for; empty where there is none."""
        ...

    def launch(self, plan: CpuPlan, port: int) -> Launch | None:
        """The process to start for this plan on this loopback port; None if there is none to start."""
        ...

    def endpoint(self, plan: CpuPlan, port: int) -> Endpoint:
        """Where it will answer.

        Raises:
            EngineError: that is an address to which nothing may be sent.
        """
        ...

    def phase(self, line: str) -> Starting | None:
        """What one line of its log says about its start; None if nothing."""
        ...
