"""What a measured start-up corrects in a plan's arithmetic, and for which machine, model and release it holds. Values.

One start-up says how far the guesses were off, and each figure carries over in its own way: weights and the peak of a
step as ratios (both grow with the model's share and the batched tokens), graphs as a ratio for each captured size, and
memory outside the allocator as bytes, which stay what they are for as long as there are several ranks, or one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from casemate.checkpoint.facts import Checkpoint
from casemate.doctor.machine import Card, Pair

_SAME_MEMORY = 0.02
"""Drivers and ECC settings move a card's total by less."""
_SAME_WEIGHTS = 0.02
"""Bytes computed from a config lie within 1 % of the headers'."""


@dataclass(frozen=True, slots=True)
class Correction:
    """Factors on what is predicted, and bytes in place of it. Without a `date` it corrects nothing.

    Attributes:
        date: day of the start-up's log, as 2026-11-30; empty for none.
        weights: on the weights of a rank.
        forward, sampling, pictures: on the three peaks of a step (`overhead.activation_terms`).
        graphs, graphs_estimate: on what CUDA graphs take, and on what the engine sets aside for them.
        alone_bytes, ranks_bytes: memory outside the allocator, with one tensor-parallel rank and with several.
        card_bytes: a card's memory as the engine printed it.
        prefill, decode: how much longer prompts and tokens take than predicted.

    What is None was not measured.
    """

    date: str = ""
    weights: float = 1.0
    forward: float = 1.0
    sampling: float = 1.0
    pictures: float = 1.0
    graphs: float | None = None
    graphs_estimate: float | None = None
    alone_bytes: int | None = None
    ranks_bytes: int | None = None
    card_bytes: int | None = None
    prefill: float | None = None
    decode: float | None = None

    @property
    def told(self) -> str:
        """Who corrected, for a reason; empty for none."""
        return f"corrected by a measured start-up of {self.date}" if self.date else ""

    def of_weights(self, predicted_bytes: int) -> int:
        """The weights of a rank."""
        return round(predicted_bytes * self.weights)

    def of_peak(self, predicted_bytes: tuple[int, int, int]) -> int:
        """The peak of a step: the largest of its three, each corrected."""
        factors = (self.forward, self.sampling, self.pictures)
        return max(round(size * factor) for size, factor in zip(predicted_bytes, factors, strict=True))

    def of_graphs(self, predicted_bytes: tuple[int, int]) -> tuple[int, int]:
        """What the engine sets aside for CUDA graphs, and what they take."""
        estimate, real = (1.0 if factor is None else factor for factor in (self.graphs_estimate, self.graphs))
        return round(predicted_bytes[0] * estimate), round(predicted_bytes[1] * real)

    def other_bytes(self, ranks: int) -> int | None:
        """Memory outside the allocator as measured with so many ranks: one, or several; None if neither was."""
        return self.ranks_bytes if ranks > 1 else self.alone_bytes

    def of_other(self, predicted_bytes: int, ranks: int) -> int:
        """Memory outside the allocator: bytes stay what they are for as long as there are several ranks, or one."""
        known = self.other_bytes(ranks)
        return predicted_bytes if known is None else known

    def of_card(self, predicted_bytes: int) -> int:
        """A card's memory as the engine sees it; another kind of card keeps what is predicted for it."""
        if self.card_bytes is None or abs(self.card_bytes - predicted_bytes) > _SAME_MEMORY * predicted_bytes:
            return predicted_bytes
        return self.card_bytes

    def after(self, older: Correction) -> Correction:
        """This one, with what only an older start-up measured: an eager one does not tell of graphs, for example."""
        names = ("graphs", "graphs_estimate", "alone_bytes", "ranks_bytes", "card_bytes", "prefill", "decode")
        kept: dict[str, Any] = {name: getattr(older, name) for name in names if getattr(self, name) is None}
        return replace(self, **kept)


NOTHING = Correction()
"""What corrects nothing."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Cards of one kind: how many, and what tells them apart. Never a name or a UUID."""

    count: int
    capability: tuple[int, int]
    multiprocessors: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Host:
    """A machine as far as memory and speed depend on it.

    `link` is `nvswitch` (with multicast), `nvlink`, `pcie` (cards reach each other), `host` (through its memory), or
    empty for a single card.
    """

    kinds: tuple[Kind, ...]
    link: str

    def is_like(self, other: Host) -> bool:
        """Whether it is a machine of the same kind; memory may differ by what a driver keeps."""
        alike = len(self.kinds) == len(other.kinds) and all(map(_alike, self.kinds, other.kinds))
        return self.link == other.link and alike


