"""Cards: are there any, can an engine use them, and are they alike."""

from __future__ import annotations

from collections.abc import Iterator

from casemate.doctor.checks.check import (
    Check,
    Question,
    boards,
    dotted,
    gib,
    is_absent,
    label,
    listed,
    missing,
    reason,
    usable,
)
from casemate.doctor.machine import Card, Machine

LOWEST_CAPABILITY = (7, 5)
"""What the engine's wheels have code for (vLLM, installation guide for CUDA); CUDA 13 dropped everything below it."""

_BFLOAT16_FROM = (8, 0)
_V4_PROVEN = (9, 10)
_V4_OTHER_PATH = (12,)
"""Majors with attention kernels for DeepSeek-V4: FlashMLA on 9 and 10, FlashInfer's sparse MLA on 12 (vLLM 0.25.1 to
0.33.0, `models/deepseek_v4`)."""

_ALIKE = 0.03
"""Cards of one model differ by less than this share of their memory."""

_BUSY_BYTES = 1 << 30
_CPU_ENGINE = "the platform runs its CPU engine (llama.cpp) instead: `casemate up`"

PRESENT = Question("cards.present", "Accelerators", "nvidia-smi -L")
MEMORY = Question(
    "cards.memory", "Memory of the cards", "nvidia-smi --query-gpu=index,memory.total,memory.used --format=csv"
)
CAPABILITY = Question("cards.capability", "Compute capability", "nvidia-smi --query-gpu=index,compute_cap --format=csv")
_V4 = Question("cards.deepseek-v4", "Kernels for DeepSeek-V4", CAPABILITY.verify)
_ALIKENESS = Question(
    "cards.alike", "Cards alike", "nvidia-smi --query-gpu=index,name,compute_cap,memory.total --format=csv"
)
_SLICES = Question("cards.mig", "MIG slices", "nvidia-smi -L")
_VIRTUAL = Question("cards.virtual", "Virtual GPU", "nvidia-smi -q | grep -A 3 'Virtualization Mode'")
_BUSY = Question(
    "cards.busy", "Memory already taken", "nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv"
)
_MODE = Question("cards.compute-mode", "Compute mode", "nvidia-smi --query-gpu=index,compute_mode --format=csv")
_PERSISTENCE = Question(
    "cards.persistence", "Persistence", "nvidia-smi --query-gpu=index,persistence_mode --format=csv"
)


def checks(machine: Machine) -> Iterator[Check]:
    """The checks of this theme; on a host without cards one, which says so."""
    yield present(machine)
    cards = usable(machine)
    if not cards:
        yield from _slices(machine)
        return
    yield memory(cards)
    yield capability(cards)
    yield _deepseek_v4(cards)
    if len(cards) > 1:
        yield _alike(cards)
    yield from _slices(machine)
    yield from _virtual(cards)
    yield _busy(cards)
    if whole := tuple(card for card in boards(machine) if not card.mig_parent):
        yield _compute_mode(whole)
        yield _persistence(whole)


def present(machine: Machine) -> Check:
    """Whether there is a card; none at all is a normal case, one that the driver does not show is not."""
    if machine.cards:
        return PRESENT.ok(listed(machine.cards, lambda card: card.name or "unnamed"))
    if words := uncounted(machine):
        return PRESENT.unknown(
            f"not told: {words}", remedy="run it where /dev/nvidiactl may be opened, or as root once"
        )
    around, driver = machine.surroundings, machine.driver
    signs = [f"{count} on the PCI bus" for count in [len(around.pci_cards)] if count]
    signs += [f"driver {name}" for name in [driver and (driver.version or driver.kernel_module)] if name]
    signs += [f"device node {node}" for node in around.device_nodes[:1]]
    if not signs:
        return PRESENT.ok("none", f"No card and no driver: {_CPU_ENGINE}.")
    return PRESENT.fail(
        f"none that the driver shows, but {', '.join(signs)}",
        why="A card without a working driver computes nothing. The driver may not be installed or not be loaded, the "
        "card may have fallen off the bus or be bound to another driver (vfio-pci, nouveau), or it was not handed to "
        "this container.",
        remedy="see `dmesg | grep -i -E 'nvrm|xid|nouveau'`; install the driver, R580 or newer, or reboot; in a "
        f"container start it with `--gpus all`. Until then {_CPU_ENGINE}",
    )


def uncounted(machine: Machine) -> str:
    """Why the cards could not be counted; empty if they were, or no library of a driver is there to tell of any."""
    words = reason(machine.unknown, "cards")
    libraries = [reason(machine.unknown, name) for name in ("driver.nvml", "driver.cuinit")]
    return "" if machine.cards or all(map(is_absent, libraries)) else words


