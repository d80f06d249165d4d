"""What one layer keeps of a sequence, as pages: the engine's cache specifications for the layers of a checkpoint. Pure.

A page holds the tokens of one block of one layer. Sizes and blocks follow vLLM's attention backends; for DeepSeek-V4
`models/deepseek_v4/{attention,compressor}.py` and `v1/attention/backends/mla/sparse_swa.py` (wheels 0.20 to 0.33).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from casemate.checkpoint.facts import Cache, Checkpoint, Compressed, Grouped, Latent, Recurrent
from casemate.plan.launch import Launch, ceil_div, round_up

_DEFAULT_BLOCK = 16
_LATENT_BLOCK = 64
"""What the MLA backends of Hopper and Blackwell take (FlashMLA, FlashInfer)."""
_V4_BLOCK = 256
_V4_ALIGNMENT = 576
"""Bytes that DeepSeek-V4's packed pages are rounded up to."""
_V4_WINDOW_BLOCK = 64
_SPARSE_LATENT_BYTES = 656
"""One token of DeepSeek-V3.2's packed fp8 latent: 512 fp8, 16 of scales, 64 bf16 of rope."""
_WIDE = {"float32": 4, "float": 4}
_NARROW_BYTES = 2


class Kind(StrEnum):
    """How many pages a sequence holds: for all its tokens, for a window, or a fixed number."""

    ALL = "all"
    WINDOW = "window"
    STATE = "state"


@dataclass(frozen=True, slots=True)
class Page:
    """One layer's cache: `block` tokens in `size` bytes. `window` is the window's width, or a sequence's states."""

    kind: Kind
    block: int
    size: int
    window: int = 0

    def held(self, context: int, in_flight: int) -> int:
        """Pages that one sequence of `context` tokens holds at most, `in_flight` of them not settled yet."""
        if self.kind is Kind.STATE:
            return self.window
        if self.kind is Kind.ALL:
            return ceil_div(context, self.block)
        # One more, because a window need not begin where a block does.
        return ceil_div(min(self.window - 1 + in_flight, context), self.block) + 1


@dataclass(frozen=True, slots=True)
class Paged:
    """A page and the layer it belongs to."""

    layer: int
    page: Page


def is_packed(checkpoint: Checkpoint) -> bool:
    """Whether the cache is DeepSeek-V4's, whose pages of unequal size share blocks."""
    return any(isinstance(cache, Compressed) for cache in checkpoint.caches)


def paged(checkpoint: Checkpoint, launch: Launch, *, states: int = 1) -> tuple[Paged, ...]:
    """Every cached layer of the model on one rank, in the engine's order; a drafting module's after the model's own.

    Args:
        checkpoint: the model.
        launch: tensor parallelism, kv dtype, block size, speculation.
        states: recurrent states that a sequence keeps (2 where prefixes of them are cached).
    """
    caches = list(checkpoint.caches)
    if launch.speculation and checkpoint.draft:
        caches += _shifted(checkpoint.draft.caches, by=len(checkpoint.layers))
    found = [
        Paged(layer, page)
        for cache in caches
        for layer in cache.layers
        for page in _pages(cache, checkpoint, launch=launch, states=states)
    ]
    return tuple(sorted(_aligned(found), key=lambda item: item.layer))


def _shifted(caches: tuple[Cache, ...], *, by: int) -> list[Cache]:
    """A draft's caches with layer numbers behind the model's, whichever way they were counted."""
    return [
        replace(cache, layers=tuple(layer if layer >= by else layer + by for layer in cache.layers)) for cache in caches
    ]


