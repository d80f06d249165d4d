"""The cache as the engine lays it out: layers in groups, groups in one pool of equal blocks. Pure.

Every group has a block table of its own, and all draw from one pool, so a request takes the sum over the groups. The
rules are those of vLLM's `get_kv_cache_groups` and what it calls; four kinds of models come out of them:

* all layers alike, or all of one type: one group, a block has a page of every layer;
* windows or states beside full attention: pages are made equal, groups get as many layers as the rarest type has;
* DeepSeek-V4: layers in tuples of (index, CSA, HCA) pages; groups of about as many tuples, which until 0.26 are padded
  to a common block, and since then overlay each other in a block as large as the largest group.

The token count that the engine prints is `full_length_requests` × context: no capacity, never divide by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from casemate.plan.accounting import Accounting
from casemate.plan.launch import ceil_div
from casemate.plan.pages import Kind, Page, Paged

Group = tuple[Paged, ...]
_FEW_MORE = 1.5
"""Below this ratio of the most to the fewest layers of a type, groups take the most (and pad), else the fewest."""


@dataclass(frozen=True, slots=True)
class Pool:
    """The cache of one rank.

    Attributes:
        groups: its layers by group; a pipeline stage may have groups of none.
        block_bytes: what one block takes of the pool.
        start_block_bytes: what start-up counts for one block (differs for DeepSeek-V4 until 0.29).
        spare_blocks: blocks that start-up sets aside.
        weighs_groups: the printed concurrency weighs each group's blocks by its bytes.
    """

    groups: tuple[Group, ...]
    block_bytes: int
    start_block_bytes: int
    spare_blocks: int = 0
    weighs_groups: bool = False

    def blocks(self, context: int, in_flight: int) -> int:
        """Blocks that one request of `context` tokens takes."""
        return sum(_held(group, context, in_flight=in_flight) for group in self.groups)

    def start_bytes(self, context: int, in_flight: int) -> int:
        """Memory that start-up demands for one request of `context` tokens, else it refuses."""
        return (self.blocks(context, in_flight)) * self.start_block_bytes + self.spare_blocks * self.block_bytes

    def request_blocks(self, context: int, in_flight: int) -> int:
        """Blocks of one request by the engine's printed concurrency."""
        if not self.weighs_groups:
            return self.blocks(context, in_flight)
        bytes_ = sum(_held(group, context, in_flight=in_flight) * _bytes(group) for group in self.groups)
        return ceil_div(bytes_, _bytes(self.groups[0]))

    def need_bytes(self, context: int, in_flight: int) -> int:
        """Memory of one request by the engine's printed concurrency: pool ÷ this is what it prints."""
        return self.request_blocks(context, in_flight) * self.block_bytes

    def longest(self, available_bytes: int, in_flight: int, *, limit: int) -> int:
        """The longest request that start-up accepts, at most `limit` tokens; 0 if none."""
        low, high = 0, limit
        while low < high:
            middle = (low + high + 1) // 2
            if self.start_bytes(middle, in_flight) <= available_bytes:
                low = middle
            else:
                high = middle - 1
        return low


def pools(layers: tuple[Paged, ...], ranges: Sequence[range], *, engine: Accounting, packed: bool) -> tuple[Pool, ...]:
    """The pool of each pipeline stage.

    Args:
        layers: every cached layer (`pages.paged`).
        ranges: the model layers of each stage; layers behind the last (a draft's) belong to the last stage.
        engine: the release's rules.
        packed: whether pages of unequal size share blocks (`pages.is_packed`).
    """
    groups = _grouped(layers, engine=engine, packed=packed)
    return tuple(
        _pool(
            tuple(
                tuple(item for item in group if item.layer in stage or (last and item.layer >= stage.stop))
                for group in groups
            ),
            engine=engine,
            packed=packed and len(groups) > 1,
        )
        for stage, last in ((stage, stage is ranges[-1]) for stage in ranges)
    )


def _grouped(layers: tuple[Paged, ...], *, engine: Accounting, packed: bool) -> tuple[Group, ...]:
    if not layers:
        return ()
    if _same_type(layers):
        return (layers,)
    if packed:
        return _packed_groups(layers, engine=engine)
    return _equal_groups(_equal_pages(layers))


