"""Containers, permissions, and variables that hide cards."""

from __future__ import annotations

import re
from collections.abc import Iterator

from casemate.doctor.checks.architecture import reach
from casemate.doctor.checks.check import Check, Question, boards, dotted, label, usable
from casemate.doctor.machine import Card, Machine

_RUNTIME = Question(
    "container.runtime", "Cards handed to the container", "ls -l /dev/nvidia*; nvidia-container-cli info"
)
NODES = Question(
    "container.device-nodes",
    "Device nodes may be opened",
    "ls -lZ /dev/nvidia*; sudo ausearch -m AVC -ts recent | grep nvidia",
)
_CONTROL = Question("container.mandatory-access", "SELinux and AppArmor", "getenforce; sudo aa-status")
_CACHE = Question("container.model-cache", "Models outlive the container", "findmnt -T ~/.cache/huggingface")
_VISIBLE = Question("container.visible-devices", "No card is hidden", "env | grep VISIBLE_DEVICES; nvidia-smi -L")
_PATHS = Question("container.toolkit-variables", "Variables of the toolkit", "env | grep -E 'CUDA_HOME|ARCH_LIST'")


def checks(machine: Machine) -> Iterator[Check]:
    """The checks of this theme; most only where there is something to guard."""
    around = machine.surroundings
    signs = bool(machine.cards or around.device_nodes or around.pci_cards or machine.driver)
    if around.container and signs:
        yield _runtime(machine)
    if around.device_nodes or around.device_nodes_denied or _refused(machine):
        yield device_nodes(machine)
    if around.mandatory_access and signs:
        yield _mandatory(machine)
    if around.container and signs:
        yield _cache(machine)
    if signs:
        yield from visible_devices(machine)
        yield from _variables(machine)


def device_nodes(machine: Machine) -> Check:
    """Whether the driver's device nodes may be opened, and who forbids it."""
    around = machine.surroundings
    denied = [node for node in around.device_nodes_denied if _needed(node, machine)]
    if not denied and (absent := _absent(machine)):
        return _without(absent, machine)
    if not denied:
        others = len(around.device_nodes_denied)
        return NODES.ok(
            f"{len(around.device_nodes)} of the driver" + (f", {others} denied that no engine needs" if others else "")
        )
    why, remedy = _forbidden(machine)
    # A user who was given some cards of many is denied the rest, and that is meant.
    works = machine.driver is not None and machine.driver.cuinit == 0
    answer = NODES.warn if works else NODES.fail
    return answer(f"denied: {', '.join(denied)}", why=why, remedy=remedy)


def _absent(machine: Machine) -> list[str]:
    """Nodes without which CUDA starts on no card; none where it did start, or where the system has others (WSL)."""
    nodes = machine.surroundings.device_nodes
    started = machine.driver is not None and machine.driver.cuinit == 0
    if started or any(node.endswith("/dxg") for node in nodes):
        return []
    cards = [] if any(re.fullmatch(r"/dev/nvidia\d+", node) for node in nodes) else ["/dev/nvidia0"]
    return [*cards, *(node for node in ("/dev/nvidiactl", "/dev/nvidia-uvm") if node not in nodes)]


def _refused(machine: Machine) -> bool:
    """Whether there are cards, and CUDA was asked and did not start."""
    return bool(machine.cards) and machine.driver is not None and machine.driver.cuinit not in (0, None)


def _without(absent: list[str], machine: Machine) -> Check:
    found = f"not there: {', '.join(absent)}"
    remedy = "`nvidia-modprobe -u -c=0` on the host" + (
        ", then start the container anew with `--gpus all`" if machine.surroundings.container else ""
    )
    if _refused(machine):
        why = "CUDA opens these nodes when it starts, and without them finds no device (100) or fails (304, 999)."
        return NODES.fail(found, why=why, remedy=remedy)
    why = "CUDA opens these nodes when it starts; whether it does start was not told."
    return NODES.warn(found, why=why, remedy=remedy + "; programs that start as root make them by themselves")


