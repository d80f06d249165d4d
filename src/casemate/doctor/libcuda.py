"""The driver's CUDA library (`libcuda.so.1`), which an engine needs and nvidia-smi never touches.

So nvidia-smi may be fine while `cuInit` fails (802: the fabric is not up; 803: library and kernel module differ; 804: a
forward-compatibility library on a card that it is not for), and only a real call tells. No context is made: `cuInit`
and the questions here take no memory of a card. Symbols and attribute numbers: the CUDA driver API reference.

A wedged driver keeps a call for ever: only `driver_child` runs this, in a process of its own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from ctypes import byref, c_char_p, c_int, c_size_t
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

LIBRARY = "libcuda.so.1"

_NO_SYMBOL: Final = 500
_MULTIPROCESSORS, _INTEGRATED = 16, 18
_MEMORY_CLOCK_KHZ, _MEMORY_BUS_BITS, _CLOCK_KHZ = 36, 37, 13
_MAJOR, _MINOR = 75, 76


@dataclass(frozen=True, slots=True)
class Device:
    """A card as CUDA sees it. `index` is CUDA's own count, which CUDA_VISIBLE_DEVICES and its order bend.

    Attributes:
        memory_bytes: what CUDA calls the card's total memory.
        integrated: its memory is the host's.
        peers: `index` of the devices whose memory it can read.
    """

    index: int
    name: str = ""
    uuid: str = ""
    bus: str = ""
    memory_bytes: int | None = None
    compute_capability: tuple[int, int] | None = None
    multiprocessors: int | None = None
    memory_clock_hz: int | None = None
    memory_bus_bits: int | None = None
    sm_clock_max_hz: int | None = None
    integrated: bool | None = None
    peers: tuple[int, ...] = ()


class Cuda:
    """A loaded CUDA library.

    Args:
        library: what `ctypes.CDLL` gave, or anything with the same functions.
    """

    def __init__(self, library: Any) -> None:
        self._library = library

    def start(self) -> int:
        """Call `cuInit`: 0, or the error's number."""
        return self._call("cuInit", 0)

    def version(self) -> tuple[int, int] | None:
        """The CUDA that the library offers, such as (13, 0); it answers before `cuInit` and without a card."""
        number = self._number("cuDriverGetVersion")
        return (number // 1000, number % 1000 // 10) if number else None

    def words(self, status: int) -> str:
        """Name and text of an error, as CUDA puts them."""
        said = [self._said(function, status) for function in ("cuGetErrorName", "cuGetErrorString")]
        return ": ".join(filter(None, said)) or f"error {status}"

    def devices(self) -> Iterator[Device]:
        """Every device that CUDA shows us; call `start` before."""
        count = self._number("cuDeviceGetCount") or 0
        for index in range(count):
            handle = self._number("cuDeviceGet", last=(index,))
            if handle is not None:
                yield self._device(index, handle, count=count)

    def _device(self, index: int, handle: int, *, count: int) -> Device:
        major, minor = self._attribute(handle, _MAJOR), self._attribute(handle, _MINOR)
        integrated = self._attribute(handle, _INTEGRATED)
        return Device(
            index=index,
            name=self._text("cuDeviceGetName", handle),
            uuid=self._uuid(handle),
            bus=self._bus(handle),
            memory_bytes=self._memory(handle),
            compute_capability=(major, minor) if major is not None and minor is not None else None,
            multiprocessors=self._attribute(handle, _MULTIPROCESSORS),
            memory_clock_hz=_thousand(self._attribute(handle, _MEMORY_CLOCK_KHZ)),
            memory_bus_bits=self._attribute(handle, _MEMORY_BUS_BITS) or None,
            sm_clock_max_hz=_thousand(self._attribute(handle, _CLOCK_KHZ)),
            integrated=None if integrated is None else integrated == 1,
            peers=tuple(other for other in range(count) if other != index and self._reads(handle, other)),
        )

    def _call(self, name: str, *arguments: Any) -> int:
        try:
            function = getattr(self._library, name)
        except AttributeError:
            return _NO_SYMBOL
        return int(function(*arguments))

    def _number(self, name: str, *, last: tuple[int, ...] = ()) -> int | None:
        value = c_int()
        return value.value if self._call(name, byref(value), *last) == 0 else None

    def _attribute(self, handle: int, number: int) -> int | None:
        return self._number("cuDeviceGetAttribute", last=(number, handle))

    def _reads(self, handle: int, other: int) -> bool:
        theirs = self._number("cuDeviceGet", last=(other,))
        return theirs is not None and self._number("cuDeviceCanAccessPeer", last=(handle, theirs)) == 1

    def _memory(self, handle: int) -> int | None:
        total = c_size_t()
        return total.value or None if self._call("cuDeviceTotalMem_v2", byref(total), handle) == 0 else None

    def _text(self, name: str, handle: int) -> str:
        buffer = ctypes.create_string_buffer(256)
        return buffer.value.decode(errors="replace") if self._call(name, buffer, 256, handle) == 0 else ""

    def _bus(self, handle: int) -> str:
        bus = self._text("cuDeviceGetPCIBusId", handle).lower()
        return f"{'0' * (16 - len(bus))}{bus}" if bus else ""  # as NVML writes it, its domain with eight digits

    def _uuid(self, handle: int) -> str:
        raw = ctypes.create_string_buffer(16)
        for name in ("cuDeviceGetUuid_v2", "cuDeviceGetUuid"):  # the newer one gives a MIG slice its own
            if self._call(name, raw, handle) == 0:
                return f"GPU-{UUID(bytes=raw.raw)}"
        return ""

    def _said(self, function: str, status: int) -> str:
        said = c_char_p()
        done = self._call(function, status, byref(said)) == 0
        return said.value.decode(errors="replace") if done and said.value else ""


def _thousand(khz: int | None) -> int | None:
    return khz * 1000 if khz else None