@dataclass(frozen=True, slots=True)
class Shape:
    """A model as far as memory and speed depend on it; never its name. `weights_bytes` is without the draft."""

    architecture: str
    layers: int
    hidden_size: int
    vocabulary: int
    attention_heads: int
    kv_heads: int
    experts: int
    experts_per_token: int
    intermediate_size: int
    dtype: str
    quantization: str
    expert_dtype: str
    weights_bytes: int

    def is_like(self, other: Shape) -> bool:
        """Whether it is the same model; bytes may differ by what a config alone does not tell."""
        near = abs(self.weights_bytes - other.weights_bytes) <= _SAME_WEIGHTS * max(self.weights_bytes, 1)
        return near and replace(self, weights_bytes=0) == replace(other, weights_bytes=0)


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored correction: for which machine, model and release (`0.26.0`), and the values it was measured at."""

    host: Host
    shape: Shape
    release: str
    correction: Correction
    tensor: int
    pipeline: int
    batched_tokens: int
    context: int


@dataclass(frozen=True, slots=True)
class Found:
    """What the stored corrections say for one machine, model and release, and what they say nearby."""

    correction: Correction
    notes: tuple[str, ...] = ()


def release_of(version: str) -> str:
    """The release in a version, without build and suffix: `v0.26.0+cu130` is `0.26.0`; empty if there is none."""
    matched = re.match(r"v?(\d{1,4}(?:\.\d{1,4}){1,3})", version.strip(), re.ASCII)
    return matched[1] if matched else ""


def host_of(cards: tuple[Card, ...], pairs: tuple[Pair, ...], *, multicast: bool) -> Host:
    """The kind of machine that these cards make, of all cards that a model may use."""
    seen = [
        (card.compute_capability or (0, 0), card.multiprocessors or 0, card.memory_total_bytes or 0) for card in cards
    ]
    kinds = tuple(Kind(seen.count(kind), *kind) for kind in sorted(set(seen)))
    indices = {card.index for card in cards}
    among = [pair for pair in pairs if {pair.first, pair.second} <= indices]
    return Host(kinds, _link(among, alone=len(cards) < 2, multicast=multicast))


def shape_of(checkpoint: Checkpoint) -> Shape:
    """What tells a model from others."""
    drafted = sum(block.total_bytes for block in checkpoint.draft.blocks) if checkpoint.draft else 0
    return Shape(
        architecture=checkpoint.architecture,
        layers=len(checkpoint.layers),
        hidden_size=checkpoint.hidden_size,
        vocabulary=checkpoint.vocabulary,
        attention_heads=checkpoint.attention_heads,
        kv_heads=checkpoint.kv_heads,
        experts=checkpoint.experts,
        experts_per_token=checkpoint.experts_per_token,
        intermediate_size=checkpoint.intermediate_size,
        dtype=checkpoint.dtype,
        quantization=checkpoint.quantization,
        expert_dtype=checkpoint.expert_dtype,
        weights_bytes=checkpoint.weights_bytes - drafted,
    )


def matching(entries: tuple[Entry, ...], host: Host, *, shape: Shape, version: str) -> Found:
    """The correction for this machine, model and release; one of another release is told of and not applied.

    Weights computed in another way (config instead of headers) than when it was measured keep their measured size.
    """
    here = [entry for entry in entries if entry.host.is_like(host) and entry.shape.is_like(shape)]
    fitting = [entry for entry in here if entry.release == release_of(version)]
    if fitting:
        entry = fitting[-1]
        scale = entry.shape.weights_bytes / max(shape.weights_bytes, 1)
        return Found(replace(entry.correction, weights=entry.correction.weights * scale))
    elsewhere = [
        entry
        for entry in entries
        if entry.shape.is_like(shape) and entry.host.link != host.link and replace(entry.host, link="").is_like(
            replace(host, link="")
        )
    ]  # fmt: skip
    notes = [
        f"a start-up of vLLM {entry.release} was measured here ({entry.correction.date}); it corrects nothing for"
        f" {release_of(version) or version}"
        for entry in here
    ] + [
        f"a start-up was measured on such cards with another link ({entry.host.link or 'none'}, {entry.release},"
        f" {entry.correction.date}); it corrects nothing here"
        for entry in elsewhere
    ]
    return Found(NOTHING, tuple(dict.fromkeys(notes)))


def _alike(one: Kind, other: Kind) -> bool:
    near = abs(one.memory_bytes - other.memory_bytes) <= _SAME_MEMORY * one.memory_bytes
    return near and replace(one, memory_bytes=0) == replace(other, memory_bytes=0)


def _link(pairs: list[Pair], *, alone: bool, multicast: bool) -> str:
    if alone:
        return ""
    if multicast:
        return "nvswitch"
    if pairs and all(pair.link.startswith("NV") and pair.peer_access is not False for pair in pairs):
        return "nvlink"
    return "pcie" if pairs and all(pair.peer_access for pair in pairs) else "host"
