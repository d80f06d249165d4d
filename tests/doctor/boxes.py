"""Machines of our own making for the doctor's tests: a bare host, and a box of two cards with nothing wrong."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from casemate.doctor import engines
from casemate.doctor.checks.check import Check
from casemate.doctor.checks.model import Model
from casemate.doctor.checks.verdict import judge
from casemate.doctor.engines import Wheel
from casemate.doctor.machine import Card, Driver, Machine, Package, Pair, Surroundings

GIB = 1 << 30
BARE = Machine(
    cores=2,
    memory_total_bytes=24 * GIB,
    memory_available_bytes=20 * GIB,
    disk_free_bytes=60 * GIB,
    system="Linux",
    architecture="x86_64",
    surroundings=Surroundings(open_files=1 << 20, python="3.12.3", glibc="2.39"),
)
CARD = Card(
    index=0,
    name="NVIDIA H20",
    uuid="GPU-0a",
    memory_total_bytes=96 * GIB,
    memory_used_bytes=0,
    compute_capability=(9, 0),
    pcie_generation=5,
    pcie_generation_max=5,
    pcie_width=16,
    pcie_width_max=16,
    ecc_enabled=True,
    ecc_uncorrected=0,
    power_limit_w=500,
    power_limit_default_w=500,
    remapped_rows_pending=False,
    remapped_rows_failed=False,
    temperature_c=40,
    temperature_slowdown_c=87,
    persistence=True,
    compute_mode="default",
    nvlinks_active=18,
)
DRIVER = Driver(
    version="580.95.05",
    cuda=(13, 0),
    cuda_from="libcuda",
    cuinit=0,
    nvml=0,
    kernel_module="580.95.05",
    libcuda="/usr/lib/libcuda.so.580.95.05",
)
ENGINE = Package(
    "vllm",
    "0.33.0",
    cuda_major=13,
    capabilities=("8.0", "9.0a"),
    requires=("torch==2.14.0", "flashinfer-python==0.7.2.post1", "transformers<5.21.0,>=5.16.1"),
)
TORCH = Package("torch", "2.14.0+cu130", cuda=(13, 0), cuda_major=13, capabilities=("8.0", "9.0"))
FLASHINFER = Package("flashinfer-python", "0.7.2.post1")
AROUND = Surroundings(
    shm_total_bytes=64 * GIB,
    shm_free_bytes=64 * GIB,
    open_files=1 << 20,
    device_nodes=("/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"),
    iommu=False,
    acs_redirect=False,
    nvcc="13.0.88",
    compilers=("cc", "gcc", "ninja"),
    python="3.12.3",
    glibc="2.39",
)
BOX = replace(
    BARE,
    disk_free_bytes=900 * GIB,
    cards=(CARD, replace(CARD, index=1, uuid="GPU-1b")),
    pairs=(Pair(0, 1, "NV18", peer_access=True),),
    driver=DRIVER,
    packages=(ENGINE, TORCH, FLASHINFER),
    surroundings=AROUND,
)


@cache
def wheels() -> tuple[Wheel, ...]:
    """The table that ships."""
    package = resources.files("casemate.doctor")
    return engines.parsed((package / engines.TABLE).read_text(encoding="utf-8"))


def each(machine: Machine = BOX, **facts: Any) -> Machine:
    """The machine with every card changed."""
    return replace(machine, cards=tuple(replace(card, **facts) for card in machine.cards))


def second(**facts: Any) -> Machine:
    """The box with its second card changed."""
    return replace(BOX, cards=(BOX.cards[0], replace(BOX.cards[1], **facts)))


def driven(machine: Machine = BOX, **facts: Any) -> Machine:
    """The machine with its driver changed."""
    return replace(machine, driver=replace(machine.driver or DRIVER, **facts))


def around(machine: Machine = BOX, **facts: Any) -> Machine:
    """The machine with its surroundings changed."""
    return replace(machine, surroundings=replace(machine.surroundings, **facts))


def holding(*packages: Package, machine: Machine = BOX) -> Machine:
    """The machine with other packages."""
    return replace(machine, packages=packages)


def ids(machine: Machine) -> set[str]:
    """The ids of all checks of a machine."""
    return {check.id for check in judge(machine, wheels())}


def check(id_: str, machine: Machine, *, model: Model | None = None) -> Check:
    """One check of a machine; it is an error if there is none, or two."""
    [found] = [item for item in judge(machine, wheels(), model_=model) if item.id == id_]
    return found
