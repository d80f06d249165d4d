"""Cards: are there any, can an engine use them, and are they alike."""

from __future__ import annotations

from collections.abc import Iterator

from casemate.doctor.checks import sharing
from casemate.doctor.checks.check import (
    HANGS,
    Check,
    Question,
    dotted,
    gib,
    hangs,
    is_absent,
    label,
    listed,
    missing,
    reason,
    unanswered,
    usable,
)
from casemate.doctor.machine import Card, Machine

LOWEST_CAPABILITY = (7, 5)
"""What the engine's wheels have code for (vLLM, installation guide for CUDA); CUDA 13 dropped everything below it."""

KNOWN_MAJORS = (7, 8, 9, 10, 12)
"""Majors that published wheels of the engine are known to hold code for (vLLM 0.26 to 0.33)."""

_BFLOAT16_FROM = (8, 0)
_V4_PROVEN = (9, 10)
_V4_OTHER_PATH = (12,)
"""Majors with attention kernels for DeepSeek-V4: FlashMLA on 9 and 10, FlashInfer's sparse MLA on 12 (vLLM 0.25.1 to
0.33.0, `models/deepseek_v4`)."""

_ALIKE = 0.03
"""Cards of one model differ by less than this share of their memory."""

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
    yield from sharing.checks(machine, cards)


def present(machine: Machine) -> Check:
    """Whether there is a card; none at all is a normal case, one that the driver does not show is not."""
    if machine.cards:
        return PRESENT.ok(listed(machine.cards, lambda card: card.name or "unnamed"))
    if words := uncounted(machine):
        return PRESENT.unknown(f"not told: {words}", remedy=_to_count(machine))
    around, driver = machine.surroundings, machine.driver
    signs = [f"{count} on the PCI bus" for count in [len(around.pci_cards)] if count]
    signs += [f"driver {name}" for name in [driver and (driver.version or driver.kernel_module)] if name]
    signs += [f"device node {node}" for node in around.device_nodes[:1]]
    signs += ["a driver that answers"] if driver and driver.nvml == 0 else []
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
    if machine.driver and machine.driver.nvml == 0 and words.startswith(_COUNTED):
        return ""
    if not machine.cards and (failed := unanswered(machine)):
        return failed
    libraries = [reason(machine.unknown, name) for name in ("driver.nvml", "driver.cuinit")]
    return "" if machine.cards or all(map(is_absent, libraries)) else words


_COUNTED = ("the driver lists none", "No devices were found")
"""Words of who did count, and came to none."""


def _to_count(machine: Machine) -> str:
    if hangs(machine):
        return HANGS
    if machine.driver and machine.driver.nvml not in (None, 0, 4):
        return "settle driver.nvml first"
    return "run it where /dev/nvidiactl may be opened, or as root once"


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
            remedy=f"ask by `{_ALIKENESS.verify}` as a user who may open the device nodes, or name a MIG slice instead "
            "of its parent; the planner takes a figure by `--gpus`",
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
            missing(blind, "compute_capability", "compute_cap"),
            remedy="ask a driver of R510 or newer by the command below; beside a recording put what "
            f"`{_ALIKENESS.verify}` prints",
        )
    told = listed(cards, lambda card: dotted(card.compute_capability))
    if strange(cards):
        return CAPABILITY.unknown(
            f"{told}; no wheel of the engine is known to hold code for that",
            remedy="see `packages.architectures` for what an installed engine holds; else build it for this "
            "capability (TORCH_CUDA_ARCH_LIST), or take the maker's own image for the card",
        )
    if any((card.compute_capability or (0, 0)) < _BFLOAT16_FROM for card in cards):
        return CAPABILITY.warn(
            told,
            why=f"Below {dotted(_BFLOAT16_FROM)} there is no bfloat16: most models must run in float16, and the newest "
            "attention kernels do not run at all.",
            remedy="give the engine `--dtype half`, and plan with smaller models",
        )
    return CAPABILITY.ok(told)


def strange(cards: tuple[Card, ...]) -> tuple[Card, ...]:
    """Cards of a kind that no wheel is known to hold code for."""
    return tuple(c for c in cards if c.compute_capability and c.compute_capability[0] not in KNOWN_MAJORS)


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


def _size(card: Card) -> str:
    return gib(card.memory_total_bytes) if card.memory_total_bytes is not None else "memory unknown"
