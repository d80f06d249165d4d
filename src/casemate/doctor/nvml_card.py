"""What the management library tells about one card: a table of questions, each answered or refused on its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from ctypes import byref, c_int, c_void_p
from dataclasses import replace
from typing import Any, Final

from casemate.doctor import nvml_links
from casemate.doctor.machine import Card
from casemate.doctor.nvml import (
    Addressing,
    Attributes,
    Margin,
    Memory,
    MemoryV2,
    Nvml,
    PciInfo,
    Temperature,
)
from casemate.errors import CasemateError

Facts = dict[str, Any]
Question = Callable[[Nvml, c_void_p], Facts]
Questions = tuple[tuple[str, Question], ...]
"""Names of the facts that a question answers, and the question."""

_NOT_SUPPORTED: Final = 3
_MHZ: Final = 1_000_000
_MIB: Final = 1 << 20
_CLOCK_SM, _CLOCK_MEMORY = 1, 2
_SLOWDOWN: Final = 1
_SLOWDOWN_MARGIN: Final = 194
_UNCORRECTED, _SINCE_LOADED = 1, 0
_SHARES_ADDRESSES: Final = 2
"""Addressing mode ATS: processor and card walk the same page tables (GH200, GB10)."""

_THROTTLE = (
    (0x002, "applications_clocks_setting"),
    (0x004, "sw_power_cap"),
    (0x008, "hw_slowdown"),
    (0x010, "sync_boost"),
    (0x020, "sw_thermal_slowdown"),
    (0x040, "hw_thermal_slowdown"),
    (0x080, "hw_power_brake_slowdown"),
    (0x100, "display_clock_setting"),
)
_COMPUTE_MODES = ("default", "exclusive_thread", "prohibited", "exclusive_process")
_VIRTUAL = ("", "", "vgpu", "host_vgpu", "host_vsga")
_PASSTHROUGH: Final = 1


def cards(nvml: Nvml) -> Iterator[tuple[Card, c_void_p | None]]:
    """Every card, and after one that is cut into slices each slice, with its handle (None where it has none).

    A card that cannot even be opened (lost, no permission) is told all the same.

    Raises:
        CasemateError: the driver does not say how many there are.
    """
    for index in range(nvml.number("nvmlDeviceGetCount_v2")):
        try:
            handle = nvml.handle("nvmlDeviceGetHandleByIndex_v2", index)
        except CasemateError as error:
            yield Card(index, "", unknown=(("card", str(error)),)), None
            continue
        card = _card(nvml, handle, index=index)
        yield card, handle
        if card.mig_parent:
            yield from _slices(nvml, handle, card=card)


def _card(nvml: Nvml, handle: c_void_p, *, index: int) -> Card:
    facts, unknown = _asked(nvml, handle, questions=_QUESTIONS)
    shared = facts.pop("addresses", None) == _SHARES_ADDRESSES
    if shared and unknown.get("memory_total_bytes") == nvml.words(_NOT_SUPPORTED) and not facts.get("mig_parent"):
        facts["unified"] = True
    unknown.pop("addresses", None)
    given: Facts = {"name": ""} | facts
    return Card(index=index, **given, unknown=tuple(unknown.items()))


def _asked(nvml: Nvml, handle: c_void_p, *, questions: Questions) -> tuple[Facts, dict[str, str]]:
    """What was answered, and for every fact that was not, why."""
    facts: Facts = {}
    unknown: dict[str, str] = {}
    for names, ask in questions:
        try:
            facts |= ask(nvml, handle)
        except CasemateError as error:
            unknown |= dict.fromkeys(names.split(), str(error))
    return facts, {name: why for name, why in unknown.items() if name not in facts}


def _slices(nvml: Nvml, parent: c_void_p, *, card: Card) -> Iterator[tuple[Card, c_void_p | None]]:
    try:
        most = nvml.number("nvmlDeviceGetMaxMigDeviceCount", parent)
    except CasemateError:
        return
    for place in range(most):
        try:
            handle = nvml.handle("nvmlDeviceGetMigDeviceHandleByIndex", parent, place)
        except CasemateError:  # places are numbered through, but only some are taken
            continue
        yield _slice(nvml, handle, parent=card), handle


def _slice(nvml: Nvml, handle: c_void_p, *, parent: Card) -> Card:
    facts, unknown = _asked(nvml, handle, questions=_QUESTIONS_OF_SLICES)
    profile = re.search(r"\bMIG (\S+)", str(facts.get("name", "")))
    facts["mig"] = profile[1] if profile else facts.get("mig", "unknown")
    of_its_own: Facts = dict.fromkeys(("memory_total_bytes", "memory_used_bytes", "multiprocessors"))
    none_between: Facts = {"nvlinks_active": None, "nvlink_bytes_per_s": None, "fabric_state": "", "processes": ()}
    given: Facts = {"mig_parent": False, "unknown": tuple(unknown.items())} | of_its_own | none_between | facts
    return replace(parent, **given)


def _memory(nvml: Nvml, handle: c_void_p) -> Facts:
    def newer() -> Memory | MemoryV2:
        memory = MemoryV2()
        nvml.versioned("nvmlDeviceGetMemoryInfo_v2", handle, struct=memory, version=2)
        return memory

    def older() -> Memory | MemoryV2:
        memory = Memory()
        nvml.call("nvmlDeviceGetMemoryInfo", handle, byref(memory))
        return memory

    memory = nvml.either(newer, older)
    if not memory.total:
        raise CasemateError(nvml.words(_NOT_SUPPORTED))
    return {"memory_total_bytes": memory.total, "memory_used_bytes": memory.used}


def _pci(nvml: Nvml, handle: c_void_p) -> Facts:
    info = PciInfo()
    nvml.call("nvmlDeviceGetPciInfo_v3", handle, byref(info))
    return {"bus": info.name.decode(errors="replace").lower(), "device_id": info.device_and_vendor >> 16}


def _capability(nvml: Nvml, handle: c_void_p) -> Facts:
    major, minor = c_int(), c_int()
    nvml.call("nvmlDeviceGetCudaComputeCapability", handle, byref(major), byref(minor))
    return {"compute_capability": (major.value, minor.value)}


def _remapped(nvml: Nvml, handle: c_void_p) -> Facts:
    _, _, pending, failed = nvml.numbers("nvmlDeviceGetRemappedRows", handle, count=4)
    return {"remapped_rows_pending": bool(pending), "remapped_rows_failed": bool(failed)}


def throttle(nvml: Nvml, handle: c_void_p) -> Facts:
    """The reasons that hold a card's clocks back now, in the driver's words."""
    reasons = nvml.either(
        lambda: nvml.big("nvmlDeviceGetCurrentClocksEventReasons", handle),
        lambda: nvml.big("nvmlDeviceGetCurrentClocksThrottleReasons", handle),  # its name before driver 535
    )
    return {"throttle": tuple(name for bit, name in _THROTTLE if reasons & bit)}


def _temperature(nvml: Nvml, handle: c_void_p) -> int:
    def newer() -> int:
        found = Temperature()
        nvml.versioned("nvmlDeviceGetTemperatureV", handle, struct=found, version=1)
        return int(found.celsius)

    return nvml.either(newer, lambda: nvml.number("nvmlDeviceGetTemperature", handle, 0))


def _slowdown(nvml: Nvml, handle: c_void_p) -> int:
    """Newer cards tell how far they are from their limit, and how far from it they slow down."""

    def by_margin() -> int:
        margin = Margin()
        nvml.versioned("nvmlDeviceGetMarginTemperature", handle, struct=margin, version=1)
        slow = c_int(nvml.field(handle, _SLOWDOWN_MARGIN) & 0xFFFFFFFF).value
        return _temperature(nvml, handle) + int(margin.celsius) - slow

    return nvml.either(by_margin, lambda: nvml.number("nvmlDeviceGetTemperatureThreshold", handle, _SLOWDOWN))


def _mig(nvml: Nvml, handle: c_void_p) -> Facts:
    current, _ = nvml.numbers("nvmlDeviceGetMigMode", handle, count=2)
    return {"mig_parent": current == 1}


def _virtual(nvml: Nvml, handle: c_void_p) -> Facts:
    mode = nvml.number("nvmlDeviceGetVirtualizationMode", handle)
    virtual = _VIRTUAL[mode] if mode < len(_VIRTUAL) else f"mode {mode}"
    return {"virtual": virtual, "passthrough": mode == _PASSTHROUGH}


def _compute_mode(nvml: Nvml, handle: c_void_p) -> Facts:
    mode = nvml.number("nvmlDeviceGetComputeMode", handle)
    return {"compute_mode": _COMPUTE_MODES[mode] if mode < len(_COMPUTE_MODES) else f"mode {mode}"}


def _addresses(nvml: Nvml, handle: c_void_p) -> Facts:
    mode = Addressing()
    nvml.versioned("nvmlDeviceGetAddressingMode", handle, struct=mode, version=1)
    return {"addresses": mode.value}


def _attributes(nvml: Nvml, handle: c_void_p) -> Facts:
    found = Attributes()
    nvml.call("nvmlDeviceGetAttributes_v2", handle, byref(found))
    profile = f"{found.gpu_slices}g.{round(found.memory_mib / 1024)}gb"
    if found.compute_slices != found.gpu_slices:
        profile = f"{found.compute_slices}c.{profile}"
    return {
        "multiprocessors": found.multiprocessors,
        "memory_total_bytes": found.memory_mib * _MIB,
        "mig": profile,
    }


def _one(name: str, function: str, *arguments: int, times: int = 1) -> tuple[str, Question]:
    return name, lambda nvml, handle: {name: nvml.number(function, handle, *arguments) * times}


def _of(name: str, ask: Callable[[Nvml, c_void_p], Any]) -> tuple[str, Question]:
    return name, lambda nvml, handle: {name: ask(nvml, handle)}


_QUESTIONS: Questions = (
    _of("name", lambda nvml, handle: nvml.text("nvmlDeviceGetName", handle)),
    _of("uuid", lambda nvml, handle: nvml.text("nvmlDeviceGetUUID", handle)),
    ("bus device_id", _pci),
    ("mig_parent", _mig),
    ("addresses", _addresses),
    ("memory_total_bytes memory_used_bytes", _memory),
    ("compute_capability", _capability),
    _one("memory_clock_hz", "nvmlDeviceGetMaxClockInfo", _CLOCK_MEMORY, times=_MHZ),
    _one("memory_bus_bits", "nvmlDeviceGetMemoryBusWidth"),
    _one("sm_clock_hz", "nvmlDeviceGetClockInfo", _CLOCK_SM, times=_MHZ),
    _one("sm_clock_max_hz", "nvmlDeviceGetMaxClockInfo", _CLOCK_SM, times=_MHZ),
    _one("pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration"),
    _one("pcie_generation_max", "nvmlDeviceGetMaxPcieLinkGeneration"),
    _one("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth"),
    _one("pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth"),
    _of("ecc_enabled", lambda nvml, handle: nvml.numbers("nvmlDeviceGetEccMode", handle, count=2)[0] == 1),
    _of(
        "ecc_uncorrected",
        lambda nvml, handle: nvml.big("nvmlDeviceGetTotalEccErrors", handle, _UNCORRECTED, _SINCE_LOADED),
    ),
    ("remapped_rows_pending remapped_rows_failed", _remapped),
    _of("power_w", lambda nvml, handle: nvml.number("nvmlDeviceGetPowerUsage", handle) / 1000),
    _of("power_limit_w", lambda nvml, handle: nvml.number("nvmlDeviceGetEnforcedPowerLimit", handle) / 1000),
    _of(
        "power_limit_default_w",
        lambda nvml, handle: nvml.number("nvmlDeviceGetPowerManagementDefaultLimit", handle) / 1000,
    ),
    _of("temperature_c", _temperature),
    _of("temperature_slowdown_c", _slowdown),
    ("throttle", throttle),
    _of("persistence", lambda nvml, handle: nvml.number("nvmlDeviceGetPersistenceMode", handle) == 1),
    ("compute_mode", _compute_mode),
    ("virtual passthrough", _virtual),
    ("nvlinks_active nvlink_bytes_per_s", nvml_links.links),
    ("fabric_state", nvml_links.fabric),
    _of("processes", lambda nvml, handle: nvml.processes(handle)),
)
_QUESTIONS_OF_SLICES: Questions = (
    _of("name", lambda nvml, handle: nvml.text("nvmlDeviceGetName", handle)),
    _of("uuid", lambda nvml, handle: nvml.text("nvmlDeviceGetUUID", handle)),
    ("multiprocessors", _attributes),
    ("memory_total_bytes memory_used_bytes", _memory),
)
