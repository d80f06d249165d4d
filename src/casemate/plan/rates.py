"""What the cards of a plan can do in a second, and how fast they talk to each other. Pure.

Rates come from the chip where it is known (`cards.tsv`), else they are bounds worked out from clocks and bus; a bound
widens the band of every prediction made from it.
"""

from __future__ import annotations

from dataclasses import dataclass

from casemate.doctor.machine import Card, Machine
from casemate.plan.catalogue import Chip, chip_of

_TRANSFERS_A_CLOCK = 2
_BF16_FLOPS_A_CLOCK = {
    (7, 5): 1024,
    (8, 0): 2048,
    (8, 6): 512,
    (8, 9): 1024,
    (9, 0): 4096,
    (10, 0): 8192,
    (12, 0): 1024,
}
"""Dense bf16 (fp16 on 7.5) operations of one multiprocessor in one clock: the data sheets' rates over SMs and clock."""
_FP8_FIRST = (8, 9)
_READING_SHARE = 0.82
_DENSE_BYTES_PER_S, _EXPERTS_BYTES_PER_S, _BLACKWELL_BYTES_PER_S = 20e9, 28e9, 34e9
_BLACKWELL = (10, 0)
"""Weights for few tokens are read at a share of the nominal bandwidth, and no faster than the multiprocessors ask for
them, so much each: 72B on two H100 (3.35 TB/s, 132 of them) reads 2.5 TB/s, 32B on an H20 (4.0 TB/s, 78) 1.5 TB/s in
public runs; experts on H200 (4.8 TB/s, 132) 3.7 TB/s as recorded; 14B on a B200 (8 TB/s, 148) 5 TB/s (public)."""
_PCIE_LANE_BYTES_PER_S = {3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
"""One lane, one way, after line coding (PCI-SIG base specifications)."""
_PCIE_SHARE = 0.8
_NVLINK_SHARE = 0.67
"""Of the nominal rate: recorded all-reduces of 256 MiB over NVLink reached 302 of 450 GB/s."""
_NVLINK_S, _NVLINK_RANK_S = 7e-6, 0.75e-6
_PCIE_DIRECT_S, _PCIE_RANK_S = 10e-6, 4e-6
_PCIE_BY_HOST_S = 22e-6
_FABRIC_S, _FABRIC_BYTES_PER_S = 35e-6, 25e9
"""One small all-reduce inside a CUDA graph, of two ranks, and what each further rank adds. Over NVLink the engine's own
kernel took 4 to 8 µs for 2 to 8 ranks (sglang#2904), its wait for the slowest rank comes on top; NCCL over PCIe took 8
to 14 µs for 2 and 4 ranks (flashinfer#5023), 20 µs for 4 V100, 40 µs through the host. Between hosts: one 200 Gbit/s
port."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Of one card, and of the link between cards. `bounded` says that they are bounds, not a known chip's figures.

    `bandwidth_bytes_per_s` is nominal, `reading_bytes_per_s` what a decode step gets of it for dense weights and the
    cache, `reading_experts_bytes_per_s` for experts. `fp8_flops` is 0 where the card has no such arithmetic.
    `link_bytes_per_s` is one way, `link_s` one small all-reduce of two ranks, `link_rank_s` what each further one adds.
    """

    bandwidth_bytes_per_s: float
    reading_bytes_per_s: float
    reading_experts_bytes_per_s: float
    bf16_flops: float
    fp8_flops: float
    link_bytes_per_s: float
    link_s: float
    link_rank_s: float
    bounded: bool


def rates(machine: Machine, cards: tuple[int, ...], *, known: tuple[Chip, ...], nodes: int = 1) -> Rates | None:
    """The rates of the slowest of these cards; None where neither chip nor clocks are known.

    Args:
        machine: the host.
        cards: indices of the cards that the plan uses.
        known: the table of chips.
        nodes: hosts alike; above one the link is the network between them.
    """
    used = [card for card in machine.cards if card.index in cards]
    chips = [chip_of(card, known) for card in used]
    found = [_of_chip(chip) if chip else _of_clocks(card) for card, chip in zip(used, chips, strict=True)]
    slowest = [rate for rate in found if rate is not None]
    if not used or len(slowest) < len(found):
        return None
    link, latency, each = (_FABRIC_BYTES_PER_S, _FABRIC_S, 0.0) if nodes > 1 else _link(machine, used, chips=chips)
    bandwidth = min(rate[0] for rate in slowest)
    return Rates(
        bandwidth_bytes_per_s=bandwidth,
        reading_bytes_per_s=_reading(bandwidth, used, each=_DENSE_BYTES_PER_S),
        reading_experts_bytes_per_s=_reading(bandwidth, used, each=_EXPERTS_BYTES_PER_S),
        bf16_flops=min(rate[1] for rate in slowest),
        fp8_flops=min(rate[2] for rate in slowest),
        link_bytes_per_s=link,
        link_s=latency,
        link_rank_s=each,
        bounded=any(chip is None for chip in chips),
    )


def _reading(bandwidth: float, used: list[Card], *, each: float) -> float:
    """Bytes a second that the slowest card reads; `each` is what a multiprocessor asks for, before Blackwell."""
    asked = min(
        (card.multiprocessors or 0) * (each if _before_blackwell(card) else _BLACKWELL_BYTES_PER_S) for card in used
    )
    return min(bandwidth * _READING_SHARE, asked or bandwidth)


def _before_blackwell(card: Card) -> bool:
    return (card.compute_capability or (0, 0)) < _BLACKWELL


def _of_chip(chip: Chip) -> tuple[float, float, float]:
    return chip.bandwidth_bytes_per_s, chip.bf16_flops, chip.fp8_flops


def _of_clocks(card: Card) -> tuple[float, float, float] | None:
    """Bounds from memory clock × bus and from multiprocessors × clock."""
    capability, clock = card.compute_capability, card.sm_clock_max_hz or card.sm_clock_hz
    first = max((known for known in _BF16_FLOPS_A_CLOCK if capability and known <= capability), default=None)
    if not (card.memory_clock_hz and card.memory_bus_bits and card.multiprocessors and clock and capability and first):
        return None
    bf16 = float(card.multiprocessors * clock * _BF16_FLOPS_A_CLOCK[first])
    bandwidth = card.memory_clock_hz * _TRANSFERS_A_CLOCK * card.memory_bus_bits / 8
    return bandwidth, bf16, 2 * bf16 if capability >= _FP8_FIRST else 0.0


def _link(machine: Machine, used: list[Card], *, chips: list[Chip | None]) -> tuple[float, float, float]:
    """Bytes a second one way between two of the cards, a small all-reduce, and what a rank adds: the slowest pair."""
    indices = {card.index for card in used}
    pairs = [pair for pair in machine.pairs if {pair.first, pair.second} <= indices]
    if pairs and all(pair.link.startswith("NV") and pair.peer_access is not False for pair in pairs):
        named = [chip.nvlink_bytes_per_s for chip in chips if chip and chip.nvlink_bytes_per_s]
        told = [card.nvlink_bytes_per_s * (card.nvlinks_active or 1) for card in used if card.nvlink_bytes_per_s]
        nominal = float(min([*named, *([] if named else told)], default=50e9))
        return nominal * _NVLINK_SHARE, _NVLINK_S, _NVLINK_RANK_S
    lanes = min((card.pcie_width_max or 16 for card in used), default=16)
    generation = min((card.pcie_generation_max or 4 for card in used), default=4)
    bytes_per_s = lanes * _PCIE_LANE_BYTES_PER_S.get(generation, _PCIE_LANE_BYTES_PER_S[3]) * _PCIE_SHARE
    if pairs and all(pair.peer_access for pair in pairs):
        return bytes_per_s, _PCIE_DIRECT_S, _PCIE_RANK_S
    return bytes_per_s / 2, _PCIE_BY_HOST_S, _PCIE_RANK_S
