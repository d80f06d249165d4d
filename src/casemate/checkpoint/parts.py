"""What a model is made of: its weights before any quantisation, part by part, and how ranks share them.

The architectures (`architectures/`) write such lists from a config; `storage` tells what each weight takes as stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import prod

from casemate.checkpoint.facts import Cache


class Share(StrEnum):
    """How tensor-parallel ranks hold a weight: a slice each, all of it, or some experts (or slices of them) each."""

    SHARDED = "sharded"
    REPLICATED = "replicated"
    EXPERT = "expert"


@dataclass(frozen=True, slots=True)
class Weight:
    """A tensor, or `copies` equal ones (`{}` in the name stands for the number of the copy).

    `name` is the checkpoint's, within its part, without `.weight` where `linear`. `linear` marks a matrix that a
    quantisation method may pack; `fused` that all copies are stored as one tensor. `dtype` is set where it is not the
    model's.
    """

    name: str
    shape: tuple[int, ...]
    share: Share = Share.REPLICATED
    linear: bool = False
    copies: int = 1
    fused: bool = False
    dtype: str = ""

    @property
    def numbers(self) -> int:
        """How many numbers it has, all copies together."""
        return prod(self.shape) * self.copies


Part = tuple[Weight, ...]
"""The weights of one layer, or of a part outside the layers."""


@dataclass(frozen=True, slots=True)
class Outside:
    """What stands outside the layers. `draft` has a part for each layer of the drafting module."""

    embedding: Part
    head: Part
    draft: tuple[Part, ...] = ()
    draft_method: str = ""
    draft_tokens: int = 1
    draft_caches: tuple[Cache, ...] = ()


@dataclass(frozen=True, slots=True)
class Anatomy:
    """A whole model as weights and caches, and what it says of its widths.

    `prefix` is what the checkpoint puts before a layer's number (`model.layers.`). `intermediate_size` is the widest
    activation of one token in one feed-forward.
    """

    layers: tuple[Part, ...]
    outside: Outside
    caches: tuple[Cache, ...]
    attention_heads: int
    kv_heads: int
    intermediate_size: int
    experts: int = 0
    experts_per_token: int = 0
    prefix: str = "model.layers."
    notes: tuple[str, ...] = ()


def matrix(name: str, shape: tuple[int, int], *, share: Share = Share.SHARDED) -> Weight:
    """A linear layer's weight, by its rows and the numbers in each."""
    return Weight(name, shape, share, linear=True)


def vector(name: str, *shape: int, share: Share = Share.REPLICATED, dtype: str = "") -> Weight:
    """A weight that is never packed: a norm, a bias, a table, a router."""
    return Weight(name, shape, share, dtype=dtype)


def named(prefix: str, weights: Iterable[Weight]) -> Part:
    """The same weights with a prefix before their names."""
    return tuple(
        Weight(prefix + w.name, w.shape, w.share, linear=w.linear, copies=w.copies, fused=w.fused, dtype=w.dtype)
        for w in weights
    )