def _needed(node: str, machine: Machine) -> bool:
    if "nvidia-caps/" in node:
        return any(card.mig for card in machine.cards)
    return re.fullmatch(r"nvidia(ctl|-uvm|\d+)|dxg", node.rpartition("/")[2]) is not None


def _forbidden(machine: Machine) -> tuple[str, str]:
    """Who most likely forbids it, and what to do."""
    around = machine.surroundings
    access = around.mandatory_access.lower()
    if "selinux enforcing" in access:
        label = f" (this process is {around.process_label})" if around.process_label else ""
        return (
            f"SELinux enforces{label}: its policy may keep a confined process or container from the nodes.",
            (
                "`sudo setsebool -P container_use_devices 1`; or use CDI (`--device nvidia.com/gpu=all`), or start the "
                "container with `--security-opt label=disable`; wrong labels: `sudo restorecon -v /dev/nvidia*`"
            ),
        )
    if "apparmor enforce" in access:
        return (
            "AppArmor confines this process.",
            "allow /dev/nvidia* in the profile, or `--security-opt apparmor=unconfined` for a container",
        )
    return (
        "File modes, groups or the container's device list forbid it: CUDA then finds no device, or answers 304.",
        (
            "join the group that owns the nodes (video, render), or start the container with `--gpus all`; modes come "
            "from NVreg_DeviceFileMode"
        ),
    )


def visible_devices(machine: Machine) -> Iterator[Check]:
    """Whether CUDA_VISIBLE_DEVICES leaves a card to be seen."""
    variables = dict(machine.surroundings.variables)
    chosen, handed = variables.get("CUDA_VISIBLE_DEVICES"), variables.get("NVIDIA_VISIBLE_DEVICES", "")
    if machine.surroundings.container and handed.strip().lower() in ("void", "none"):
        yield _VISIBLE.fail(
            f"NVIDIA_VISIBLE_DEVICES={handed}",
            why="The container runtime hands out no card under this value.",
            remedy="set NVIDIA_VISIBLE_DEVICES=all, or start the container with `--gpus all`",
        )
    if chosen is None:
        return
    names = [name.strip() for name in chosen.split(",")]
    known = {str(card.index) for card in boards(machine)}
    absent = [name for name in names if not (name in known or _named(name, machine))]
    if names[0] in ("", "-1", "NoDevFiles"):
        yield _VISIBLE.fail(
            f"CUDA_VISIBLE_DEVICES={chosen}",
            why="It hides every card from CUDA; nvidia-smi still shows them.",
            remedy="unset CUDA_VISIBLE_DEVICES, or name the cards",
        )
    elif absent and machine.cards:
        yield _VISIBLE.warn(
            f"CUDA_VISIBLE_DEVICES={chosen}; not there: {', '.join(absent)}",
            why="CUDA reads the list up to the first entry that it does not know, and hides the rest.",
            remedy="name cards by index or UUID as `nvidia-smi -L` shows them; a slice by its MIG UUID",
        )
    elif hidden := _hidden(names, machine):
        yield _VISIBLE.warn(
            f"CUDA_VISIBLE_DEVICES={chosen}; hidden: {', '.join(map(label, hidden))}",
            why="CUDA, and so the engine, does not see these cards; plans for this machine count them.",
            remedy="unset CUDA_VISIBLE_DEVICES to use them all, or plan for those that are left: "
            f"`casemate plan MODEL --gpus`, with {len(boards(machine)) - len(hidden)} of them",
        )
    else:
        yield _VISIBLE.ok(f"CUDA_VISIBLE_DEVICES={chosen}")


