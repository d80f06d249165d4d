"""Which cards to take and how to spread a model over them: the candidates, best first. Pure.

Tensor parallelism shortens every request and is taken where heads divide; pipeline stages do not, and are for several
hosts or for numbers of cards that do not divide. Fewer cards come first: what is left over can serve something else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from casemate.checkpoint.facts import Checkpoint, Cut, Grouped, Recurrent
from casemate.doctor.machine import Card, Machine
from casemate.plan.accounting import Accounting
from casemate.plan.kernels import AMPERE, HOPPER, obstacle, stages_obstacle
from casemate.plan.launch import Layout
from casemate.plan.overhead import before_start_bytes, engine_total_bytes

_REFINED = (0, 33)
_LEAST_REFINED = 32
"""From this release routed FP8 experts cut inside a block get finer blocks, no finer than that (`oracle/fp8.py`)."""
_UNIFIED_SHARE = 0.85
"""Of memory that card and host share; above it public recipes fail and hosts hang (vllm#46307, recipes#632)."""
_MULTICAST_OFF = frozenset({("NCCL_NVLS_ENABLE", "0"), ("VLLM_ALLREDUCE_USE_SYMM_MEM", "0")})


@dataclass(frozen=True, slots=True)
class Seat:
    """A card that can be used: its memory as the engine sees it, and what other processes hold of it."""

    card: Card
    total_bytes: int
    used_bytes: int


@dataclass(frozen=True, slots=True)
class Seats:
    """The usable cards of a host, the roomiest first, and why each other is left out."""

    seats: tuple[Seat, ...]
    left_out: tuple[str, ...]
    linked: bool
    multicast: bool

    def smallest_bytes(self, count: int) -> int:
        """Memory of the smallest of the first `count` cards: it binds all of them."""
        return min(seat.total_bytes for seat in self.seats[:count])

    def most_utilization(self, count: int) -> float:
        """The largest share that every one of the first `count` cards has free when the engine starts."""
        return min(self._free_share(seat, ranks=count) for seat in self.seats[:count])

    def _free_share(self, seat: Seat, *, ranks: int) -> float:
        free = seat.total_bytes - seat.used_bytes
        if seat.card.unified:  # the host lives in the rest of it
            return _UNIFIED_SHARE * free / seat.total_bytes
        return (free - before_start_bytes(ranks=ranks, linked=self.linked)) / seat.total_bytes


def seated(machine: Machine, checkpoint: Checkpoint, *, engine: Accounting) -> Seats:
    """Sort a host's cards into those that can run the model and those that cannot."""
    seats, left_out = [], []
    for card in machine.cards:
        total = _total_bytes(card, machine, engine=engine)
        why = _unusable(card, checkpoint, engine=engine) or ("" if total else "its memory is not known")
        if why or not total:
            left_out.append(f"card {card.index}{f' ({card.mig})' if card.mig else ''}: {why}")
            continue
        seats.append(Seat(card, total, _used_bytes(card, machine)))
    # Cards of one architecture serve together; the larger group of them is taken, the newer where both are as large.
    best = _largest_kind(seats)
    left_out += [f"card {seat.card.index}: not of the kind of the others" for seat in seats if seat not in best]
    indices = {seat.card.index for seat in best}
    linked = any(
        pair.link.startswith("NV") for pair in machine.pairs if pair.first in indices and pair.second in indices
    )
    switched = machine.surroundings.nvswitch is True or any(seat.card.fabric_state == "completed" for seat in best)
    off = _MULTICAST_OFF & set(machine.surroundings.variables)
    # Multicast through the switch (NVLink SHARP) came with Hopper; A100 boards have the switch without it.
    able = all((seat.card.compute_capability or AMPERE) >= HOPPER for seat in best)
    return Seats(tuple(best), tuple(left_out), linked, linked and switched and able and not off)


def layouts(checkpoint: Checkpoint, seats: Seats, *, nodes: int, engine: Accounting) -> tuple[Layout, ...]:
    """Every layout worth trying: tensor parallelism alone by rising number of cards, then with pipeline stages."""
    most = 1 if any(seat.card.mig for seat in seats.seats) else len(seats.seats)
    plain = [
        _layout(checkpoint, count, pipeline=nodes)
        for count in range(1, most + 1)
        if not divides(checkpoint, count, engine=engine)
    ]
    if nodes > 1:
        # Who names several hosts has them for this model: the widest ranks first.
        return tuple(reversed(plain))
    if stages_obstacle(checkpoint, engine=engine):
        return tuple(plain)
    staged = [
        _layout(checkpoint, tensor, pipeline=count // tensor)
        for count in range(2, most + 1)
        for tensor in range(count // 2, 0, -1)
        if count % tensor == 0 and count // tensor <= len(checkpoint.layers)
        if not divides(checkpoint, tensor, engine=engine)
    ]
    return tuple(plain + staged)


def divides(checkpoint: Checkpoint, tensor: int, *, engine: Accounting | None = None) -> str:
    """Why a model cannot be cut over so many ranks; empty where it can.

    `engine` tells whether routed experts may be cut inside a block of scales; without it they may not.
    """
    if checkpoint.attention_heads % tensor:
        return f"{tensor} cards do not divide {checkpoint.attention_heads} attention heads"
    for cache in checkpoint.caches:
        if isinstance(cache, Grouped) and cache.kv_heads % tensor and tensor % cache.kv_heads:
            return f"{tensor} cards do not divide {cache.kv_heads} key heads"
        if isinstance(cache, Recurrent) and cache.heads % tensor:
            return f"{tensor} cards do not divide {cache.heads} heads of the recurrent layers"
        if isinstance(cache, Recurrent) and cache.groups % tensor:
            return f"{tensor} cards do not divide {cache.groups} groups or key heads of the recurrent layers"
    return next(
        (why for cut in checkpoint.cuts if (why := _splits_block(checkpoint, cut, tensor=tensor, engine=engine))), ""
    )


def _splits_block(checkpoint: Checkpoint, cut: Cut, *, tensor: int, engine: Accounting | None) -> str:
    """Why a side of a packed matrix cannot be cut so: a rank's slice would end inside a block of scales."""
    if tensor == 1 or cut.numbers % (tensor * cut.block) == 0:
        return ""
    if cut.routed:
        refines = engine is not None and engine.version >= _REFINED and cut.numbers % (tensor * _LEAST_REFINED) == 0
        if refines or _deals_whole(checkpoint, tensor):
            return ""
    blocks = f"whole blocks of {cut.block}"
    return f"{tensor} cards do not divide {cut.numbers} ({cut.name}, {checkpoint.quantization}) into {blocks}"


def _deals_whole(checkpoint: Checkpoint, tensor: int) -> bool:
    """Whether routed experts are dealt out whole, so that none is cut."""
    return checkpoint.experts > 0 and tensor > 1 and checkpoint.experts % tensor == 0


def _layout(checkpoint: Checkpoint, tensor: int, *, pipeline: int) -> Layout:
    return Layout(tensor=tensor, pipeline=pipeline, data=1, expert=_deals_whole(checkpoint, tensor))


def _unusable(card: Card, checkpoint: Checkpoint, *, engine: Accounting) -> str:
    if card.mig_parent:
        return "cut into MIG slices, takes no work itself"
    if card.compute_capability is None:
        return "its compute capability is not known"
    if card.compute_mode == "prohibited":
        return "its compute mode prohibits work"
    return obstacle(checkpoint, card.compute_capability, engine=engine)


def _total_bytes(card: Card, machine: Machine, *, engine: Accounting) -> int | None:
    if card.unified and card.memory_total_bytes is None:
        return machine.memory_total_bytes
    found = engine_total_bytes(card)
    # What the driver keeps of a card is a guess where CUDA was not asked; an engine's log has its answer.
    return found if found is None or card.memory_cuda_bytes is not None else engine.correction.of_card(found)


def _used_bytes(card: Card, machine: Machine) -> int:
    if card.unified:
        return max(machine.memory_total_bytes - machine.memory_available_bytes, 0)
    return card.memory_used_bytes or 0


def _largest_kind(seats: list[Seat]) -> list[Seat]:
    kinds: dict[object, list[Seat]] = {}
    for seat in seats:
        kinds.setdefault(seat.card.compute_capability, []).append(seat)
    best = max(kinds.values(), key=lambda kind: (sum(seat.total_bytes for seat in kind), str(kind[0])), default=[])
    return sorted(best, key=lambda seat: (seat.used_bytes - seat.total_bytes, seat.card.index))


def skipped_counts(checkpoint: Checkpoint, most: int, *, engine: Accounting | None = None) -> Iterator[str]:
    """Why numbers of cards up to `most` were passed over."""
    for count in range(2, most + 1):
        if why := divides(checkpoint, count, engine=engine):
            yield why
