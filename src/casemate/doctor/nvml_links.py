"""What the management library tells about a card's NVLinks and the fabric that they are part of."""

from __future__ import annotations

from ctypes import c_void_p
from typing import Any, Final

from casemate.doctor.nvml import FabricInfo, Nvml
from casemate.errors import CasemateError

Facts = dict[str, Any]

_MEGABYTE: Final = 1_000_000
_LINK_SPEED, _LINK_SPEED_COMMON = 164, 90
_MOST_LINKS: Final = 36
_FABRIC = ("not supported", "not started", "in progress", "completed")
_COMPLETED: Final = 3


def fabric(nvml: Nvml, handle: c_void_p) -> Facts:
    """`fabric_state` of a Card. Raises CasemateError with the driver's words if it does not tell."""
    fabric = FabricInfo()
    nvml.versioned("nvmlDeviceGetGpuFabricInfoV", handle, struct=fabric, version=2)
    if fabric.state == _COMPLETED and fabric.status:
        return {"fabric_state": f"failed: {nvml.words(fabric.status)}"}
    return {"fabric_state": _FABRIC[fabric.state] if fabric.state < len(_FABRIC) else f"state {fabric.state}"}


def links(nvml: Nvml, handle: c_void_p) -> Facts:
    """`nvlinks_active` and `nvlink_bytes_per_s` of a Card; raises as `fabric` does.

    The first link's refusal is the card's; a later one's ends the counting.
    """
    states = [nvml.number("nvmlDeviceGetNvLinkState", handle, 0)]
    for link in range(1, _MOST_LINKS):
        try:
            states.append(nvml.number("nvmlDeviceGetNvLinkState", handle, link))
        except CasemateError:
            break
    active = [link for link, state in enumerate(states) if state == 1]
    speeds = [_speed(nvml, handle, link=link) for link in active]
    known = [speed for speed in speeds if speed is not None]
    total = sum(known) if known and len(known) == len(speeds) else None
    return {"nvlinks_active": len(active), "nvlink_bytes_per_s": total}


def _speed(nvml: Nvml, handle: c_void_p, *, link: int) -> int | None:
    for field, scope in ((_LINK_SPEED, link), (_LINK_SPEED_COMMON, 0)):
        try:
            return nvml.field(handle, field, scope=scope) * _MEGABYTE
        except CasemateError:
            continue
    return None