def memory(cards: tuple[Card, ...]) -> Check:
    """Each card's memory, measured; the planner takes no other figure."""
    if unified := tuple(card for card in cards if card.unified):
        return MEMORY.warn(
            listed(unified, lambda _: "unified memory"),
            why="The card shares the host's memory: what processes and file cache hold is missing for the model.",
            remedy="plan with the host's memory and leave room for the system: "
            "`casemate plan MODEL --memory-cap GiB`, and a lower --gpu-memory-utilization",
        )
    if blind := tuple(card for card in cards if card.memory_total_bytes is None):
        return MEMORY.unknown(
            f"{missing(blind, 'memory_total_bytes', 'memory.total')} (a MIG parent, or permissions)",
            remedy="ask as a user who may open the device nodes, or name a MIG slice instead of its parent; "
            "the planner takes a figure by `--gpus`",
        )
    return MEMORY.ok(listed(cards, lambda card: gib(card.memory_total_bytes or 0)))


def capability(cards: tuple[Card, ...]) -> Check:
    """Whether the engine has code for these cards."""
    if low := tuple(c for c in cards if c.compute_capability and c.compute_capability < LOWEST_CAPABILITY):
        others = len(low) < len(cards)
        return CAPABILITY.fail(
            listed(cards, lambda card: dotted(card.compute_capability)),
            why=f"Wheels of the engine hold code for {dotted(LOWEST_CAPABILITY)} and newer; CUDA 13 cannot even "
            "compile for older cards.",
            remedy="leave the old cards out by CUDA_VISIBLE_DEVICES" if others else _CPU_ENGINE,
        )
    if blind := tuple(card for card in cards if card.compute_capability is None):
        return CAPABILITY.unknown(
            missing(blind, "compute_capability", "compute_cap"), remedy="ask a driver of R510 or newer, through NVML"
        )
    told = listed(cards, lambda card: dotted(card.compute_capability))
    if any((card.compute_capability or (0, 0)) < _BFLOAT16_FROM for card in cards):
        return CAPABILITY.warn(
            told,
            why=f"Below {dotted(_BFLOAT16_FROM)} there is no bfloat16: most models must run in float16, and the newest "
            "attention kernels do not run at all.",
            remedy="give the engine `--dtype half`, and plan with smaller models",
        )
    return CAPABILITY.ok(told)


def _deepseek_v4(cards: tuple[Card, ...]) -> Check:
    if any(card.compute_capability is None for card in cards):
        return _V4.unknown("the compute capability is not known", remedy=f"settle {CAPABILITY.id} first")
    majors = {card.compute_capability[0] for card in cards if card.compute_capability}
    told = listed(cards, lambda card: dotted(card.compute_capability))
    if majors <= set(_V4_PROVEN):
        return _V4.ok(told, "FlashMLA's sparse attention and the mHC kernel exist for 9.x and 10.x.")
    if majors <= {*_V4_PROVEN, *_V4_OTHER_PATH}:
        return _V4.warn(
            told,
            why="On 12.x this family takes FlashInfer's sparse MLA instead of FlashMLA: a younger path that wants a "
            "FlashInfer with that kernel, and the recipe for Hopper does not carry over.",
            remedy="take the newest engine that the driver allows, and try a short request before a long one",
        )
    return _V4.warn(
        told,
        why="DeepSeek-V4 has attention kernels for 9.x, 10.x and 12.x only; other models run.",
        remedy="choose another model for these cards, or run V4 on Hopper or Blackwell",
    )


def _alike(cards: tuple[Card, ...]) -> Check:
    sizes = [card.memory_total_bytes for card in cards if card.memory_total_bytes is not None]
    capabilities = {card.compute_capability for card in cards if card.compute_capability is not None}
    told = listed(cards, lambda card: f"{_size(card)}, {dotted(card.compute_capability)}")
    if len(capabilities) > 1 or (sizes and max(sizes) - min(sizes) > _ALIKE * max(sizes)):
        return _ALIKENESS.warn(
            told,
            why="Tensor parallelism gives every card the same share, so the smallest card bounds them all, and one "
            "engine build and one kernel choice must suit each of them.",
            remedy="run one engine on the cards that are alike (CUDA_VISIBLE_DEVICES by UUID), another on the rest",
        )
    if len(sizes) < len(cards) or any(card.compute_capability is None for card in cards):
        return _ALIKENESS.unknown("some facts are not known", remedy=f"settle {MEMORY.id} and {CAPABILITY.id} first")
    return _ALIKENESS.ok(told)


