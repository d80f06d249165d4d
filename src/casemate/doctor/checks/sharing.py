"""Who shares a card: other processes, a virtual machine, a mode that lets one process alone on it."""

from __future__ import annotations

from collections.abc import Iterator

from casemate.doctor.checks.check import Check, Question, boards, gib, listed, missing
from casemate.doctor.machine import Card, Machine

_BUSY_BYTES = 1 << 30

_VIRTUAL = Question("cards.virtual", "Virtual GPU", "nvidia-smi -q | grep -A 3 'Virtualization Mode'")
_BUSY = Question(
    "cards.busy", "Memory already taken", "nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv"
)
_MODE = Question("cards.compute-mode", "Compute mode", "nvidia-smi --query-gpu=index,compute_mode --format=csv")
_PERSISTENCE = Question(
    "cards.persistence", "Persistence", "nvidia-smi --query-gpu=index,persistence_mode --format=csv"
)


def checks(machine: Machine, cards: tuple[Card, ...]) -> Iterator[Check]:
    """The checks of this theme, for the devices that an engine can run on."""
    yield from _virtual(cards)
    yield _busy(cards)
    if whole := tuple(card for card in boards(machine) if not card.mig_parent):
        yield _compute_mode(whole)
        yield _persistence(whole)


def _virtual(cards: tuple[Card, ...]) -> Iterator[Check]:
    if hosting := tuple(card for card in cards if _plain(card.virtual).startswith("host_")):
        yield _VIRTUAL.warn(
            listed(hosting, lambda card: card.virtual),
            why="The card is in the mode in which a hypervisor cuts it into vGPUs: what those hold is not there for an "
            "engine on the host itself, and the host's driver may be one without CUDA.",
            remedy="run the engine inside a virtual machine that has a vGPU, or take the card out of vGPU mode and "
            "pass it through whole",
        )
    elif virtual := tuple(card for card in cards if "vgpu" in card.virtual.lower().replace(" ", "")):
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
    if blind := tuple(card for card in cards if card.memory_used_bytes is None and not card.unified):
        return _BUSY.unknown(
            missing(blind, "memory_used_bytes", "memory.used"), remedy="ask as a user who may open the device nodes"
        )
    return _BUSY.ok(listed(cards, _held))


def _held(card: Card) -> str:
    if card.memory_used_bytes is None:
        return "it is the host's own"  # limits.memory tells what is free of that
    return gib(_taken(card))


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