def _hidden(names: list[str], machine: Machine) -> list[Card]:
    """Whole cards that the list leaves out; where cards are cut into slices, naming one slice is what is meant."""
    if any(card.mig for card in machine.cards):
        return []
    return [
        card
        for card in boards(machine)
        if not any(
            name == str(card.index) or (name.startswith("GPU-") and card.uuid.startswith(name)) for name in names
        )
    ]


def _named(name: str, machine: Machine) -> bool:
    """CUDA takes a UUID, or as much of its beginning as names one."""
    return name.startswith(("GPU-", "MIG-")) and any(card.uuid.startswith(name) for card in machine.cards)


def _runtime(machine: Machine) -> Check:
    around = machine.surroundings
    if machine.cards and _refused(machine) and not around.device_nodes:
        return _RUNTIME.fail(
            f"{around.container}: {len(boards(machine))} cards told, and no device node of theirs",
            why="The driver's libraries were handed in and its device nodes were not: CUDA finds no device.",
            remedy="start the container with `--gpus all` (or `--device nvidia.com/gpu=all`), not with the libraries "
            "mounted by hand; NVIDIA_DRIVER_CAPABILITIES must hold `compute`",
        )
    if machine.cards:
        return _RUNTIME.ok(f"{around.container}: {len(boards(machine))} cards")
    return _RUNTIME.fail(
        f"{around.container}: no card, although the host has one or its driver",
        why="The container was started without its GPUs: the driver's libraries and device nodes are handed in by the "
        "NVIDIA container toolkit, not by the image.",
        remedy="install nvidia-container-toolkit on the host, `sudo nvidia-ctk runtime configure --runtime=docker`, "
        "restart docker, and start with `--gpus all`",
    )


def _mandatory(machine: Machine) -> Check:
    around = machine.surroundings
    if around.device_nodes_denied:
        return _CONTROL.warn(
            around.mandatory_access,
            why="It may be what forbids the device nodes.",
            remedy=f"settle {NODES.id}",
        )
    return _CONTROL.ok(around.mandatory_access, "It forbids no device node that was tried.")


def _cache(machine: Machine) -> Check:
    cache = machine.surroundings.hugging_face_cache
    return _CACHE.unknown(
        f"{cache or 'no cache folder yet'}, in {machine.surroundings.container}; whether it is a mount is not measured",
        remedy="mount a folder of the host (`-v /models:/models -e HF_HOME=/models`, or a volume): without one "
        "each new container fetches the model anew",
    )


def _variables(machine: Machine) -> Iterator[Check]:
    variables = dict(machine.surroundings.variables)
    home = variables.get("CUDA_HOME", machine.surroundings.cuda_home)
    if home and (home != home.strip() or ":" in home):
        yield _PATHS.warn(
            f"CUDA_HOME={home}",
            why="It is one folder, not a search path: FlashInfer and DeepGEMM look for bin/nvcc below it.",
            remedy="set it to the toolkit's folder alone, such as /usr/local/cuda",
        )
    written = variables.get("TORCH_CUDA_ARCH_LIST", "")
    listed = tuple(part for part in written.replace(";", " ").replace(",", " ").split() if part[0].isdigit())
    wanted = {card.compute_capability for card in usable(machine) if card.compute_capability}
    lacking = [card for card in sorted(wanted) if _left_out(listed, card)]
    if lacking:
        yield _PATHS.warn(
            f"TORCH_CUDA_ARCH_LIST={written}, a card is {', '.join(map(dotted, lacking))}",
            why="Whatever is compiled on this machine leaves these cards out: `no kernel image is available`.",
            remedy=f"unset it, or name {', '.join(map(dotted, lacking))}; it changes nothing in ready-made wheels",
        )


def _left_out(listed: tuple[str, ...], card: tuple[int, int]) -> bool:
    """In this variable `8.0+PTX` asks for both, code for 8.0 and PTX."""
    both = (*listed, *(part.removesuffix("+PTX") for part in listed))
    return bool(listed) and reach(both, card, built=(0, 0), driver=(0, 0)) in ("none", "too new")
