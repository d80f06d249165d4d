"""What runs in the process that watches the cards: `python -m casemate.doctor.watch.nvml_live SECONDS`.

One JSON object a line: `{"cards": […]}` for every interval, `{"unknown": "why"}` if there is nothing to watch, and
`{"asking": "step"}` before what a wedged driver may never finish. Within an interval the cards are looked at several
times; shares, power and clocks are means over it. It ends with its standard input. `doctor.watch.cards` reads.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from ctypes import Structure, byref, c_uint, c_void_p
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TypeVar

from casemate.doctor import nvml_card
from casemate.doctor.driver_child import BESIDE_THE_PATH, opened
from casemate.doctor.machine import Card
from casemate.doctor.nvml import LIBRARY, Memory, MemoryV2, Nvml
from casemate.doctor.nvml_card import throttle
from casemate.doctor.watch.sample import CardSample, Use
from casemate.errors import CasemateError

T = TypeVar("T")

_LOOKS: Final = 8
"""In an interval. The driver's own shares cover a sixth of a second to a second, so more would see nothing new."""
_LEAST_LOOK_S: Final = 0.1
_CLOCK_SM: Final = 1
_SENT, _RECEIVED = 0, 1
_KILOBYTE: Final = 1000
_KIB: Final = 1024
_ALL_LINKS: Final = (1 << 32) - 1
_NVLINK: Final = (((202, 1), (204, 1)), ((138, _KIB), (139, _KIB)))
"""Fields for sent and received, newest driver's first, with the bytes of their unit; scope is a link, or all."""
_LANE: Final = {1: 250e6, 2: 500e6, 3: 984.6e6, 4: 1969.2e6, 5: 3938.5e6, 6: 7563e6}
"""Bytes a second of one lane and direction after line coding (PCI Express Base specification, by generation)."""


class Utilization(Structure):
    """`nvmlUtilization_t`: percent."""

    _fields_ = (("gpu", c_uint), ("memory", c_uint))


