"""What runs in the process that asks the driver: `python -m casemate.doctor.driver_child`.

It writes one JSON object a line, as soon as it knows it, and before every step that a wedged driver may never finish
the step's name; so whoever reads has all that was told until then, and knows where it stopped. `doctor.driver` reads.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Sequence
from ctypes import c_int
from dataclasses import asdict
from pathlib import Path
from typing import Any

from casemate.doctor import libcuda, nvml_card, nvml_pairs
from casemate.doctor.nvml import LIBRARY, Nvml
from casemate.errors import CasemateError

BESIDE_THE_PATH = (
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/run/opengl-driver/lib",
    "/usr/lib/x86_64-linux-gnu",
)
"""Where drivers put libraries that the loader may not look for: WSL, GPU operators, NixOS, Debian."""


def main() -> None:
    """Ask both libraries all there is, management first: it answers even where CUDA is broken."""
    _nodes()
    _management()
    _cuda()


def _nodes() -> None:
    """Open the nodes that every program of CUDA opens. A container may show a node whose opening is denied to it."""
    for node in map(Path, ("/dev/nvidiactl", "/dev/nvidia-uvm")):
        if not node.exists():
            continue
        _tell(asking=f"opening {node}")
        try:
            os.close(os.open(node, os.O_RDWR | os.O_CLOEXEC))
        except OSError as error:
            _tell(denied=(str(node), error.strerror or "denied"))


def _management() -> None:
    _tell(asking=f"opening {LIBRARY}")
    library, why = opened(LIBRARY, BESIDE_THE_PATH)
    if library is None:
        _tell(unknown=("driver.nvml", why))
        return
    nvml = Nvml(library)
    _tell(asking="nvmlInit")
    status = nvml.status("nvmlInit_v2")
    _tell(driver={"nvml": status})
    if status:
        _tell(unknown=("driver.nvml", nvml.words(status)))
        return
    _versions(nvml)
    try:
        _cards(nvml)
    except CasemateError as error:
        _tell(unknown=("cards", str(error)))


def _versions(nvml: Nvml) -> None:
    _tell(asking="the driver's version")
    try:
        _tell(driver={"version": nvml.text("nvmlSystemGetDriverVersion")})
    except CasemateError as error:
        _tell(unknown=("driver.version", str(error)))
    number = c_int()
    if nvml.status("nvmlSystemGetCudaDriverVersion_v2", ctypes.byref(number)) == 0 and number.value:
        _tell(driver={"cuda": (number.value // 1000, number.value % 1000 // 10), "cuda_from": "nvml"})


def _cards(nvml: Nvml) -> None:
    found = []
    _tell(asking="the cards")
    for card, handle in nvml_card.cards(nvml):
        _tell(card=asdict(card), asking=f"the card after card {card.index}")
        if handle is not None and not card.mig:
            found.append((card, handle))
    _tell(told="cards", asking="what lies between the cards")
    for pair in nvml_pairs.pairs(nvml, found):
        _tell(pair=asdict(pair))


def _cuda() -> None:
    _tell(asking=f"opening {libcuda.LIBRARY}")
    library, why = opened(libcuda.LIBRARY)
    if library is None:
        elsewhere = [folder for folder in BESIDE_THE_PATH if Path(folder, libcuda.LIBRARY).exists()]
        hint = f"; one lies in {elsewhere[0]}, where the loader does not look" if elsewhere else ""
        _tell(unknown=("driver.cuinit", why + hint))
        return
    _tell(driver={"libcuda": _loaded_from("libcuda.so")})
    cuda = libcuda.Cuda(library)
    if version := cuda.version():
        _tell(driver={"cuda": version, "cuda_from": "libcuda"})
    _tell(asking="cuInit")
    status = cuda.start()
    _tell(driver={"cuinit": status})
    if status:
        _tell(unknown=("driver.cuinit", cuda.words(status)))
        return
    _tell(asking="CUDA's devices")
    for device in cuda.devices():
        _tell(device=asdict(device))


def opened(name: str, folders: Sequence[str] = ()) -> tuple[ctypes.CDLL | None, str]:
    """The library by the loader's own rules, else from the first folder that has it; or why not."""
    why = ""
    for path in (name, *(f"{folder}/{name}" for folder in folders)):
        try:
            return ctypes.CDLL(path), ""
        except OSError as error:
            why = why or str(error)
    return None, why


def _loaded_from(name: str) -> str:
    """The file that a library was loaded from, links followed; empty where the system does not tell."""
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    paths = (line.split(maxsplit=5)[5] for line in maps.splitlines() if line.count(" ") > 4 and "/" in line)
    return next((path for path in paths if Path(path).name.startswith(name)), "")


def _tell(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
