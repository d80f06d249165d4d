"""How cards reach each other and the host: peer access, NVLink, fabric, PCIe."""

from __future__ import annotations

from collections.abc import Iterator

from casemate.doctor.checks.check import Check, Question, boards, label, listed, missing, reason
from casemate.doctor.machine import Card, Machine, Pair

_DISABLE_P2P = "start the engine with NCCL_P2P_DISABLE=1 and `--disable-custom-all-reduce`"

PEER = Question("links.peer-access", "Cards reach each other's memory", "nvidia-smi topo -p2p r; nvidia-smi topo -m")
_HANG = Question(
    "links.redirection",
    "Peer traffic over PCIe is not redirected",
    "sudo lspci -vvv | grep -i acsctl; cat /proc/cmdline; ls /sys/class/iommu",
)
_NVLINK = Question("links.nvlink", "NVLink", "nvidia-smi nvlink --status")
_FABRIC = Question(
    "links.fabric", "NVSwitch fabric", "systemctl status nvidia-fabricmanager; nvidia-smi -q | grep -A 3 Fabric"
)
_PCIE = Question(
    "links.pcie",
    "PCIe link",
    "nvidia-smi --query-gpu=index,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,"
    "pcie.link.width.max --format=csv",
)


def checks(machine: Machine) -> Iterator[Check]:
    """The checks of this theme; those between cards only where there are two."""
    cards = tuple(card for card in boards(machine) if not card.mig_parent)
    if len(cards) > 1:
        yield peer_access(machine, cards)
        yield from redirection(machine, cards)
    if any(card.nvlinks_active for card in cards) or any(_nvlink(pair) for pair in _between(machine, cards)):
        yield _links(machine, cards)
    yield from fabric(machine, cards)
    if cards:
        yield _pcie(cards)


def peer_access(machine: Machine, cards: tuple[Card, ...]) -> Check:
    """Whether every pair of cards has peer access, as the driver tells it."""
    pairs = _between(machine, cards)
    told = _links_told(pairs)
    if off := [pair for pair in pairs if pair.peer_access is False]:
        return PEER.warn(
            f"{told}; none between {', '.join(map(_refused, off))}",
            why="Without peer access all-reduce goes through the host's memory: tensor parallelism works, but each "
            "layer waits for it, and the engine's own all-reduce switches itself off.",
            remedy="look for a reason: virtualisation, ACS or IOMMU, cards below different sockets, a driver that does "
            "not allow it for this model of card. Until then plan with slow links",
        )
    if len(pairs) < len(cards) * (len(cards) - 1) // 2 or any(pair.peer_access is None for pair in pairs):
        words = reason(machine.unknown, "pairs", "topology", "peer_access")
        return PEER.unknown(
            f"{told or 'no link is told'}; peer access not told" + (f": {words}" if words else ""),
            remedy="run the commands below: `OK` stands for peer access",
        )
    return PEER.ok(told)


def redirection(machine: Machine, cards: tuple[Card, ...]) -> Iterator[Check]:
    """The hang of two cards over PCIe: peer writes that ACS or an IOMMU sends through the root complex get lost."""
    pairs = [pair for pair in _between(machine, cards) if not _nvlink(pair)]
    if not pairs:
        return
    around = machine.surroundings
    told = f"links {_links_told(pairs)}; ACS redirects: {_said(around.acs_redirect)}, IOMMU on: {_said(around.iommu)}"
    if all(pair.peer_access is False for pair in pairs):
        yield _HANG.ok(told, "There is no peer access that could be redirected.")
    elif around.acs_redirect or around.iommu:
        yield _HANG.warn(
            told,
            why="PCIe access control or an IOMMU that translates sends peer traffic up to the root complex. The driver "
            "still reports peer access, and the first all-reduce can hang for ever at 100 % load (NCCL guide, "
            "troubleshooting; vllm#51513): the engine's own all-reduce is on at exactly two cards.",
            remedy="switch ACS off in the BIOS (or by setpci after boot) and boot with `iommu=pt`; or " + _DISABLE_P2P,
        )
    elif around.acs_redirect is None or around.iommu is None:
        yield _HANG.unknown(
            told, remedy=f"look as root by the commands below; if the first request hangs, {_DISABLE_P2P}"
        )
    else:
        yield _HANG.ok(told)


def fabric(machine: Machine, cards: tuple[Card, ...]) -> Iterator[Check]:
    """NVSwitch boards compute only after the fabric manager has set the switches up."""
    around = machine.surroundings
    states = {card.index: card.fabric_state.lower() for card in cards if _has_fabric(card)}
    told = f"switch: {_said(around.nvswitch)}, manager runs: {_said(around.fabric_manager)}"
    told += "".join(f", card {index}: {state}" for index, state in states.items())
    refused = machine.driver is not None and machine.driver.cuinit == 802
    set_up = bool(states) and all(state in ("completed", "success") for state in states.values())
    if not refused and not around.nvswitch and not states:
        return
    if refused or (states and not set_up) or (around.nvswitch and around.fabric_manager is False and not set_up):
        why, remedy = _not_ready(around.nvswitch, states)
        yield _FABRIC.fail(told, why=why, remedy=remedy)
    elif set_up:
        yield _FABRIC.ok(told)
    elif around.fabric_manager:
        yield _FABRIC.ok(told, "The manager runs; the cards do not tell a state.")
    else:
        yield _FABRIC.unknown(told, remedy="ask the host by the commands below; CUDA that starts proves it, too")