def _slices(machine: Machine) -> Iterator[Check]:
    parents = tuple(card for card in machine.cards if card.mig_parent)
    slices = tuple(card for card in machine.cards if card.mig)
    if parents and not usable(machine):
        yield _SLICES.fail(
            f"MIG is on, with no slice: {listed(parents, lambda card: card.name)}",
            why="A card in MIG mode computes only through its slices.",
            remedy="make one (`nvidia-smi mig -cgi PROFILE -C`; profiles: `nvidia-smi mig -lgip`), or switch MIG off "
            "(`nvidia-smi -i INDEX -mig 0`)",
        )
    elif slices:
        yield _SLICES.warn(
            "; ".join(label(card) for card in slices),
            why="Slices have no peer-to-peer access and no NVLink between them, so an engine runs on one of them alone "
            "(tensor parallel 1); their parents cannot be used.",
            remedy="name one slice by its MIG UUID in CUDA_VISIBLE_DEVICES; for a larger model switch MIG off",
        )


def _virtual(cards: tuple[Card, ...]) -> Iterator[Check]:
    if virtual := tuple(card for card in cards if "vgpu" in card.virtual.lower().replace(" ", "")):
        yield _VIRTUAL.warn(
            listed(virtual, lambda card: card.virtual),
            why="A vGPU has the memory of its profile, shares the chip in time, needs a licence (without one its "
            "clocks drop), and often has neither peer-to-peer access nor unified memory.",
            remedy="check the licence, and pass the whole card through where speed matters",
        )


def _busy(cards: tuple[Card, ...]) -> Check:
    taken = tuple(card for card in cards if _taken(card) > _BUSY_BYTES)
    if taken:
        return _BUSY.warn(
            listed(taken, lambda card: f"{gib(_taken(card))} by {len(card.processes) or 'unknown'} processes"),
            why="The engine refuses to start when less is free than its share of the whole card "
            "(--gpu-memory-utilization, 0.92 by default).",
            remedy="end what holds it, or lower --gpu-memory-utilization; after a crash look for workers that stayed",
        )
    if blind := tuple(c for c in cards if c.memory_used_bytes is None and not c.processes and not c.unified):
        return _BUSY.unknown(missing(blind, "memory_used_bytes", "memory.used"), remedy=f"settle {MEMORY.id} first")
    return _BUSY.ok(listed(cards, lambda card: gib(_taken(card))))


def _taken(card: Card) -> int:
    return max(card.memory_used_bytes or 0, sum(held or 0 for _, held in card.processes))


def _compute_mode(cards: tuple[Card, ...]) -> Check:
    if shut := tuple(card for card in cards if _plain(card.compute_mode) == "prohibited"):
        return _MODE.fail(
            listed(shut, lambda card: card.compute_mode),
            why="In this mode no process may compute on the card.",
            remedy="`nvidia-smi -i INDEX -c DEFAULT` as root",
        )
    if alone := tuple(card for card in cards if _plain(card.compute_mode).startswith("exclusive")):
        return _MODE.warn(
            listed(alone, lambda card: card.compute_mode),
            why="One process alone may use each card: a second engine, a profiler or a leftover worker blocks it.",
            remedy="`nvidia-smi -i INDEX -c DEFAULT` as root, unless a scheduler hands the cards out",
        )
    if blind := tuple(card for card in cards if not card.compute_mode):
        return _MODE.unknown(missing(blind, "compute_mode"), remedy="ask the driver: the command below")
    return _MODE.ok(listed(cards, lambda card: card.compute_mode))


def _persistence(cards: tuple[Card, ...]) -> Check:
    if off := tuple(card for card in cards if card.persistence is False):
        return _PERSISTENCE.warn(
            listed(off, lambda _: "off"),
            why="Between two uses the driver lets go of the card: each start initialises it anew (seconds a card), and "
            "settings such as a power limit are lost.",
            remedy="`systemctl enable --now nvidia-persistenced`, or `nvidia-smi -pm 1` until the next boot",
        )
    if blind := tuple(card for card in cards if card.persistence is None):
        return _PERSISTENCE.unknown(missing(blind, "persistence", "persistence_mode"), remedy="ask the driver as root")
    return _PERSISTENCE.ok("on")


def _plain(mode: str) -> str:
    return mode.lower().replace(" ", "_")


def _size(card: Card) -> str:
    return gib(card.memory_total_bytes) if card.memory_total_bytes is not None else "memory unknown"
