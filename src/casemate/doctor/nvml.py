"""The driver's management library (`libnvidia-ml.so.1`), asked call by call.

Every call stands alone: a symbol that an old driver lacks and a fact that a card does not tell are the same thing here,
a `CasemateError` with the driver's words. Nothing is taken for zero. Symbols, numbers and struct layouts are those of
the NVML API reference (docs.nvidia.com/deploy/nvml-api) up to release 13.

A wedged driver keeps a call for ever: only `driver_child` runs this, in a process of its own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import Structure, byref, c_char, c_char_p, c_int, c_int64, c_uint, c_ulonglong, c_void_p
from typing import Any, TypeVar

from casemate.errors import CasemateError

T = TypeVar("T")

LIBRARY = "libnvidia-ml.so.1"

_SUCCESS = 0
_INSUFFICIENT_SIZE = 7
_NO_SYMBOL = 13
_TEXT_BYTES = 96
_UNKNOWN_U64 = (1 << 64) - 1
_SPARE_PROCESSES = 16
"""Room for processes that start between asking how many there are and asking which."""

_WORDS = {
    1: "Uninitialized", 2: "Invalid Argument", 3: "Not Supported", 4: "Insufficient Permissions", 6: "Not Found",
    7: "Insufficient Size", 9: "Driver Not Loaded", 10: "Timeout", 11: "Interrupt Request Issue",
    12: "NVML Shared Library Not Found", 13: "Function Not Found", 14: "Corrupted infoROM", 15: "GPU is lost",
    16: "GPU requires reset", 17: "The operating system has blocked the request",
    18: "RM has detected an NVML/RM version mismatch", 19: "In use by another client", 20: "Insufficient Memory",
    21: "No data", 25: "Argument version mismatch", 26: "Deprecated", 27: "Not ready", 28: "GPU not found",
    999: "Unknown Error",
}  # fmt: skip
"""For a library that does not name its own errors."""


class PciInfo(Structure):
    """`nvmlPciInfo_t` as `nvmlDeviceGetPciInfo_v3` fills it."""

    _fields_ = (
        ("legacy_bus", c_char * 16),
        ("domain", c_uint),
        ("bus", c_uint),
        ("device", c_uint),
        ("device_and_vendor", c_uint),
        ("subsystem", c_uint),
        ("name", c_char * 32),
    )


class Memory(Structure):
    """`nvmlMemory_t`: what the driver keeps for itself counts as used."""

    _fields_ = (("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong))


class MemoryV2(Structure):
    """`nvmlMemory_v2_t` (driver 510 on): what the driver keeps stands apart, as `reserved`."""

    _fields_ = (
        ("version", c_uint),
        ("total", c_ulonglong),
        ("reserved", c_ulonglong),
        ("free", c_ulonglong),
        ("used", c_ulonglong),
    )


class ProcessInfo(Structure):
    """`nvmlProcessInfo_t` of versions 2 and 3."""

    _fields_ = (("pid", c_uint), ("used", c_ulonglong), ("gpu_instance", c_uint), ("compute_instance", c_uint))


class FabricInfo(Structure):
    """`nvmlGpuFabricInfo_v2_t` (driver 545 on)."""

    _fields_ = (
        ("version", c_uint),
        ("cluster", c_char * 16),
        ("status", c_uint),
        ("clique", c_uint),
        ("state", c_uint),
        ("health", c_uint),
    )


class Addressing(Structure):
    """`nvmlDeviceAddressingMode_t`."""

    _fields_ = (("version", c_uint), ("value", c_uint))


class Temperature(Structure):
    """`nvmlTemperature_t`, which takes the place of a bare number from CUDA 13 on."""

    _fields_ = (("version", c_uint), ("sensor", c_uint), ("celsius", c_int))


class Margin(Structure):
    """`nvmlMarginTemperature_t`: how far the card is from its limit."""

    _fields_ = (("version", c_uint), ("celsius", c_int))


class Attributes(Structure):
    """`nvmlDeviceAttributes_t`, which only a MIG slice has."""

    _fields_ = (
        ("multiprocessors", c_uint),
        ("copy_engines", c_uint),
        ("decoders", c_uint),
        ("encoders", c_uint),
        ("jpegs", c_uint),
        ("ofas", c_uint),
        ("gpu_slices", c_uint),
        ("compute_slices", c_uint),
        ("memory_mib", c_ulonglong),
    )


class FieldValue(Structure):
    """`nvmlFieldValue_t`; the union of its value is read as 64 bits."""

    _fields_ = (
        ("field", c_uint),
        ("scope", c_uint),
        ("timestamp", c_int64),
        ("latency", c_int64),
        ("type", c_uint),
        ("status", c_uint),
        ("value", c_ulonglong),
    )


class Nvml:
    """A loaded management library.

    Args:
        library: what `ctypes.CDLL` gave, or anything with the same functions.
    """

    def __init__(self, library: Any) -> None:
        self._library = library

    def status(self, name: str, *arguments: Any) -> int:
        """Call a function; its status, or that of a missing function where the library has none of that name."""
        try:
            function = getattr(self._library, name)
        except AttributeError:
            return _NO_SYMBOL
        return int(function(*arguments))

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function that must succeed.

        Raises:
            CasemateError: it did not.
        """
        if status := self.status(name, *arguments):
            raise CasemateError(self.words(status))

    def words(self, status: int) -> str:
        """What the library calls an error."""
        try:
            speak = self._library.nvmlErrorString
        except AttributeError:
            return _WORDS.get(status, f"error {status}")
        speak.restype = c_char_p
        said = speak(status)
        return said.decode(errors="replace") if said else _WORDS.get(status, f"error {status}")

    def number(self, name: str, *arguments: Any) -> int:
        """An unsigned number that a function writes to its last argument. Raises as `call` does."""
        value = c_uint()
        self.call(name, *arguments, byref(value))
        return value.value

    def numbers(self, name: str, handle: c_void_p, *, count: int) -> tuple[int, ...]:
        """As `number`, for a function that writes several."""
        values = [c_uint() for _ in range(count)]
        self.call(name, handle, *map(byref, values))
        return tuple(value.value for value in values)

    def big(self, name: str, *arguments: Any) -> int:
        """As `number`, for 64 bits."""
        value = c_ulonglong()
        self.call(name, *arguments, byref(value))
        return value.value

    def text(self, name: str, *arguments: Any) -> str:
        """A text that a function writes to a buffer. Raises as `call` does."""
        buffer = ctypes.create_string_buffer(_TEXT_BYTES)
        self.call(name, *arguments, buffer, c_uint(_TEXT_BYTES))
        return buffer.value.decode(errors="replace")

    def handle(self, name: str, *arguments: Any) -> c_void_p:
        """A device's handle that a function writes to its last argument. Raises as `call` does."""
        handle = c_void_p()
        self.call(name, *arguments, byref(handle))
        return handle

    def either(self, newer: Callable[[], T], older: Callable[[], T]) -> T:
        """What the newer of two functions answers, else the older. Raises as `call` does, with the words that count."""
        try:
            return newer()
        except CasemateError as refusal:
            absent = str(refusal) == self.words(_NO_SYMBOL)
            try:
                return older()
            except CasemateError as error:
                raise (error if absent else refusal) from None

    def versioned(self, name: str, handle: c_void_p, *, struct: Structure, version: int) -> None:
        """Have a struct filled that carries its own size and version. Raises as `call` does."""
        struct.version = ctypes.sizeof(struct) | version << 24
        self.call(name, handle, byref(struct))

    def processes(self, handle: c_void_p) -> tuple[tuple[int, int | None], ...]:
        """Who computes on a card: pid, and bytes where the driver tells them. Raises as `call` does."""
        count = c_uint(0)
        name = "nvmlDeviceGetComputeRunningProcesses_v3"
        status = self.status(name, handle, byref(count), None)
        if status == _NO_SYMBOL:
            name = name.replace("_v3", "_v2")  # the same struct
            status = self.status(name, handle, byref(count), None)
        if status == _SUCCESS and not count.value:
            return ()
        if status not in (_SUCCESS, _INSUFFICIENT_SIZE):
            raise CasemateError(self.words(status))
        count.value += _SPARE_PROCESSES
        found = (ProcessInfo * count.value)()
        self.call(name, handle, byref(count), found)
        return tuple((one.pid, None if one.used == _UNKNOWN_U64 else one.used) for one in found[: count.value])

    def field(self, handle: c_void_p, field: int, *, scope: int = 0) -> int:
        """A fact that has a number and no function. Raises as `call` does."""
        value = FieldValue(field=field, scope=scope)
        self.call("nvmlDeviceGetFieldValues", handle, c_int(1), byref(value))
        if value.status:
            raise CasemateError(self.words(value.status))
        return int(value.value)
