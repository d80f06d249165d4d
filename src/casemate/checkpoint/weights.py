"""The weights of a model as its safetensors headers tell them: actual bytes by layer, and how ranks share them.

Names tell the part (`naming`). A name that is not known counts as a tensor that every rank has, and is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from casemate.checkpoint.facts import Block
from casemate.checkpoint.naming import MATRICES, Place, place_of
from casemate.checkpoint.parts import Share
from casemate.checkpoint.safetensors import Tensor

_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Reading:
    """What the config tells that names and shapes do not.

    `layers` is their number, `bits` those of one number in packed matrices; `pairs` says that experts are FP4 stored
    two a byte, `tied` that the head is the embedding, so that a stored copy of it is not loaded.
    """

    layers: int
    bits: int = 4
    pairs: bool = False
    tied: bool = False


@dataclass(frozen=True, slots=True)
class Weighed:
    """All tensors of a folder as blocks; `unknown` counts those whose names were not understood, with `examples`."""

    layers: tuple[Block, ...]
    embedding: Block
    head: Block
    draft: tuple[Block, ...]
    vision: Block
    tensors: int
    unknown: int = 0
    examples: tuple[str, ...] = ()


def weigh(tensors: Iterable[Tensor], reading: Reading) -> Weighed:
    """Sort the tensors of a folder into blocks; their bytes are those that the headers tell."""
    sums: dict[tuple[str, int], _Sum] = {}
    unknown: list[str] = []
    count = 0
    for tensor in tensors:
        place = place_of(tensor.name, layers=reading.layers)
        if reading.tied and place.matrix:
            continue
        count += 1
        if not place.known:
            unknown.append(tensor.name)
        sums.setdefault((place.part, place.number), _Sum()).add(tensor, place, reading=reading)
    blocks = {key: total.block() for key, total in sums.items()}
    return Weighed(
        tuple(blocks.get(("layer", number), Block()) for number in range(reading.layers)),
        blocks.get(("embedding", -1), Block()),
        blocks.get(("head", -1), Block()),
        tuple(blocks[key] for key in sorted(blocks) if key[0] == "draft"),
        blocks.get(("vision", -1), Block()),
        count,
        unknown=len(unknown),
        examples=tuple(unknown[:_EXAMPLES]),
    )


class _Sum:
    """Running totals of one block."""

    def __init__(self) -> None:
        self._bytes = dict.fromkeys(Share, 0)
        self._numbers = dict.fromkeys(Share, 0)

    def add(self, tensor: Tensor, place: Place, *, reading: Reading) -> None:
        """Count a tensor."""
        stored = prod(tensor.shape)
        # One number cannot be sliced: each rank has a copy.
        share = Share.REPLICATED if stored <= 1 and place.share is Share.SHARDED else place.share
        self._bytes[share] += tensor.size_bytes
        self._numbers[share] += stored * _numbers_in(tensor.dtype, place, reading=reading)

    def block(self) -> Block:
        """The totals."""
        return Block(
            sharded_bytes=self._bytes[Share.SHARDED],
            replicated_bytes=self._bytes[Share.REPLICATED],
            expert_bytes=self._bytes[Share.EXPERT],
            parameters=self._numbers[Share.SHARDED] + self._numbers[Share.REPLICATED],
            expert_parameters=self._numbers[Share.EXPERT],
        )


def _numbers_in(dtype: str, place: Place, *, reading: Reading) -> int:
    """How many numbers of the model one stored number holds."""
    if place.leaf not in MATRICES:
        return 0
    if dtype == "I32" and place.leaf in ("qweight", "weight_packed"):
        return 32 // reading.bits
    if dtype == "U8" and place.leaf in ("weight_packed", "blocks", "weight"):
        return 2
    return 2 if dtype == "I8" and reading.pairs and place.share is Share.EXPERT else 1
