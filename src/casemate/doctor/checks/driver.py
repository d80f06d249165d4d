"""The driver: is it whole, does CUDA start, and which engine builds may run on it."""

from __future__ import annotations

from collections.abc import Iterator

from casemate.doctor.checks.check import HANGS, Check, Question, dotted, hangs, is_absent, reason, unanswered
from casemate.doctor.engines import Wheel, flavour, runs
from casemate.doctor.machine import Driver, Machine

_FLAVOURS = ((12, 1), (12, 6), (12, 9), (13, 0), (13, 2))
"""CUDA versions that torch is or was published for, as examples of what a driver runs."""

_CUINIT: dict[int, tuple[str, str]] = {
    2: ("out of memory", "the host or the card has no memory left: end what holds it"),
    3: ("not initialised", "unload and load the driver, or reboot"),
    34: (
        "stub library",
        "a toolkit's libcuda stub is found before the driver's: take `stubs` out of LD_LIBRARY_PATH",
    ),
    46: ("device unavailable", "the card is in exclusive or prohibited mode and taken: `nvidia-smi -c DEFAULT`"),
    100: (
        "no device",
        (
            "CUDA sees no card: look at CUDA_VISIBLE_DEVICES, at the device nodes (/dev/nvidia*), and start the "
            "container with `--gpus all`"
        ),
    ),
    101: ("invalid device", "CUDA_VISIBLE_DEVICES names a card that is not there"),
    102: ("not licensed", "the vGPU has no licence: see the licence server's settings in gridd.conf"),
    304: (
        "an operating system call failed",
        "a device node is missing or may not be opened (/dev/nvidia-uvm): `nvidia-modprobe -u -c=0`",
    ),
    802: (
        "system not ready",
        (
            "on boards with NVSwitch the fabric manager must run, in exactly the driver's version: "
            "`systemctl enable --now nvidia-fabricmanager`; in a VM the host hands out the NVLink partition; without "
            "NVSwitch: confidential computing waits for `nvidia-smi conf-compute -grs 1`"
        ),
    ),
    803: (
        "driver mismatch",
        (
            "the libcuda that is loaded does not belong to the kernel's driver: reboot after an upgrade; in a "
            "container keep forward-compatibility libraries out of the way (driver.compat)"
        ),
    ),
    804: (
        "forward compatibility not supported",
        (
            "a forward-compatibility libcuda (cuda-compat) is loaded, and this card or driver may not use it: it is "
            "for data-centre cards only. Take it out of the library path"
        ),
    ),
    805: ("MPS could not be reached", "the MPS daemon is gone: start nvidia-cuda-mps-control, or unset CUDA_MPS_*"),
    999: (
        "unknown error",
        (
            "most often /dev/nvidia-uvm is missing or a suspended machine woke up: `nvidia-modprobe -u -c=0`, or "
            "reload the nvidia_uvm module; then look at `dmesg`"
        ),
    ),
}
"""Status of cuInit: its meaning (CUDA driver API, CUresult) and what usually stands behind it."""

_NVML: dict[int, str] = {
    4: "no permission",
    9: "the kernel module is not loaded",
    12: "the library is not found",
    15: "a card fell off the bus",
    16: "a card wants a reset",
    17: "an operating system call failed",
    18: "library and kernel module have different versions",
    999: "unknown error",
}
"""Return values of NVML (nvmlReturn_t)."""

_NVML_MISMATCH = 18
_RELOAD = (
    "load the module (`modprobe nvidia`; it must be built for the running kernel) or reboot; see `dmesg | grep -i nvrm`"
)
_NVML_REMEDIES: dict[int, str] = {
    4: "ask as a user who may open /dev/nvidiactl, or as root",
    15: "see `dmesg | grep -i xid`, then reboot; if it comes back, look at the card's power, seat and cooling",
    16: "`nvidia-smi -r -i INDEX` while nothing uses the card, or reboot",
    _NVML_MISMATCH: "reboot after the half-done upgrade: the old kernel module is still loaded",
}
_HANGS_WHY = "Whoever asks the driver waits without end, an engine too: the card or its firmware has stopped."
_COMPAT_REMEDY = (
    "take the compat folder out of LD_LIBRARY_PATH and /etc/ld.so.conf.d and run `ldconfig`; in vLLM's image leave "
    "VLLM_ENABLE_CUDA_COMPATIBILITY unset, and start it with `--gpus all`"
)

