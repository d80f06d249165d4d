"""Cards as physics: what a step costs them, what they draw, how warm they get, and what their counters then say.

Nothing here knows what the product takes for much or little. Rates are those that such cards reach (two of them were
measured: 776 TFLOP/s and 4.29 TB/s of an H200), powers and temperatures those of their data sheets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Chip:
    """A kind of card. `spin_w` is what a resident kernel draws that only waits; the rest comes with work."""

    name: str
    flops: float
    bandwidth: float
    memory_bytes: float
    idle_w: float
    spin_w: float
    memory_w: float
    arithmetic_w: float
    limit_w: float
    clock_mhz: int
    slowdown_c: float = 88.0


H200 = Chip("card A", 776e12, 4.29e12, 141e9, 78, 70, 240, 430, 700, 1980)
H100_PCIE = Chip("card B", 420e12, 1.75e12, 80e9, 50, 45, 120, 210, 350, 1755)
A100 = Chip("card C", 250e12, 1.5e12, 80e9, 55, 45, 130, 215, 400, 1410)
L40S = Chip("card D", 190e12, 0.74e12, 48e9, 35, 50, 90, 230, 350, 2520)
CHIPS = (H200, H100_PCIE, A100, L40S)


@dataclass(frozen=True, slots=True)
class Model:
    """A model: `active` parameters compute a token, `total` lie in memory."""

    active: float
    total: float
    layers: int
    hidden: int
    kv_bytes: float
    parameter_bytes: float

    def read_bytes(self, tokens: float) -> float:
        """Weights that a step of so many tokens reads: of a mixture more with every token, until all are read."""
        share: float = 1 - (1 - self.active / self.total) ** max(tokens, 1)
        return self.total * share * self.parameter_bytes


DENSE_8B = Model(8e9, 8e9, 32, 4096, 131072, 2)
DENSE_32B = Model(32e9, 32e9, 64, 5120, 262144, 1)
DENSE_70B = Model(70e9, 70e9, 80, 8192, 163840, 1)
SMALL_1B = Model(1.5e9, 1.5e9, 28, 1536, 28672, 2)
MIXTURE = Model(13e9, 120e9, 44, 4096, 20000, 1)


@dataclass(frozen=True, slots=True)
class Link:
    """What lies between cards: bytes a second one way, seconds for the smallest all-reduce, and who counts it."""

    bytes_per_s: float
    latency_s: float
    nvlink: bool
    bound: float
    """What the counter's owner says the link can carry."""


NVLINK = Link(300e9, 22e-6, nvlink=True, bound=478e9)
NO_LINK = Link(1e15, 0.0, nvlink=False, bound=63e9)


@dataclass(slots=True)
class Spell:
    """What one card did from `begin` to `end`: seconds of each, bytes over each link, and the state of its clock."""

    begin: float
    end: float
    resident: float
    memory: float
    pcie_in: float
    pcie_out: float
    nvlink: float
    nvlink_before: float
    watts: float
    clock: float
    celsius: float
    reasons: tuple[str, ...]


@dataclass(slots=True)
class Card:
    """One card over time."""

    chip: Chip
    limit_w: float
    cooling: float = 0.07
    """Kelvin a watt, from the chip to the air that comes in."""
    air_c: float = 26.0
    appetite: float = 1.0
    """How much more than usual this work's arithmetic draws: data with many ones and dense formats draw more."""
    brake: float = 1.0
    """What the board's power supply lets the clock be; below 1 it pulls the brake."""
    clock: float = 1.0
    celsius: float = 45.0
    reasons: tuple[str, ...] = ()
    spells: list[Spell] = field(default_factory=list)
    nvlink_total: float = 0.0

    def run(
        self, begin: float, end: float, *, resident: float, memory: float, arithmetic: float, **links: float
    ) -> None:
        """Spend a time with a kernel resident, memory at work and arithmetic at work for so many seconds each."""
        time = max(end - begin, 1e-9)
        shares = [min(1.0, part / time) for part in (resident, memory, arithmetic)]
        wanted = [watt * share for watt, share in zip(self._watts(), shares, strict=True)]
        self._settle(wanted, time)
        watts = self.chip.idle_w + wanted[1] + (wanted[0] + wanted[2]) * self.clock**2
        self.spells.append(
            Spell(
                begin, end, min(resident, time), min(memory, time),
                links.get("pcie_in", 0.0), links.get("pcie_out", 0.0), links.get("nvlink", 0.0), self.nvlink_total,
                min(watts, self.limit_w * 1.01), self.clock, self.celsius, self.reasons,
            )
        )  # fmt: skip
        self.nvlink_total += links.get("nvlink", 0.0)

    def _watts(self) -> tuple[float, float, float]:
        return self.chip.spin_w, self.chip.memory_w, self.chip.arithmetic_w * self.appetite

    def _settle(self, wanted: list[float], time: float) -> None:
        """Let the clock follow power and heat, as far as the time allows."""
        moving = wanted[0] + wanted[2]
        room = self.limit_w - self.chip.idle_w - wanted[1]
        by_power = min(1.0, math.sqrt(max(room, 1.0) / moving)) if moving > room else 1.0
        drawn = self.chip.idle_w + wanted[1] + moving * min(by_power, self.brake) ** 2
        steady = self.air_c + self.cooling * drawn
        self.celsius += (steady - self.celsius) * min(1.0, time / 12.0)
        over = self.celsius - (self.chip.slowdown_c - 3)
        by_heat = max(0.35, 1 - 0.12 * over) if over > 0 else 1.0
        target = max(0.3, min(by_power, by_heat, self.brake))
        self.clock += (target - self.clock) * min(1.0, time / 0.5)
        if over > 0:
            self.celsius = min(self.celsius, self.chip.slowdown_c + 1)
        self.reasons = tuple(
            name
            for name, holds in (
                ("sw_power_cap", by_power < 0.995),
                ("sw_thermal_slowdown", by_heat < 0.99),
                ("hw_power_brake_slowdown", self.brake < 1),
                ("hw_slowdown", self.brake < 1),
            )
            if holds
        )
