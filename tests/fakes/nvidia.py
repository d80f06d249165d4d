"""NVIDIA's two driver libraries, without a driver: as objects in this process, and compiled for one of its own."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

NOT_SUPPORTED, NO_PERMISSION, INVALID, LOST = 3, 4, 2, 15
_SAID = {3: b"Not Supported", 4: b"Insufficient Permissions", 2: b"Invalid Argument", 15: b"GPU is lost"}


class Refuses:
    """An answer that is an error of the driver."""

    def __init__(self, status: int) -> None:
        self.status = status


class FakeLibrary:
    """Functions that write their answers where a C library would: through references, buffers and structs.

    Args:
        everywhere: answer by function, for calls without a card.
        cards: answers by function for each card; handles are 1, 2, … in this order.
        slices: answers of a card's slices, by the card's place; their handles follow from 101, 201, …
        name_errors: whether the library has `nvmlErrorString`.
    """

    def __init__(
        self,
        everywhere: Mapping[str, Any],
        cards: Sequence[Mapping[str, Any]] = (),
        *,
        slices: Mapping[int, Sequence[Mapping[str, Any]]] | None = None,
        name_errors: bool = True,
    ) -> None:
        self._everywhere = everywhere
        self._things = {1 + place: dict(card) for place, card in enumerate(cards)}
        for place, parts in (slices or {}).items():
            self._things |= {100 * (place + 1) + 1 + number: dict(part) for number, part in enumerate(parts)}
        self._known = {name for thing in self._things.values() for name in thing} | set(everywhere)
        self._name_errors = name_errors

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name == "nvmlErrorString" and self._name_errors:
            return lambda status: _SAID.get(status, b"some error")  # type: ignore[return-value]  # a text, as in C
        if name.startswith("nvmlDeviceGetHandleByIndex"):
            return self._handle
        if name == "nvmlDeviceGetMigDeviceHandleByIndex":
            return self._slice
        if name not in self._known:
            raise AttributeError(name)
        return lambda *arguments: self._answer(name, arguments)

    def _handle(self, index: int, to: Any) -> int:
        to._obj.value = index + 1
        lost = self._things[index + 1].get("lost")
        return LOST if lost else 0

    def _slice(self, parent: ctypes.c_void_p, place: int, to: Any) -> int:
        handle = 100 * (parent.value or 0) + 1 + place
        to._obj.value = handle
        return 0 if handle in self._things else NOT_SUPPORTED

    def _answer(self, name: str, arguments: tuple[Any, ...]) -> int:
        plain = [_bare(argument) for argument in arguments if not _takes(argument)]
        thing = next((self._things[one] for one in plain if one in self._things and name in self._things[one]), None)
        answer = thing[name] if thing else self._everywhere.get(name, Refuses(NOT_SUPPORTED))
        if callable(answer):
            answer = answer(*plain)
        if isinstance(answer, Refuses):
            return answer.status
        return _written(answer, [argument for argument in arguments if _takes(argument)])


def _bare(argument: Any) -> Any:
    return argument.value if isinstance(argument, (ctypes.c_void_p, ctypes.c_uint, ctypes.c_int)) else argument


def _takes(argument: Any) -> bool:
    return hasattr(argument, "_obj") or isinstance(argument, ctypes.Array)


def _written(answer: Any, places: list[Any]) -> int:
    """Write an answer: a list of structs with their count, fields of a struct, a text, or numbers."""
    if isinstance(answer, list):
        places[0]._obj.value = len(answer)
        if len(places) < 2:
            return 7 if answer else 0
        for struct, fields in zip(places[1], answer, strict=False):
            for name, value in fields.items():
                setattr(struct, name, value)
        return 0
    if isinstance(answer, dict):
        for name, value in answer.items():
            setattr(places[0]._obj, name, value)
        return 0
    if isinstance(answer, bytes) and hasattr(places[0], "_obj"):
        places[0]._obj.value = answer
        return 0
    for place, value in zip(places, answer if isinstance(answer, tuple) else (answer,), strict=False):
        if isinstance(place, ctypes.Array):
            place.raw = (value if isinstance(value, bytes) else value.encode()).ljust(len(place), b"\0")
        else:
            place._obj.value = value
    return 0


def h200(number: int = 0, **changes: Any) -> dict[str, Any]:
    """Answers of a card as NVML 580 gives them for an H200 behind NVSwitch, in a virtual machine."""

    def link(_: object, place: int) -> Any:
        return 1 if place < 18 else Refuses(INVALID)

    return {
        "nvmlDeviceGetName": "NVIDIA H200",
        "nvmlDeviceGetUUID": f"GPU-0000000{number}-0000-0000-0000-000000000000",
        "nvmlDeviceGetPciInfo_v3": {"name": b"00000000:00:0%d.0" % (6 + number), "device_and_vendor": 0x233510DE},
        "nvmlDeviceGetMigMode": (0, 0),
        "nvmlDeviceGetAddressingMode": {"value": 0},
        "nvmlDeviceGetMemoryInfo_v2": {"total": 150754820096, "reserved": 644940800, "used": 0},
        "nvmlDeviceGetCudaComputeCapability": (9, 0),
        "nvmlDeviceGetMaxClockInfo": lambda _, kind: {1: 1980, 2: 3201}[kind],
        "nvmlDeviceGetClockInfo": lambda _, kind: {1: 345, 2: 3201}[kind],
        "nvmlDeviceGetMemoryBusWidth": 6144,
        "nvmlDeviceGetCurrPcieLinkGeneration": 5,
        "nvmlDeviceGetMaxPcieLinkGeneration": 5,
        "nvmlDeviceGetCurrPcieLinkWidth": 16,
        "nvmlDeviceGetMaxPcieLinkWidth": 16,
        "nvmlDeviceGetEccMode": (1, 1),
        "nvmlDeviceGetTotalEccErrors": 0,
        "nvmlDeviceGetRemappedRows": (0, 0, 0, 0),
        "nvmlDeviceGetPowerUsage": 77150,
        "nvmlDeviceGetEnforcedPowerLimit": 700000,
        "nvmlDeviceGetPowerManagementDefaultLimit": 700000,
        "nvmlDeviceGetTemperature": 34,
        "nvmlDeviceGetTemperatureThreshold": 89,
        "nvmlDeviceGetCurrentClocksEventReasons": 0x1,
        "nvmlDeviceGetPersistenceMode": 1,
        "nvmlDeviceGetComputeMode": 0,
        "nvmlDeviceGetVirtualizationMode": 1,
        "nvmlDeviceGetNvLinkState": link,
        "nvmlDeviceGetNvLinkRemoteDeviceType": 2,
        "nvmlDeviceGetFieldValues": {"value": 26562, "status": 0},
        "nvmlDeviceGetGpuFabricInfoV": {"state": 3, "status": 0},
        "nvmlDeviceGetComputeRunningProcesses_v3": [],
        "nvmlDeviceGetTopologyCommonAncestor": 30,
        "nvmlDeviceGetP2PStatus": 0,
    } | changes


LIBRARIES_C = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <signal.h>

/* What goes wrong is in FAKE_NVIDIA: hang-<function>, die-<function>, fail-<function>-<status>. */
static int fate(const char *function) {
    const char *wish = getenv("FAKE_NVIDIA");
    char word[96];
    if (!wish) return 0;
    snprintf(word, sizeof word, "hang-%s", function);
    if (!strcmp(wish, word)) for (;;) pause();
    snprintf(word, sizeof word, "die-%s", function);
    if (!strcmp(wish, word)) raise(SIGSEGV);
    snprintf(word, sizeof word, "fail-%s-", function);
    if (!strncmp(wish, word, strlen(word))) return atoi(wish + strlen(word));
    return 0;
}

#ifdef NVML
typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char name[32]; } Pci;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } Process;

const char *nvmlErrorString(int status) { return status == 18 ? "Driver/library version mismatch" : "an error"; }
int nvmlInit_v2(void) { puts("a library may print"); fflush(stdout); return fate("nvmlInit_v2"); }
int nvmlSystemGetDriverVersion(char *to, unsigned size) { snprintf(to, size, "580.1.2"); return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *to) { *to = 13000; return 0; }
int nvmlDeviceGetCount_v2(unsigned *to) { *to = 2; return fate("nvmlDeviceGetCount_v2"); }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **to) {
    *to = (void *)(uintptr_t)(0x7f0000000001 + index);
    return 0;
}
static unsigned place(void *handle) { return (uintptr_t)handle - 0x7f0000000001; }
int nvmlDeviceGetName(void *handle, char *to, unsigned size) {
    (void)handle;
    snprintf(to, size, "Made-up card");
    return 0;
}
int nvmlDeviceGetUUID(void *handle, char *to, unsigned size) {
    snprintf(to, size, "GPU-0000000%u-0000-0000-0000-000000000000", place(handle));
    return place(handle) ? fate("second-uuid") : 0;
}
int nvmlDeviceGetPciInfo_v3(void *handle, Pci *to) {
    snprintf(to->name, 32, "00000000:0%u:00.0", place(handle));
    to->id = 0x233510DE;
    return 0;
}
int nvmlDeviceGetMemoryInfo_v2(void *handle, Memory *to) {
    (void)handle;
    if (to->version != (sizeof *to | 2u << 24)) return 25;
    to->total = 96ULL << 30;
    to->used = 5ULL << 30;
    return 0;
}
int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor) {
    (void)handle;
    *major = 9;
    *minor = 0;
    return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, Process *to) {
    unsigned room = *count;
    *count = place(handle) ? 0 : 1;
    if (place(handle)) return 0;
    if (!room) return 7;
    to[0].pid = 4242;
    to[0].used = 5ULL << 30;
    return 0;
}
int nvmlDeviceGetTopologyCommonAncestor(void *one, void *other, unsigned *to) {
    (void)one;
    (void)other;
    *to = 50;
    return 0;
}
int nvmlDeviceGetP2PStatus(void *one, void *other, int what, unsigned *to) {
    (void)one;
    (void)other;
    (void)what;
    *to = 1;
    return 0;
}
#else
int cuDriverGetVersion(int *to) { *to = 13000; return 0; }
int cuInit(unsigned flags) { (void)flags; return fate("cuInit"); }
int cuGetErrorName(int status, const char **to) {
    *to = status == 803 ? "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" : "AN_ERROR";
    return 0;
}
int cuGetErrorString(int status, const char **to) {
    (void)status;
    *to = "system has unsupported display driver / cuda driver combination";
    return 0;
}
int cuDeviceGetCount(int *to) { *to = 2; return 0; }
int cuDeviceGet(int *to, int index) { *to = index; return 0; }
int cuDeviceGetName(char *to, int size, int device) { (void)device; snprintf(to, size, "Made-up card"); return 0; }
int cuDeviceTotalMem_v2(size_t *to, int device) { (void)device; *to = 95ULL << 30; return 0; }
int cuDeviceGetAttribute(int *to, int what, int device) {
    (void)device;
    *to = what == 16 ? 78 : what == 75 ? 9 : what == 37 ? 5120 : what == 36 ? 3201000 : 0;
    return 0;
}
int cuDeviceGetUuid_v2(char *to, int device) { memset(to, 0, 16); to[3] = (char)device; return 0; }
int cuDeviceGetPCIBusId(char *to, int size, int device) { snprintf(to, size, "0000:0%d:00.0", device); return 0; }
int cuDeviceCanAccessPeer(int *to, int one, int other) { (void)one; (void)other; *to = 1; return 0; }
#endif
"""


def compiler() -> str:
    """A C compiler's file; empty where there is none."""
    return shutil.which("cc") or shutil.which("gcc") or ""


def build(folder: Path, *, nvml: bool = True, cuda: bool = True) -> dict[str, str]:
    """Compile the libraries into a folder; the variables with which a process finds them."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "libraries.c"
    source.write_text(LIBRARIES_C)
    for name, flags, wanted in (("libnvidia-ml.so.1", ["-DNVML"], nvml), ("libcuda.so.1", [], cuda)):
        if wanted:
            subprocess.run(
                [compiler(), "-shared", "-fPIC", "-w", *flags, "-o", str(folder / name), str(source)], check=True
            )
    return {"LD_LIBRARY_PATH": str(folder)}
