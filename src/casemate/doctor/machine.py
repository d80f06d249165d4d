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
        memory_total_bytes: all that is built in; nvidia-smi's text rounds it to MiB.
        memory_cuda_bytes: what CUDA calls the total (`cuDeviceTotalMem`): less by what the driver keeps for itself. An
            engine's share of "the memory" is a share of this one.
        compute_capability: (9, 0) for Hopper.
        multiprocessors: SMs; with the clock and the capability they bound the arithmetic.
        device_id: PCI device, the chip's own identity (vendor left out).
        memory_clock_hz, memory_bus_bits: the highest clock; with two transfers a clock they bound the bandwidth.
        pcie_generation, pcie_width: the link now; `_max`: what card and slot can do together.
        ecc_uncorrected: errors since the driver was loaded.
        remapped_rows_pending, remapped_rows_failed: a reset is due; no spare row is left.
        temperature_slowdown_c: where the clocks are cut; worked out from the margin where the driver tells only that.
        throttle: active reasons other than idle, in the driver's words: `applications_clocks_setting`, `sw_power_cap`,
            `hw_slowdown`, `sync_boost`, `sw_thermal_slowdown`, `hw_thermal_slowdown`, `hw_power_brake_slowdown`,
            `display_clock_setting`.
        compute_mode: `default`, `exclusive_process`, `exclusive_thread` or `prohibited`.
        mig_parent: it is cut into slices, which stand beside it as cards of their own; itself takes no work.
        virtual: `vgpu` (a share of a card in a virtual machine), `host_vgpu`, `host_vsga`; empty for a whole card.
        passthrough: a whole card in a virtual machine.
        unified: its memory is the host's (GB10, Jetson); then `memory_total_bytes` is not the card's own.
        nvlink_bytes_per_s: over all active links, one way.
        fabric_state: `not supported`, `not started`, `in progress`, `completed`, or `failed: ` and the driver's words;
            on a box with NVSwitch nothing runs before it is `completed`.
        numa_node: of the processors beside its slot.
        processes: pid (of the host, in a container) and bytes, None where the driver does not tell them.
        unknown: field name and the driver's words for why (`[Insufficient Permissions]`).
    """

    index: int
    name: str
    uuid: str = ""
    bus: str = ""
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    memory_cuda_bytes: int | None = None
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
    passthrough: bool = False
    unified: bool = False
    nvlinks_active: int | None = None
    nvlink_bytes_per_s: int | None = None
    fabric_state: str = ""
    numa_node: int | None = None
    processes: tuple[tuple[int, int | None], ...] = ()
    unknown: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Pair:
    """How two cards reach each other: `link` as nvidia-smi topo writes it (`NV18`, `PIX`, `PHB`, `NODE`, `SYS`).

    `peer_access` is whether one may read the other's memory; `why` holds the driver's words where it may not, in short
    as nvidia-smi prints them: `CNS` chipset, `GNS` card, `TNS` topology, `NS` not supported, `DR` disabled by setting.
    """

    first: int
    second: int
    link: str
    peer_access: bool | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Driver:
    """The driver: its version, the CUDA that it offers as (13, 0), and what each library said when it was asked.

    `cuda_from` tells who named the CUDA version. `cuinit` is the status of `cuInit` and `nvml` that of `nvmlInit` (0:
    fine; None: not asked, or no answer; why stands in `Machine.unknown` under `driver.cuinit` and `driver.nvml`).
    `kernel_module` is the kernel side's version, which differs from `version` after a half-done upgrade.
    `libcuda` is the file that a program gets when it asks for libcuda, and `compat_libcuda` the same file if it is not
    the driver's own but one of the forward-compatibility package.
    """

    version: str = ""
    cuda: tuple[int, int] | None = None
    cuda_from: Literal["libcuda", "nvml", "nvidia-smi", ""] = ""
    cuinit: int | None = None
    nvml: int | None = None
    kernel_module: str = ""
    libcuda: str = ""
    compat_libcuda: str = ""


@dataclass(frozen=True, slots=True)
class Package:
    """An installed Python package that touches the card: built for `cuda`, with code for `capabilities`.

    `capabilities` are those found in its own binaries: `9.0` runs on 9.x from there on, `9.0a` on 9.0 alone, `10.0f` on
    its family, `8.0+PTX` is code that the driver compiles for 8.0 and all that came later. Empty: none is inside, or
    nobody could look; which of the two stands in `Machine.unknown`.
    `cuda_major` is the same build's major version, which its binaries tell even where its version does not.
    `requires` holds its pins of other packages (`torch==2.11.0`), `location` the folder that it was found in.
    """

    name: str
    version: str
    cuda: tuple[int, int] | None = None
    capabilities: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    location: str = ""
    cuda_major: int | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the system around the engine allows. Bytes are bytes; a limit of None is "unlimited or not known".

    Attributes:
        container: `docker`, `podman`, `kubernetes`, `lxc`, `systemd-nspawn`, `containerd`, `container` (of a kind that
            did not say), or empty.
        device_nodes, device_nodes_denied: those of the driver that are there, and those of them that we may not open.
        mandatory_access: `selinux enforcing`, `selinux permissive`, `apparmor enforce`, `apparmor complain`, `apparmor
            unconfined`; several joined by `; `; empty where there is none.
        process_label: what SELinux or AppArmor calls this process; `device_labels`: a node and its SELinux context.
        fabric_manager: whether it runs; None where its box has no NVSwitch to manage, or processes cannot be seen.
        nvswitch: whether NVSwitch is on the bus or has nodes.
        acs_redirect: whether a bridge sends traffic between cards up to the root (its ACS bits; None without root).
        pci_cards: every accelerator on the bus, driver or not: address and PCI device.
        nvcc: the toolkit's release (`13.0.88`).
        variables: those of the environment that the engine heeds; never one that holds a secret.
    """

    shm_total_bytes: int | None = None
    shm_free_bytes: int | None = None
    memlock_bytes: int | None = None
    open_files: int | None = None
    core_bytes: int | None = None
    container: str = ""
    wsl: bool = False
    device_nodes: tuple[str, ...] = ()
    device_nodes_denied: tuple[str, ...] = ()
    mandatory_access: str = ""
    process_label: str = ""
    device_labels: tuple[tuple[str, str], ...] = ()
    fabric_manager: bool | None = None
    nvswitch: bool | None = None
    iommu: bool | None = None
    acs_redirect: bool | None = None
    pci_cards: tuple[tuple[str, int], ...] = ()
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
