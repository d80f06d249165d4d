"""What `nvidia-smi -q` prints, as XML (`-x`) or as indented text: both are read into one tree, and that into Cards.

Pure: a text in, Cards out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from casemate.doctor import nvidia_smi as cell
from casemate.doctor.machine import Card
from casemate.doctor.nvidia_smi_tree import Node, tree

_REASON = re.compile(r"^clocks_(?:event|throttle)_reason_")
_REASONS: Final = {"idle": "gpu_idle", "display_clocks_setting": "display_clock_setting"}
_VIRTUAL: Final = {"vgpu": "vgpu", "host vgpu": "host_vgpu", "host vsga": "host_vsga"}


def cards(text: str, *, where: str = "") -> tuple[Card, ...]:
    """The cards of a report, in the driver's order; after a card that is cut into slices, every slice.

    Args:
        text: what `nvidia-smi -q` or `nvidia-smi -q -x` printed.
        where: the recording's name, for the errors.

    Raises:
        UsageError: see `nvidia_smi_tree.tree`.
    """
    found: list[Card] = []
    for index, node in enumerate(tree(text, where=where).all("gpu")):
        card = _card(index, node)
        found += [card, *_slices(node, card)]
    return tuple(found)


def _card(index: int, node: Node) -> Card:
    facts: dict[str, Any] = {"name": ""}
    unknown = []
    for name, read, paths in _FACTS:
        try:
            facts[name] = read(node.first(*paths))
        except ValueError as error:
            unknown.append((name, str(error)))
    mig = facts.get("mig_parent", False)
    facts["unified"] = cell.shares_the_hosts_memory(dict(unknown).get("memory_total_bytes", ""), mig=mig)
    for name, ask in _OF_SEVERAL:
        try:
            facts |= ask(node)
        except ValueError as error:
            unknown.append((name, str(error)))
    return Card(index=index, **facts, unknown=tuple(unknown))


def _slices(node: Node, parent: Card) -> Iterator[Card]:
    """Slices as the report has them: it names no profile, which `nvidia-smi -L` does."""
    for part in [*node.all("mig_devices/mig_device"), *node.all("mig_device")]:
        facts: dict[str, Any] = {}
        unknown = []
        for name, read, paths in _FACTS_OF_SLICES:
            try:
                facts[name] = read(part.first(*paths))
            except ValueError as error:
                unknown.append((name, str(error)))
        none: dict[str, Any] = dict.fromkeys(("memory_total_bytes", "memory_used_bytes", "multiprocessors"))
        given = none | {"uuid": "", "mig": "unknown", "mig_parent": False, "unified": False, "processes": ()} | facts
        yield replace(parent, **given, unknown=tuple(unknown))


def _throttle(node: Node) -> dict[str, Any]:
    groups = [*node.all("clocks_event_reasons"), *node.all("clocks_throttle_reasons")]
    if not groups or not groups[0].below:
        raise ValueError(groups[0].value if groups else "nvidia-smi does not print it")
    every = [reason for group in groups[:1] for one in group.below for reason in (one, *one.below)]
    names = [_REASON.sub("", reason.name) for reason in every if reason.value == "Active"]
    return {"throttle": tuple(name for one in names if (name := _REASONS.get(one, one)) != "gpu_idle")}


def _uncorrected(node: Node) -> dict[str, Any]:
    counts = [*node.all("ecc_errors/volatile"), *node.all("ecc_errors/volatile/double_bit")]
    values = [one.value for group in counts for one in group.below if "uncorrectable" in one.name]
    values = values or [one.value for group in counts[1:] for one in group.below if one.name == "total"]
    if not values:
        raise ValueError("nvidia-smi does not print it")
    return {"ecc_uncorrected": sum(map(cell.whole, values))}


def _slowdown(node: Node) -> dict[str, Any]:
    """Newer cards tell how far they are from their limit, and how far from it they slow down."""
    try:
        here = cell.whole(node.first("temperature/gpu_temp_slow_threshold", "temperature/gpu_slowdown_temp"))
    except ValueError:
        now = cell.whole(node.first("temperature/gpu_temp", "temperature/gpu_current_temp"))
        left = cell.whole(node.first("temperature/gpu_temp_tlimit", "temperature/gpu_t.limit_temp"))
        slow = ("temperature/gpu_temp_slow_tlimit_threshold", "temperature/gpu_slowdown_t.limit_temp")
        here = now + left - cell.whole(node.first(*slow))
    return {"temperature_slowdown_c": here}


def _virtual(node: Node) -> dict[str, Any]:
    both = "gpu_virtualization_mode/virtualization_mode"
    text = cell.words(node.first(both)).lower()
    return {"virtual": _VIRTUAL.get(text, ""), "passthrough": text == "pass-through"}


def _fabric(node: Node) -> dict[str, Any]:
    state, status = cell.words(node.first("fabric/state")).lower(), node.first("fabric/status", "fabric/state")
    bad = state == "completed" and status.lower() not in ("success", "completed")
    return {"fabric_state": f"failed: {status}" if bad else state}


def _processes(node: Node) -> dict[str, Any]:
    xml = [(one, one.first("pid"), "used_memory") for one in node.all("processes/process_info")]
    text = [(one, one.value, "used_gpu_memory") for one in node.all("processes/process_id")]
    return {"processes": tuple((cell.whole(pid), _memory_or_none(one, used)) for one, pid, used in xml + text)}


def _memory_or_none(node: Node, name: str) -> int | None:
    try:
        return cell.memory(node.first(name))
    except ValueError:
        return None


Fact = tuple[str, Callable[[str], Any], tuple[str, ...]]
"""A field of Card, how its cell is read, and where it stands: first in the XML, then in the text of any release."""

_FACTS: tuple[Fact, ...] = (
    ("name", cell.words, ("product_name",)),
    ("uuid", cell.words, ("uuid", "gpu_uuid")),
    ("bus", cell.bus, ("pci/pci_bus_id", "pci/bus_id", "id")),
    ("device_id", cell.device, ("pci/pci_device_id", "pci/device_id")),
    ("mig_parent", cell.on, ("mig_mode/current_mig", "mig_mode/current")),
    ("memory_total_bytes", cell.memory, ("fb_memory_usage/total",)),
    ("memory_used_bytes", cell.memory, ("fb_memory_usage/used",)),
    ("memory_clock_hz", cell.clock, ("max_clocks/mem_clock", "max_clocks/memory")),
    ("sm_clock_hz", cell.clock, ("clocks/sm_clock", "clocks/sm")),
    ("sm_clock_max_hz", cell.clock, ("max_clocks/sm_clock", "max_clocks/sm")),
    (
        "pcie_generation",
        cell.whole,
        ("pci/pci_gpu_link_info/pcie_gen/current_link_gen", "pci/gpu_link_info/pcie_generation/current"),
    ),
    (
        "pcie_generation_max",
        cell.whole,
        ("pci/pci_gpu_link_info/pcie_gen/max_link_gen", "pci/gpu_link_info/pcie_generation/max"),
    ),
    (
        "pcie_width",
        cell.whole,
        ("pci/pci_gpu_link_info/link_widths/current_link_width", "pci/gpu_link_info/link_width/current"),
    ),
    (
        "pcie_width_max",
        cell.whole,
        ("pci/pci_gpu_link_info/link_widths/max_link_width", "pci/gpu_link_info/link_width/max"),
    ),
    ("ecc_enabled", cell.on, ("ecc_mode/current_ecc", "ecc_mode/current")),
    ("remapped_rows_pending", cell.on, ("remapped_rows/remapped_row_pending", "remapped_rows/pending")),
    (
        "remapped_rows_failed",
        cell.on,
        ("remapped_rows/remapped_row_failure", "remapped_rows/remapping_failure_occurred"),
    ),
    (
        "power_w",
        cell.quantity,
        (
            "gpu_power_readings/instant_power_draw",
            "gpu_power_readings/instantaneous_power_draw",
            "gpu_power_readings/power_draw",
            "power_readings/power_draw",
        ),
    ),
    (
        "power_limit_w",
        cell.quantity,
        (
            "gpu_power_readings/current_power_limit",
            "gpu_power_readings/enforced_power_limit",
            "power_readings/enforced_power_limit",
            "power_readings/power_limit",
        ),
    ),
    (
        "power_limit_default_w",
        cell.quantity,
        ("gpu_power_readings/default_power_limit", "power_readings/default_power_limit"),
    ),
    ("temperature_c", cell.whole, ("temperature/gpu_temp", "temperature/gpu_current_temp")),
    ("persistence", cell.on, ("persistence_mode",)),
    ("compute_mode", cell.mode, ("compute_mode",)),
)
_OF_SEVERAL: tuple[tuple[str, Callable[[Node], dict[str, Any]]], ...] = (
    ("throttle", _throttle),
    ("ecc_uncorrected", _uncorrected),
    ("temperature_slowdown_c", _slowdown),
    ("virtual", _virtual),
    ("fabric_state", _fabric),
    ("processes", _processes),
)
_FACTS_OF_SLICES: tuple[Fact, ...] = (
    ("uuid", cell.words, ("uuid", "mig_uuid")),
    ("memory_total_bytes", cell.memory, ("fb_memory_usage/total",)),
    ("memory_used_bytes", cell.memory, ("fb_memory_usage/used",)),
    (
        "multiprocessors",
        cell.whole,
        ("device_attributes/shared/multiprocessor_count",),
    ),
)