PRESENT = Question("driver.present", "Driver", "cat /proc/driver/nvidia/version")
CUDA = Question("driver.cuda", "CUDA that the driver offers", "nvidia-smi | grep -i cuda")
STARTS = Question(
    "driver.cuinit",
    "CUDA starts",
    "python3 -c \"import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))\"",
)
_WHOLE = Question("driver.whole", "Kernel module and libraries agree", "cat /proc/driver/nvidia/version; nvidia-smi")
_NVML_ANSWERS = Question("driver.nvml", "NVML answers", "nvidia-smi -L")
_COMPAT = Question("driver.compat", "The driver's own libcuda is loaded", "ldconfig -p | grep libcuda.so")
_EXACT = Question(
    "driver.exact-versions",
    "Driver, toolkit and torch need not agree exactly",
    'python3 -c "import torch; print(torch.version.cuda, torch.cuda.is_available())"',
)


def checks(machine: Machine, wheels: tuple[Wheel, ...]) -> Iterator[Check]:
    """The checks of this theme; none on a host that has neither card nor driver."""
    driver = machine.driver
    if driver is None or not (driver.version or driver.kernel_module or driver.nvml is not None):
        if unanswered(machine) or machine.cards or machine.surroundings.pci_cards:
            yield _absent(machine)
        return
    yield PRESENT.ok(driver.version) if driver.version else _nameless(machine, driver)
    yield _whole(driver)
    yield _nvml(machine, driver)
    yield starts(machine, driver)
    yield _compat(driver)
    yield cuda(driver, wheels)
    yield _exact(machine, driver)


def _nameless(machine: Machine, driver: Driver) -> Check:
    if driver.nvml is None and not hangs(machine):
        return PRESENT.unknown("its version is not told", remedy=_REINSTALL)
    return PRESENT.unknown("it is there; its version is not told", remedy=f"settle {_NVML_ANSWERS.id} first")


_REINSTALL = "install the driver anew, kernel module and libraries from one package source"


def starts(machine: Machine, driver: Driver) -> Check:
    """What libcuda itself said; NVML never asks it, so nvidia-smi may look well while this fails."""
    if driver.cuinit == 0:
        return STARTS.ok("cuInit gave 0")
    if driver.cuinit is None:
        return _no_libcuda(machine, driver)
    name, remedy = _CUINIT.get(driver.cuinit, ("an error that is seldom seen", "look up the CUresult of this number"))
    shown = " although NVML answers (nvidia-smi does not use libcuda)" if driver.nvml == 0 else ""
    return STARTS.fail(
        f"cuInit gave {driver.cuinit}: {name}{shown}",
        why="No engine can use a card before this is 0; torch reports the same number.",
        remedy=remedy,
    )


def _no_libcuda(machine: Machine, driver: Driver) -> Check:
    words = reason(machine.unknown, "driver.cuinit")
    if words and words == hangs(machine):
        return STARTS.fail(f"libcuda gave no answer: {words}", why=_HANGS_WHY, remedy=HANGS)
    if not is_absent(words):
        return STARTS.unknown(
            f"libcuda gave no answer: {words or 'it was not asked (no recording of texts tells it)'}",
            remedy=f"run the command below on the machine itself; if it waits for ever, {HANGS}",
        )
    return STARTS.fail(
        "libcuda.so.1 is not found" + (" although NVML answers" if driver.nvml == 0 else ""),
        why="The engine talks to the card through libcuda; nvidia-smi does not need it and proves nothing here.",
        remedy="install the driver's compute libraries (libnvidia-compute, nvidia-driver-cuda-libs); a container needs "
        "the capability `compute` in NVIDIA_DRIVER_CAPABILITIES",
    )


def cuda(driver: Driver, wheels: tuple[Wheel, ...]) -> Check:
    """The one version rule that binds: the CUDA major of a build may not be above the driver's."""
    if driver.cuda is None:
        return CUDA.unknown("not told", remedy="run the command below on the machine itself")
    offers = driver.cuda
    source = f" ({driver.cuda_from} says so)" if driver.cuda_from else ""
    found = f"CUDA {dotted(offers)}{source}: {_examples(offers)}"
    built = sorted({wheel.cuda for wheel in wheels})
    fit = [version for version in built if runs(version, offers)]
    if built and not fit:
        return CUDA.fail(
            found,
            why=f"The oldest engine build that is kept is for CUDA {dotted(built[0])}; its major version is above the "
            "driver's.",
            remedy="upgrade the driver to R580 or newer, which offers CUDA 13",
        )
    if built and fit[-1] != built[-1]:
        return CUDA.warn(
            found,
            why=f"The engine's current wheels are built for CUDA {dotted(built[-1])}; on this driver they end with "
            f"`driver too old`. Builds for CUDA {dotted(fit[-1])} of an older release run, except for kernels that are "
            "shipped as PTX only and would need this driver to know a newer CUDA.",
            remedy="upgrade the driver to R580 or newer; or take the older build: `casemate doctor --advise`",
        )
    return CUDA.ok(found, "The major version decides; minor versions need not agree.")


