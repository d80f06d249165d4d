"""Facts of a host, as values. Who measured them is `doctor.probe`; what they mean is `doctor.checks`.

None is "not known", never "none of it"; why it is not known stands in `Card.unknown` or `Machine.unknown`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Card:
    """One accelerator as its driver tells it. `name` is shown and decides nothing.

    Attributes:
        index: the driver's number. A MIG slice has its parent's, and `mig` its profile (`3g.20gb`).
        uuid: what CUDA_VISIBLE_DEVICES takes.
        compute_capability: (9, 0) for Hopper.
        multiprocessors: SMs; with the clock and the capability they bound the arithmetic.
        device_id: PCI device, the chip's own identity (vendor left out).
        memory_clock_hz, memory_bus_bits: with two transfers a clock they bound the bandwidth.
        pcie_generation, pcie_width: the link now; `_max`: what card and slot can do together.
        throttle: active reasons other than idle, in the driver's words (`sw_power_cap`).
        unified: its memory is the host's (GB10, Jetson); then `memory_total_bytes` is not the card's own.
        unknown: field name and the driver's words for why (`[Insufficient Permissions]`).
    """

    index: int
    name: str
    uuid: str = ""
    bus: str = ""
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    compute_capability: tuple[int, int] | None = None
    multiprocessors: int | None = None
    device_id: int | None = None
    memory_clock_hz: int | None = None
    memory_bus_bits: int | None = None
    sm_clock_hz: int | None = None
    sm_clock_max_hz: int | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    ecc_enabled: bool | None = None
    ecc_uncorrected: int | None = None
    remapped_rows_pending: bool | None = None
    remapped_rows_failed: bool | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    power_limit_default_w: float | None = None
    temperature_c: int | None = None
    temperature_slowdown_c: int | None = None
    throttle: tuple[str, ...] = ()
    persistence: bool | None = None
    compute_mode: str = ""
    mig: str = ""
    mig_parent: bool = False
    virtual: str = ""
    unified: bool = False
    nvlinks_active: int | None = None
    nvlink_bytes_per_s: int | None = None
    fabric_state: str = ""
    numa_node: int | None = None
    processes: tuple[tuple[int, int], ...] = ()
    unknown: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Pair:
    """How two cards reach each other: `link` as nvidia-smi topo writes it (`NV18`, `PIX`, `PHB`, `NODE`, `SYS`)."""

    first: int
    second: int
    link: str
    peer_access: bool | None = None


@dataclass(frozen=True, slots=True)
class Driver:
    """The driver: its version, the CUDA that it offers as (13, 0), and what each library said when it was asked.

    `cuda_from` tells who named the CUDA version. `cuinit` is the status of `cuInit` (0: fine; None: no libcuda).
    `modules` is the kernel side's version, which differs from `version` after a half-done upgrade.
    """

    version: str = ""
    cuda: tuple[int, int] | None = None
    cuda_from: Literal["libcuda", "nvml", "nvidia-smi", ""] = ""
    cuinit: int | None = None
    nvml: int | None = None
    kernel_module: str = ""
    compat_libcuda: str = ""


@dataclass(frozen=True, slots=True)
class Package:
    """An installed Python package that touches the card: built for `cuda`, with code for `capabilities` (`9.0a`)."""

    name: str
    version: str
    cuda: tuple[int, int] | None = None
    capabilities: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the system around the engine allows. Bytes are bytes; a limit of None is "unlimited or not known"."""

    shm_total_bytes: int | None = None
    shm_free_bytes: int | None = None
    memlock_bytes: int | None = None
    open_files: int | None = None
    container: str = ""
    device_nodes: tuple[str, ...] = ()
    device_nodes_denied: tuple[str, ...] = ()
    mandatory_access: str = ""
    fabric_manager: bool | None = None
    nvswitch: bool | None = None
    iommu: bool | None = None
    acs_redirect: bool | None = None
    nvcc: str = ""
    nvcc_path: str = ""
    cuda_home: str = ""
    compilers: tuple[str, ...] = ()
    python: str = ""
    glibc: str = ""
    kernel: str = ""
    variables: tuple[tuple[str, str], ...] = ()
    hugging_face_cache: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """A host as measured. Bytes are bytes; `memory_available_bytes` honours a container's limit."""

    cores: int
    memory_total_bytes: int
    memory_available_bytes: int
    disk_free_bytes: int
    system: str
    architecture: str
    cards: tuple[Card, ...] = ()
    pairs: tuple[Pair, ...] = ()
    driver: Driver | None = None
    packages: tuple[Package, ...] = ()
    surroundings: Surroundings = Surroundings()
    model_folder: str = ""
    unknown: tuple[tuple[str, str], ...] = ()