def _pages(cache: Cache, checkpoint: Checkpoint, *, launch: Launch, states: int) -> Iterator[Page]:
    number = 1 if launch.kv_dtype.startswith("fp8") else _WIDE.get(checkpoint.dtype, _NARROW_BYTES)
    tensor = launch.layout.tensor
    match cache:
        case Grouped():
            heads = max(1, cache.kv_heads // tensor)
            block = launch.block_size or _DEFAULT_BLOCK
            size = block * heads * (cache.key_size + cache.value_size) * number
            yield Page(Kind.WINDOW if cache.window else Kind.ALL, block, size, cache.window or 0)
        case Latent():
            yield from _latent(cache, launch, number=number)
        case Compressed():
            yield from _compressed(cache, launch)
        case Recurrent():
            heads_here = ceil_div(cache.heads, tensor) / cache.heads
            state_bytes = _WIDE.get(cache.state_dtype or checkpoint.dtype, _NARROW_BYTES)
            size = cache.state_numbers * state_bytes + cache.convolution_numbers * _NARROW_BYTES
            drafts = launch.speculation.tokens if launch.speculation else 0
            yield Page(Kind.STATE, 1, int(size * heads_here), states + drafts)


def _latent(cache: Latent, launch: Launch, *, number: int) -> Iterator[Page]:
    """A latent is whole on every rank, whatever the tensor parallelism."""
    block = launch.block_size or _LATENT_BLOCK
    token = (cache.latent_size + cache.rope_size) * number
    if cache.index_size and number == 1:
        token = _SPARSE_LATENT_BYTES
    yield Page(Kind.ALL, block, block * token)
    if cache.index_size:
        yield Page(Kind.ALL, block, block * _index_bytes(cache.index_size))


def _index_bytes(index_size: int) -> int:
    """An indexer's key: fp8, with a float32 scale for each 128."""
    return index_size + index_size // 128 * 4


def _compressed(cache: Compressed, launch: Launch) -> Iterator[Page]:
    """DeepSeek-V4: compressed entries and indexer keys of all tokens, the raw window, and states of entries half done.

    An entry is fp8 with rope in bf16 and a scale byte for each 64 (and one more): 584 bytes for 448 + 64. A state is
    float32, key and score; where entries overlap (ratio 4) two entries are half done at any time.
    """
    block = launch.block_size or _V4_BLOCK
    plain = cache.head_size - cache.rope_size
    entry = plain + 2 * cache.rope_size + plain // 64 + 1
    window_page = _V4_WINDOW_BLOCK * entry
    if cache.ratio > 1:
        half_done = 2 if cache.ratio <= 4 else 1
        yield _v4(Kind.ALL, block, size=block // cache.ratio * entry)
        if cache.index_size:
            yield _v4(Kind.ALL, block, size=block // cache.ratio * _index_bytes(cache.index_size))
        state = 2 * half_done * cache.head_size * 4
        state_block = _power_of_two(window_page // state)
        yield _v4(Kind.WINDOW, state_block, size=state_block * state, window=half_done * cache.ratio)
        if cache.index_size:
            index_state = 2 * half_done * cache.index_size * 4
            yield _v4(Kind.WINDOW, state_block, size=state_block * index_state, window=half_done * cache.ratio)
    yield _v4(Kind.WINDOW, _V4_WINDOW_BLOCK, size=window_page, window=cache.window)


def _v4(kind: Kind, block: int, *, size: int, window: int = 0) -> Page:
    return Page(kind, block, round_up(size, _V4_ALIGNMENT), window)


def _power_of_two(limit: int) -> int:
    return 1 << max(limit.bit_length() - 1, 0)


def _aligned(found: list[Paged]) -> list[Paged]:
    """Hybrids: attention blocks grow until their page holds a recurrent state, whose page is filled up to it."""
    states = [item.page.size for item in found if item.page.kind is Kind.STATE]
    others = [item.page for item in found if item.page.kind is not Kind.STATE]
    if not states or not others:
        return found
    token = max(page.size // page.block for page in others)
    block = others[0].block * ceil_div(max(states), others[0].block * token)
    block = max(block, others[0].block)
    aligned = []
    for item in found:
        page = item.page
        if page.kind is Kind.STATE:
            aligned.append(replace(item, page=replace(page, size=block * token)))
        else:
            aligned.append(replace(item, page=replace(page, block=block, size=page.size // page.block * block)))
    return aligned