def _same_type(layers: tuple[Paged, ...]) -> bool:
    """Whether all layers need the same number of pages, so that one block table serves them."""
    kinds = {(item.page.kind, item.page.block, item.page.window) for item in layers}
    return len(kinds) == 1


def _equal_pages(layers: tuple[Paged, ...]) -> tuple[Paged, ...]:
    """Smaller pages take more tokens where that comes out even, else they are padded."""
    largest = max(item.page.size for item in layers)
    return tuple(replace(item, page=_enlarged(item.page, largest)) for item in layers)


def _enlarged(page: Page, size: int) -> Page:
    if page.kind is Kind.STATE or size % page.size:
        return replace(page, size=size)
    return replace(page, block=page.block * (size // page.size), size=size)


def _equal_groups(layers: tuple[Paged, ...]) -> tuple[Group, ...]:
    """Layers of one type split into groups of equal length; in turns, so that pipeline stages get some of each."""
    types: dict[Page, list[Paged]] = {}
    for item in layers:
        types.setdefault(item.page, []).append(item)
    counts = [len(items) for items in types.values()]
    length = max(counts) if max(counts) < min(counts) * _FEW_MORE else min(counts)
    return tuple(group for items in types.values() for group in _dealt(items, ceil_div(len(items), length)))


def _dealt(items: list[Paged], hands: int) -> list[Group]:
    return [tuple(items[index::hands]) for index in range(hands)]


def _packed_groups(layers: tuple[Paged, ...], *, engine: Accounting) -> tuple[Group, ...]:
    """DeepSeek-V4: everything that keeps all tokens in the first group, then one or more for each kind of window."""
    whole = tuple(item for item in layers if item.page.kind is Kind.ALL)
    sizes = sorted({item.page.size for item in whole})
    windows: dict[tuple[int, int], list[Paged]] = {}
    for item in layers:
        if item.page.kind is Kind.WINDOW:
            size = min(size for size in sizes if size >= item.page.size) if engine.pads_pages else item.page.size
            key = (item.page.block, item.page.window)
            windows.setdefault(key, []).append(replace(item, page=replace(item.page, size=size)))
    counts = [_tuples(items) for items in windows.values()]
    # Since 0.30 the first group counts only where it has as many pages of each size.
    even = len(set(Counter(item.page.size for item in whole).values())) == 1
    own = [_tuples(whole)] if engine.counts_tuples or even else []
    length = _least_padding(own + counts, lowest=_tuples(whole))
    groups: list[Group] = [whole]
    for items in windows.values():
        hands = ceil_div(_tuples(items), length)
        by_layer = sorted({item.layer for item in items})
        for hand in range(hands):
            taken = set(by_layer[hand::hands])
            groups.append(tuple(item for item in items if item.layer in taken))
    return tuple(groups)


def _tuples(items: Sequence[Paged]) -> int:
    """Layers of a group that have pages of the most frequent size."""
    return max(Counter(item.page.size for item in items).values())


def _least_padding(counts: list[int], *, lowest: int) -> int:
    """The group length, at least `lowest`, that needs the fewest empty places; of equals the longest."""
    lengths = range(lowest, max([lowest, *counts]) + 1)
    return min(lengths, key=lambda length: (sum(-count % length for count in counts), -length))


def _pool(groups: tuple[Group, ...], *, engine: Accounting, packed: bool) -> Pool:
    spare = 1 if engine.keeps_null_block else 0
    if not any(groups):
        return Pool(groups, block_bytes=1, start_block_bytes=0)
    if not packed:
        block = _bytes(groups[0]) if len(groups) == 1 else max(_bytes(group) for group in groups)
        return Pool(groups, block, block, spare)
    block = max(_bytes(group) for group in groups)
    if engine.pads_pages:
        slots: Counter[int] = Counter()
        for group in groups:
            slots |= Counter(item.page.size for item in group)
        block = sum(size * count for size, count in slots.items())
    start = block
    if engine.counts_tuples:
        start = max(_tuples(group) for group in groups if group) * sum({item.page.size for item in groups[0]})
    return Pool(groups, block, start, spare, weighs_groups=not engine.prints_blocks)


def _held(group: Group, context: int, *, in_flight: int) -> int:
    return max((page.held(context, in_flight) for page in {item.page for item in group}), default=0)


def _bytes(group: Group) -> int:
    return sum(item.page.size for item in group)