def main() -> None:
    """Watch until standard input ends."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    interval_s = float(sys.argv[1])
    _tell(asking=f"opening {LIBRARY}")
    library, why = opened(LIBRARY, BESIDE_THE_PATH)
    if library is None:
        _tell(unknown=why)
        return
    nvml = Nvml(library)
    _tell(asking="nvmlInit")
    if status := nvml.status("nvmlInit_v2"):
        _tell(unknown=nvml.words(status))
        return
    try:
        watched = [Watched(nvml, card, handle=handle) for card, handle in nvml_card.cards(nvml) if not card.mig]
    except CasemateError as error:
        _tell(unknown=str(error))
        return
    for told in intervals(watched, interval_s):
        _tell(cards=[asdict(card) for card in told])


def intervals(watched: list[Watched], interval_s: float) -> Iterator[list[CardSample]]:
    """One list of samples for each interval, without end."""
    looks = max(1, min(_LOOKS, int(interval_s / _LEAST_LOOK_S)))
    due = time.monotonic()
    while True:
        for _ in range(looks):
            for card in watched:
                card.look()
            due += interval_s / looks
            time.sleep(max(0.0, due - time.monotonic()))
        due = max(due, time.monotonic())  # a slow driver shall not be hurried afterwards
        yield [card.sample() for card in watched]


class Watched:
    """One card: what was seen of it since its last sample. Whatever a call refuses is None, and nothing else is.

    Args:
        nvml: the library.
        card: the card as it was found.
        handle: None for a card that could not even be opened.
    """

    def __init__(self, nvml: Nvml, card: Card, *, handle: c_void_p | None) -> None:
        self._nvml = nvml
        self._card = card
        self._handle = handle
        self._seen: dict[str, list[float]] = {}
        self._reasons: Counter[str] = Counter()
        self._looks = 0
        self._energy = self._energy_now()

    def look(self) -> None:
        """Look once."""
        if self._handle is None:
            return
        self._looks += 1
        nvml, handle = self._nvml, self._handle
        shares = _or_none(lambda: self._utilization(handle))
        self._note("busy", shares[0] if shares else None)
        self._note("memory_busy", shares[1] if shares else None)
        self._note("power_w", _or_none(lambda: nvml.number("nvmlDeviceGetPowerUsage", handle) / 1000))
        self._note("sm_clock_hz", _or_none(lambda: nvml.number("nvmlDeviceGetClockInfo", handle, _CLOCK_SM) * 1e6))
        self._reasons.update((_or_none(lambda: throttle(nvml, handle)) or {}).get("throttle", ()))
        if self._looks % 2:  # each takes the driver 20 ms
            self._note("pcie_sent_bytes_per_s", self._pcie(handle, _SENT))
            self._note("pcie_received_bytes_per_s", self._pcie(handle, _RECEIVED))

    def sample(self) -> CardSample:
        """What was seen since the last sample."""
        card, handle, looks = self._card, self._handle, self._looks
        if handle is None:
            return CardSample(index=card.index, name=card.name)
        memory = self._memory(handle)
        seen: dict[str, Any] = {name: sum(values) / len(values) for name, values in self._seen.items()}
        if (power := self._mean_power()) is not None:
            seen["power_w"] = power
        found = CardSample(
            index=card.index,
            name=card.name,
            memory_used_bytes=memory.used if memory else None,
            memory_total_bytes=memory.total if memory else None,
            pcie_bound_bytes_per_s=self._pcie_bound(handle),
            nvlink_sent_bytes=self._nvlink(handle, 0),
            nvlink_received_bytes=self._nvlink(handle, 1),
            nvlink_bound_bytes_per_s=card.nvlink_bytes_per_s,
            nvlinks_active=card.nvlinks_active,
            sm_clock_max_hz=card.sm_clock_max_hz,
            power_limit_w=self._watts("nvmlDeviceGetEnforcedPowerLimit", handle),
            power_limit_default_w=card.power_limit_default_w,
            temperature_c=_or_none(lambda: self._nvml.number("nvmlDeviceGetTemperature", handle, 0)),
            throttle=tuple((name, count / looks) for name, count in sorted(self._reasons.items())) if looks else (),
            processes=self._processes(handle),
            **seen,
        )
        self._seen, self._looks = {}, 0
        self._reasons.clear()
        return found

    def _note(self, name: str, value: float | None) -> None:
        if value is not None:
            self._seen.setdefault(name, []).append(value)

    def _utilization(self, handle: c_void_p) -> tuple[float, float]:
        shares = Utilization()
        self._nvml.call("nvmlDeviceGetUtilizationRates", handle, byref(shares))
        return shares.gpu / 100, shares.memory / 100

    def _pcie(self, handle: c_void_p, direction: int) -> float | None:
        return _or_none(lambda: self._nvml.number("nvmlDeviceGetPcieThroughput", handle, direction) * _KILOBYTE)

    def _pcie_bound(self, handle: c_void_p) -> float | None:
        """The link as it is now: a card at rest may have slowed it down."""
        generation = _or_none(lambda: self._nvml.number("nvmlDeviceGetCurrPcieLinkGeneration", handle))
        width = _or_none(lambda: self._nvml.number("nvmlDeviceGetCurrPcieLinkWidth", handle))
        return _LANE[generation] * width if generation in _LANE and width else None

    def _nvlink(self, handle: c_void_p, direction: int) -> int | None:
        """A counter over all links, by whichever field this driver has."""
        if not self._card.nvlinks_active:
            return None
        for fields in _NVLINK:
            field, unit = fields[direction]
            with suppress(CasemateError):
                return self._nvml.field(handle, field, scope=_ALL_LINKS) * unit
        return None

    def _watts(self, name: str, handle: c_void_p) -> float | None:
        return _or_none(lambda: self._nvml.number(name, handle) / 1000)

    def _memory(self, handle: c_void_p) -> Memory | MemoryV2 | None:
        newer, older = MemoryV2(), Memory()
        with suppress(CasemateError):
            self._nvml.versioned("nvmlDeviceGetMemoryInfo_v2", handle, struct=newer, version=2)
        if newer.total:
            return newer
        with suppress(CasemateError):
            self._nvml.call("nvmlDeviceGetMemoryInfo", handle, byref(older))
        return older if older.total else None

    def _energy_now(self) -> tuple[float, int] | None:
        if self._handle is None:
            return None
        told = _or_none(lambda: self._nvml.big("nvmlDeviceGetTotalEnergyConsumption", self._handle))
        return None if told is None else (time.monotonic(), told)

    def _mean_power(self) -> float | None:
        """From the energy counter (millijoules), which misses no peak; None where there is none or it began anew."""
        before, self._energy = self._energy, self._energy_now()
        if before is None or self._energy is None:
            return None
        (begin_s, begin), (end_s, end) = before, self._energy
        return (end - begin) / 1000 / (end_s - begin_s) if end_s > begin_s and end > begin else None

    def _processes(self, handle: c_void_p) -> tuple[Use, ...]:
        found = _or_none(lambda: self._nvml.processes(handle)) or ()
        return tuple(Use(pid, _name(pid), used) for pid, used in found)


def _or_none(ask: Callable[[], T]) -> T | None:
    try:
        return ask()
    except CasemateError:
        return None


def _name(pid: int) -> str:
    """A process's name, where it is visible from here."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _end_with_parent() -> None:
    """Even from inside a call that never returns: the driver is called without the interpreter's lock."""
    while sys.stdin.buffer.read(1):
        pass
    os._exit(0)


def _tell(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
