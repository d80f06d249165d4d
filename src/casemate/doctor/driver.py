"""Asks the driver what it knows, in a process of its own, and comes back in time even if the driver does not.

What was told until the time was over is kept; what was not is unknown, and the reason names the step that never ended.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

from casemate.doctor import codec
from casemate.doctor.bounded import hear
from casemate.doctor.libcuda import Device
from casemate.doctor.machine import Card, Driver, Pair
from casemate.errors import UsageError

T = TypeVar("T")

LIMIT_S = 20.0
"""A driver that is not kept loaded (no persistence mode) takes seconds a card to come up; a wedged one for ever."""
QUIET_S = 8.0
"""No single step of it takes so long: a driver that has told nothing new for this time hangs."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What the driver told: None for a driver of which neither library is there. `unknown` as in `Machine`.

    `denied` are device nodes that did not open, and why.
    """

    driver: Driver | None = None
    cards: tuple[Card, ...] = ()
    pairs: tuple[Pair, ...] = ()
    unknown: tuple[tuple[str, str], ...] = ()
    denied: tuple[tuple[str, str], ...] = ()


def ask(variables: Mapping[str, str], *, limit_s: float = LIMIT_S) -> Answers:
    """Ask NVML and libcuda on this host.

    Args:
        variables: the environment that the libraries see: the loader's path and CUDA's own variables.
        limit_s: when to give up.
    """
    way = os.pathsep.join(filter(None, sys.path))  # an empty entry would be the working folder
    argv = [sys.executable, "-P", "-m", "casemate.doctor.driver_child"]
    heard = hear(argv, limit_s=limit_s, quiet_s=QUIET_S, environment={**variables, "PYTHONPATH": way})
    return told(heard.stdout, broken=heard.broken)


def told(lines: str, *, broken: str = "") -> Answers:
    """The answers in what the child wrote.

    Args:
        lines: JSON objects, one a line; what else a library may have printed is passed over.
        broken: why the child did not come to its end; empty if it did.
    """
    driver: dict[str, Any] = {}
    cards: list[Card] = []
    pairs: list[Pair] = []
    devices: list[Device] = []
    unknown: dict[str, str] = {}
    denied: dict[str, str] = {}
    step, all_cards = "starting", False
    for line in _objects(lines):
        step = str(line.get("asking", step))
        all_cards |= line.get("told") == "cards"
        driver |= line.get("driver", {})
        cards += _read(Card, line, name="card")
        pairs += _read(Pair, line, name="pair")
        devices += _read(Device, line, name="device")
        unknown |= [line["unknown"]] if "unknown" in line else []
        denied |= [line["denied"]] if "denied" in line else []
    if broken:
        unknown = _cut_off(driver, f"{step}: {broken}", all_cards=all_cards) | unknown
    whole = _read(Driver, {"driver": driver}, name="driver")
    found = whole[0] if whole and _says_anything(driver) else None
    merged, strangers = _with_devices(cards, devices)
    between = tuple(pairs) or _peers(devices, merged)
    return Answers(found, merged, between, tuple((unknown | strangers).items()), tuple(denied.items()))


def _objects(lines: str) -> Iterator[dict[str, Any]]:
    for line in lines.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def _read(kind: type[T], line: dict[str, Any], *, name: str) -> list[T]:
    if name not in line:
        return []
    try:
        return [codec.facts(kind, line[name])]
    except UsageError:  # cut off in the middle, or a library wrote into it
        return []


def _says_anything(driver: dict[str, Any]) -> bool:
    return any(driver.get(name) is not None for name in ("version", "cuda", "nvml", "cuinit", "libcuda"))


def _cut_off(driver: dict[str, Any], why: str, *, all_cards: bool) -> dict[str, str]:
    """What the child would still have told."""
    asked = (("driver.nvml", "nvml" in driver), ("driver.cuinit", "cuinit" in driver), ("cards", all_cards))
    return {name: why for name, answered in asked if not answered}


def _with_devices(cards: list[Card], devices: list[Device]) -> tuple[tuple[Card, ...], dict[str, str]]:
    """The cards with what only CUDA knows; CUDA's own list where the management library had none."""
    if not cards:
        return tuple(_of_cuda(device) for device in devices), {}
    found = []
    for card in cards:
        same = [device for device in devices if _identity(device) == _identity(card)]
        found.append(_joined(card, same[0]) if same else card)
    known = {_identity(card) for card in cards}
    strange = [device.uuid for device in devices if _identity(device) not in known]
    why = {"cards": f"CUDA shows {', '.join(strange)}, which NVML does not"} if strange else {}
    return tuple(found), why


def _joined(card: Card, device: Device) -> Card:
    unified = card.unified or bool(device.integrated)
    total = card.memory_total_bytes or (device.memory_bytes if unified else None)
    return replace(
        card,
        unified=unified,
        memory_total_bytes=total,
        memory_cuda_bytes=device.memory_bytes,
        compute_capability=card.compute_capability or device.compute_capability,
        multiprocessors=card.multiprocessors or device.multiprocessors,
        memory_clock_hz=card.memory_clock_hz or device.memory_clock_hz,
        memory_bus_bits=card.memory_bus_bits or device.memory_bus_bits,
        sm_clock_max_hz=card.sm_clock_max_hz or device.sm_clock_max_hz,
    )


def _of_cuda(device: Device) -> Card:
    unified = bool(device.integrated)
    why = (("memory_used_bytes", "NVML did not answer"),)
    bare = Card(device.index, device.name, device.uuid, device.bus, memory_total_bytes=device.memory_bytes, unknown=why)
    return replace(_joined(bare, device), unified=unified)


def _peers(devices: list[Device], cards: tuple[Card, ...]) -> tuple[Pair, ...]:
    """Who reads whose memory, as CUDA tells it; of no use but where the management library told nothing."""
    numbers = {_identity(card): card.index for card in cards}
    shown = [(device, numbers[_identity(device)]) for device in devices if _identity(device) in numbers]
    return tuple(
        Pair(number, other_number, "", peer_access=other.index in device.peers)
        for (device, number), (other, other_number) in combinations(shown, 2)
    )


def _identity(one: Card | Device) -> str:
    """A UUID without its kind (NVML and CUDA do not agree on `GPU-` and `MIG-` for a slice), else the address."""
    return one.uuid.partition("-")[2].lower() or one.bus


def of_kernel(driver: Driver, kernel_module: str) -> Driver:
    """The driver with its kernel side, and so with whether libcuda is its own or one put before it.

    A forward-compatibility libcuda lies in a folder `compat`, and its file carries another version than the module.
    """
    name = Path(driver.libcuda).name
    version = name.partition(".so.")[2]
    foreign = "compat" in Path(driver.libcuda).parts or (
        "." in version and bool(kernel_module) and version != kernel_module
    )
    return replace(driver, kernel_module=kernel_module, compat_libcuda=driver.libcuda if foreign else "")