def _not_ready(switch: bool | None, states: dict[int, str]) -> tuple[str, str]:  # noqa: FBT001 - the fact itself
    """Why CUDA answers 802, and what to do; what is not seen on this machine is not said to be here."""
    manager = (
        "install nvidia-fabricmanager in exactly the driver's version and "
        "`systemctl enable --now nvidia-fabricmanager`; in a VM the host runs it and hands out the partition"
    )
    if switch:
        return "The cards hang on NVSwitches that are not set up: CUDA answers 802 (system not ready).", manager
    if states:
        return (
            (
                "The cards belong to an NVLink fabric that is not set up, whose switches are not seen here (in a VM "
                "they are the host's): CUDA answers 802 (system not ready)."
            ),
            manager,
        )
    return (
        (
            "CUDA answers 802 (system not ready), and no NVSwitch is seen here. With confidential computing on, a card "
            "waits until it is declared ready; in a VM the switches may be the host's."
        ),
        (
            "look at `nvidia-smi conf-compute -f` and, where it is on, declare the cards ready after attestation: "
            "`nvidia-smi conf-compute -grs 1` as root; in a VM ask the host for its fabric manager and partition"
        ),
    )


def _links(machine: Machine, cards: tuple[Card, ...]) -> Check:
    counts = {card.nvlinks_active for card in cards}
    told = listed(cards, lambda card: f"{_number(card.nvlinks_active)} links{_rate(card)}")
    if None in counts:
        return _NVLINK.unknown(missing([c for c in cards if c.nvlinks_active is None], "nvlinks_active"), remedy=_SEE)
    if len(counts) > 1 or (0 in counts and any(_nvlink(pair) for pair in _between(machine, cards))):
        return _NVLINK.warn(
            told,
            why="Cards of one board have the same number of links: a link is down, and the slowest bounds them all.",
            remedy="reset the cards or reboot; if it stays, look for Xid 74 in the kernel log and for a loose bridge",
        )
    return _NVLINK.ok(told)


_SEE = "run the command below"


def _pcie(cards: tuple[Card, ...]) -> Check:
    told = listed(cards, lambda card: f"generation {_now(card.pcie_generation, card.pcie_generation_max)}, "
                                      f"width {_now(card.pcie_width, card.pcie_width_max)}")  # fmt: skip
    if narrow := [card for card in cards if _below(card.pcie_width, card.pcie_width_max)]:
        return _PCIE.warn(
            f"{told}; narrower than it could be: {', '.join(map(label, narrow))}",
            why="A link with fewer lanes than card and slot can have: loading the model and, without NVLink, every "
            "all-reduce take longer by that factor.",
            remedy="seat the card anew, look at riser, slot and BIOS (bifurcation)",
        )
    if slow := [card for card in cards if _below(card.pcie_generation, card.pcie_generation_max)]:
        return _PCIE.warn(
            f"{told}; slower than it could be: {', '.join(map(label, slow))}",
            why="An idle card lowers its link to save power, which is harmless. If it stays low under load, transfers "
            "take twice as long for each generation.",
            remedy="measure again while the card computes; if it stays low, look at slot, riser and BIOS",
        )
    fields = ("pcie_generation", "pcie_generation_max", "pcie_width", "pcie_width_max")
    if blind := [card for card in cards if any(getattr(card, field) is None for field in fields)]:
        return _PCIE.unknown(missing(blind, *fields), remedy="in a VM ask the host; else run the command below")
    return _PCIE.ok(told)


def _between(machine: Machine, cards: tuple[Card, ...]) -> list[Pair]:
    """One entry for each two of these cards, whichever of them is told first."""
    known = {card.index for card in cards}
    told = {
        frozenset((pair.first, pair.second)): pair
        for pair in machine.pairs
        if pair.first != pair.second and {pair.first, pair.second} <= known
    }
    return list(told.values())


def _links_told(pairs: list[Pair]) -> str:
    return ", ".join(sorted({pair.link or "unknown" for pair in pairs}))


def _refused(pair: Pair) -> str:
    return f"{pair.first} and {pair.second}" + (f" ({pair.why})" if pair.why else "")


def _nvlink(pair: Pair) -> bool:
    return pair.link.upper().startswith("NV")


def _has_fabric(card: Card) -> bool:
    return card.fabric_state.strip().lower() not in ("", "n/a", "[n/a]", "not supported", "not_supported", "none")


def _below(now: int | None, top: int | None) -> bool:
    return now is not None and top is not None and now < top


def _now(now: int | None, top: int | None) -> str:
    return f"{_number(now)} of {_number(top)}"


def _number(count: int | None) -> str:
    return "unknown" if count is None else str(count)


def _rate(card: Card) -> str:
    return f", {card.nvlink_bytes_per_s / 1e9:.0f} GB/s" if card.nvlink_bytes_per_s else ""


def _said(fact: bool | None) -> str:  # noqa: FBT001 - it is the fact itself
    return {True: "yes", False: "no", None: "unknown"}[fact]
