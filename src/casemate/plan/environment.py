"""What stands around the command of a plan: environment variables, and which cards the engine may see. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from casemate.checkpoint.facts import Checkpoint
from casemate.doctor.machine import Card, Machine
from casemate.plan.argv import Serving
from casemate.plan.correction import Correction
from casemate.plan.decision import CardsPlan
from casemate.plan.kernels import half_dtype
from casemate.plan.overhead import engine_total_bytes
from casemate.plan.recipe.flags import FlagTable

READY_TIMEOUT_S = 3600
"""A cold start of DeepSeek-V4 takes 20 minutes and more (160 GB from disk, kernels compiled at first use)."""
KEY = "VLLM_API_KEY"
_PCI_ORDER = "CUDA_DEVICE_ORDER"
_VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable of the engine, with the reason for it. Never a secret."""

    name: str
    value: str
    why: str


def environment(plan: CardsPlan, serving: Serving, *, machine: Machine) -> tuple[Variable, ...]:
    """The variables to start the engine with; its key is not among them."""
    return tuple(_variables(plan, serving, machine=machine))


def used_cards(plan: CardsPlan, machine: Machine) -> tuple[Card, ...]:
    """The cards of a plan; of several MIG slices with one index the roomiest, as the planner takes them."""
    candidates = [card for card in machine.cards if card.index in plan.cards and not card.mig_parent]
    roomiest = sorted(candidates, key=lambda card: (card.memory_used_bytes or 0) - (card.memory_total_bytes or 0))
    taken = roomiest[: len(plan.cards)]
    return tuple(card for card in candidates if card in taken)


def smallest_bytes(plan: CardsPlan, machine: Machine, *, correction: Correction) -> int:
    """Memory of a plan's smallest card as the engine sees it; cards that share the host's memory have its total."""

    def size(card: Card) -> int:
        found = engine_total_bytes(card) or machine.memory_total_bytes
        return found if card.memory_cuda_bytes is not None else correction.of_card(found)

    return min(map(size, used_cards(plan, machine)), default=0)


def is_subset(plan: CardsPlan, machine: Machine) -> bool:
    """Whether some card of the machine is left out; a MIG slice always has to be named."""
    usable = [card for card in machine.cards if not card.mig_parent]
    return len(plan.cards) < len(usable) or any(card.mig for card in usable)


def dtype(plan: CardsPlan, checkpoint: Checkpoint, *, machine: Machine) -> str:
    """What `--dtype` must say on the plan's cards; empty where the model's own type will do."""
    capabilities = [card.compute_capability for card in used_cards(plan, machine) if card.compute_capability]
    return half_dtype(checkpoint, min(capabilities)) if capabilities else ""


def peer_writes_lost(plan: CardsPlan, machine: Machine) -> bool:
    """Whether a bridge redirects PCIe peer traffic between the used cards: the first all-reduce can hang for ever.

    The driver reports peer access all the same (NCCL guide, troubleshooting; vllm#51513).
    """
    used = {card.index for card in used_cards(plan, machine)}
    pairs = [pair for pair in machine.pairs if pair.first in used and pair.second in used]
    direct = [pair for pair in pairs if not pair.link.startswith("NV") and pair.peer_access is not False]
    return machine.surroundings.acs_redirect is True and bool(direct)


def cautions(plan: CardsPlan, serving: Serving, *, machine: Machine) -> Iterator[str]:
    """What the environment cannot say in this release."""
    used = used_cards(plan, machine)
    if any(card.mig for card in used) and not _takes_uuids(serving.table):
        yield (
            f"vLLM {plan.engine_version} does not take a MIG slice's UUID (vllm#41848; since 0.25 it does): leave one"
            " slice on the machine, or take a newer engine"
        )
    if plan.nodes > 1:
        yield "NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME must name the interface between the hosts; only you know it"


def _variables(plan: CardsPlan, serving: Serving, *, machine: Machine) -> Iterator[Variable]:
    if "VLLM_ENGINE_READY_TIMEOUT_S" in serving.table.variables:
        why = "the default of 600 s ends a cold start of a large model"
        yield Variable("VLLM_ENGINE_READY_TIMEOUT_S", str(READY_TIMEOUT_S), why)
    yield Variable("VLLM_NO_USAGE_STATS", "1", "the engine reports its use to its makers otherwise")
    yield Variable("DO_NOT_TRACK", "1", "the same for the libraries that heed it")
    yield Variable("HF_HUB_OFFLINE", "1", "the model lies here; nothing is asked of the hub")
    if plan.nodes == 1 and is_subset(plan, machine):
        yield from _visible(used_cards(plan, machine), serving.table)
    if serving.peer_writes_lost:
        why = "PCIe access control redirects peer traffic here: the first all-reduce could hang (vllm#51513)"
        yield Variable("NCCL_P2P_DISABLE", "1", why)


def _visible(used: tuple[Card, ...], table: FlagTable) -> Iterator[Variable]:
    if all(card.uuid for card in used) and _takes_uuids(table):
        yield Variable(_VISIBLE, ",".join(card.uuid for card in used), "these cards and no others")
    elif not any(card.mig for card in used):
        yield Variable(_PCI_ORDER, "PCI_BUS_ID", "the numbers below count as nvidia-smi does")
        why = "these cards and no others; by number, because this release takes no UUID or none is known"
        yield Variable(_VISIBLE, ",".join(str(card.index) for card in used), why)


def _takes_uuids(table: FlagTable) -> bool:
    """Since 0.25: the change that brought `--device-ids` (vllm#45026)."""
    return table.get("device-ids") is not None