def _examples(offers: tuple[int, int]) -> str:
    yes = [flavour(built) for built in _FLAVOURS if runs(built, offers)]
    no = [flavour(built) for built in _FLAVOURS if not runs(built, offers)]
    told = f"{', '.join(yes)} {'run' if len(yes) > 1 else 'runs'}" if yes else "none of the usual builds runs"
    return told + (f", {', '.join(no)} {'do' if len(no) > 1 else 'does'} not" if no else "")


def _absent(machine: Machine) -> Check:
    words = reason(machine.unknown, "driver")
    if failed := unanswered(machine):
        return PRESENT.fail(
            f"it is installed and does not answer: {failed}",
            why=_HANGS_WHY if hangs(machine) else "nvidia-smi comes with a driver, and fails before it sees a card.",
            remedy=HANGS if hangs(machine) else _RELOAD,
        )
    if machine.cards and words and not is_absent(words):
        return PRESENT.unknown(f"its version is not told: {words}", remedy="record `nvidia-smi -q -x` of the machine")
    return PRESENT.fail(
        "a card, and no driver" + (f" ({words})" if words else ""),
        why="The card is on the bus, but no NVIDIA driver is loaded: it may not be installed, not be built for this "
        "kernel, be kept out by Secure Boot, or be replaced by nouveau.",
        remedy="install the driver, R580 or newer, and reboot; then see `dmesg | grep -i -E 'nvrm|nouveau'`",
    )


def _whole(driver: Driver) -> Check:
    module, version = driver.kernel_module, driver.version
    if driver.nvml == _NVML_MISMATCH or (module and version and module != version):
        return _WHOLE.fail(
            f"kernel module {module or 'unknown'}, libraries {version or 'unknown'}",
            why="The driver was upgraded while the old kernel module stayed loaded: nothing can open the card.",
            remedy="reboot (or unload and load nvidia_uvm, nvidia_drm, nvidia_modeset, nvidia while they are idle); "
            "in a container the libraries must come from the host",
        )
    if module and version:
        return _WHOLE.ok(f"both {module}")
    return _WHOLE.unknown(
        f"kernel module {module or 'unknown'}, libraries {version or 'unknown'}",
        remedy="compare the two by the commands below",
    )


def _nvml(machine: Machine, driver: Driver) -> Check:
    if driver.nvml == 0:
        return _NVML_ANSWERS.ok("it gave 0")
    if driver.nvml is None:
        words = reason(machine.unknown, "driver.nvml")
        if words and words == hangs(machine):
            return _NVML_ANSWERS.fail(f"it gave no answer: {words}", why=_HANGS_WHY, remedy=HANGS)
        if not is_absent(words):
            return _NVML_ANSWERS.unknown(
                f"it gave no answer: {words or 'it was not asked'}",
                remedy="run the command below on the machine itself",
            )
        return _NVML_ANSWERS.fail(
            "libnvidia-ml.so.1 is not found",
            why="vLLM finds out through it that there are cards; without it the start ends with `Failed to infer "
            "device type`.",
            remedy="install the driver's utilities (libnvidia-compute or nvidia-utils); a container needs the "
            "capability `utility` in NVIDIA_DRIVER_CAPABILITIES",
        )
    meaning = _NVML.get(driver.nvml, "an error that is seldom seen")
    return _NVML_ANSWERS.fail(
        f"it gave {driver.nvml}: {meaning}",
        why="Neither the doctor nor the engine can see memory, links and temperatures without it.",
        remedy=_NVML_REMEDIES.get(driver.nvml, _RELOAD),
    )


def _compat(driver: Driver) -> Check:
    if not driver.compat_libcuda and driver.cuinit is None:
        return _COMPAT.unknown("libcuda was not asked", remedy=f"settle {STARTS.id} first")
    if not driver.compat_libcuda:
        return _COMPAT.ok("no forward-compatibility library is in the way")
    blocked = driver.cuinit in (803, 804)
    why = (
        "Forward-compatibility libraries shadow the driver's own libcuda. They help an old data-centre driver, and "
        "break a driver that is newer than they are."
    )
    answer = _COMPAT.fail if blocked else _COMPAT.warn
    return answer(driver.compat_libcuda, why=why, remedy=_COMPAT_REMEDY)


def _exact(machine: Machine, driver: Driver) -> Check:
    torch = next((package for package in machine.packages if package.name == "torch"), None)
    toolkit = machine.surroundings.nvcc or "none"
    built = dotted(torch.cuda) if torch else "none"
    return _EXACT.ok(
        f"driver {dotted(driver.cuda)}, toolkit {toolkit}, torch {built}",
        "Wheels bring their own CUDA libraries. No exact version (such as 12.1.1) is required, and no toolkit either, "
        "except where kernels are compiled on the machine.",
    )
