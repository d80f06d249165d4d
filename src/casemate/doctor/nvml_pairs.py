"""What the management library tells about two cards: what lies between them, and whether one may read the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ctypes import byref, c_void_p
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

from casemate.doctor import topology
from casemate.doctor.machine import Card, Pair
from casemate.doctor.nvml import Nvml, PciInfo
from casemate.errors import CasemateError

_MOST_LINKS: Final = 36
_READ, _NVLINK = 0, 2
_OK: Final = 0
_SWITCH: Final = 2


@dataclass(frozen=True, slots=True)
class _Ends:
    """Where a card's active links end: at how many switch ports, and at which PCI addresses how often."""

    switch: int = 0
    buses: dict[str, int] = field(default_factory=dict)


def pairs(nvml: Nvml, cards: Sequence[tuple[Card, c_void_p]]) -> Iterator[Pair]:
    """Every two of the cards; a pair of which nothing was answered is left out."""
    ends = {card.index: _ends(nvml, handle) for card, handle in cards}
    for (first, one), (second, other) in combinations(cards, 2):
        mine, theirs = ends[first.index], ends[second.index]
        both_switched = bool(mine.switch and theirs.switch)  # a virtual machine may not see what the links end at
        direct = mine.buses.get(second.bus, 0)
        bond = both_switched or _status(nvml, one, other=other, what=_NVLINK) == _OK
        link = topology.bonded(first, second, direct=direct, through_switch=bond)
        link = link or _ancestor(nvml, one, other=other)
        peer = _peer(nvml, one, other=other)
        if link or peer:
            yield topology.with_peer(Pair(first.index, second.index, link), peer)


def _ends(nvml: Nvml, handle: c_void_p) -> _Ends:
    switch = 0
    buses: dict[str, int] = {}
    for link in range(_MOST_LINKS):
        try:
            if nvml.number("nvmlDeviceGetNvLinkState", handle, link) != 1:
                continue
        except CasemateError:  # no such link, nor any after it
            break
        switch += _kind(nvml, handle, link=link) == _SWITCH
        if bus := _remote(nvml, handle, link=link):
            buses[bus] = buses.get(bus, 0) + 1
    return _Ends(switch, buses)


def _kind(nvml: Nvml, handle: c_void_p, *, link: int) -> int | None:
    try:
        return nvml.number("nvmlDeviceGetNvLinkRemoteDeviceType", handle, link)
    except CasemateError:
        return None


def _remote(nvml: Nvml, handle: c_void_p, *, link: int) -> str:
    info = PciInfo()
    try:
        nvml.call("nvmlDeviceGetNvLinkRemotePciInfo_v2", handle, link, byref(info))
    except CasemateError:
        return ""
    return str(info.name.decode(errors="replace")).lower()


def _ancestor(nvml: Nvml, one: c_void_p, *, other: c_void_p) -> str:
    try:
        return topology.ancestor(nvml.number("nvmlDeviceGetTopologyCommonAncestor", one, other))
    except CasemateError:
        return ""


def _peer(nvml: Nvml, one: c_void_p, *, other: c_void_p) -> str:
    status = _status(nvml, one, other=other, what=_READ)
    return "" if status is None else topology.peer_word(status)


def _status(nvml: Nvml, one: c_void_p, *, other: c_void_p, what: int) -> int | None:
    try:
        return nvml.number("nvmlDeviceGetP2PStatus", one, other, what)
    except CasemateError:
        return None
