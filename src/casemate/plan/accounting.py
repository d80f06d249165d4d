"""How a vLLM version counts memory: what differs between releases, read from their wheels (0.9 to 0.33). Pure.

The sources are `v1/kv_cache_interface.py`, `v1/core/kv_cache_utils.py` (0.33: `kv_cache_planning.py`),
`v1/worker/gpu_worker.py`, `config/cache.py`, `engine/arg_utils.py` and `envs.py` of each wheel.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from casemate.errors import UsageError
from casemate.plan.correction import NOTHING, Correction

_FIRST = (0, 9)


@dataclass(frozen=True, slots=True)
class Accounting:
    """The rules of one release.

    Attributes:
        version: (0, 26) for 0.26.x.
        utilization: default of `--gpu-memory-utilization` (0.9, since 0.20: 0.92).
        settles_late: a window keeps the tokens of every batch in flight (since 0.26), before that of one batch.
        pads_pages: a DeepSeek-V4 block has a place for every page of every group (until 0.26), later it is as large as
            the largest group.
        counts_tuples: start-up counts a DeepSeek-V4 block as full tuples of pages (until 0.29).
        prints_blocks: the printed concurrency counts blocks (since 0.27), before that bytes by group.
        counts_leftovers: all that the measuring step leaves behind is taken off the cache (since 0.27).
        keeps_null_block: start-up sets one block aside before it compares (since 0.30).
        takes_off_graphs: an estimate of the CUDA graphs is taken off the cache (since 0.20).
        caches_state_prefixes: recurrent layers cache prefixes by default, which doubles their states (since 0.26).
        default_in_big_cards: cards of 160 GiB and more get 16,384 batched tokens from the server too (since 0.28).
        sorts_logits: the sampler sorts all logits of a step (until 0.16; from 0.17 on a Triton kernel spares that).
        keeps_workspaces: what routed experts compute in stays allocated while the sampler runs (since 0.16).
        correction: what a measured start-up says of this release on the machine and with the model at hand.
        capability: of the cards at hand, which decides between kernels; None where it is not known.
    """

    version: tuple[int, int]
    utilization: float
    settles_late: bool
    pads_pages: bool
    counts_tuples: bool
    prints_blocks: bool
    counts_leftovers: bool
    keeps_null_block: bool
    takes_off_graphs: bool
    caches_state_prefixes: bool
    default_in_big_cards: bool
    sorts_logits: bool
    keeps_workspaces: bool
    correction: Correction = NOTHING
    capability: tuple[int, int] | None = None

    def batches_in_flight(self, pipeline: int) -> int:
        """Batches whose tokens a window still holds: with asynchronous scheduling (the default) 2, more with stages."""
        return max(pipeline, 2) if self.settles_late else 1


def accounting(version: str) -> Accounting:
    """The rules of a vLLM version such as `0.26.0` or `0.33.1rc1`.

    Raises:
        UsageError: it names no version, or one older than 0.9.
    """
    matched = re.match(r"v?(\d+)\.(\d+)", version.strip())
    if matched is None:
        raise UsageError(f"{version!r} is no vLLM version", remedy="write it as 0.26.0")
    known = (int(matched[1]), int(matched[2]))
    if known < _FIRST:
        raise UsageError(f"vLLM {version} is too old to plan for", remedy="plan for 0.9 or newer")
    return Accounting(
        version=known,
        utilization=0.92 if known >= (0, 20) else 0.9,
        settles_late=known >= (0, 26),
        pads_pages=known < (0, 27),
        counts_tuples=known < (0, 30),
        prints_blocks=known >= (0, 27),
        counts_leftovers=known >= (0, 27),
        keeps_null_block=known >= (0, 30),
        takes_off_graphs=known >= (0, 20),
        caches_state_prefixes=known >= (0, 26),
        default_in_big_cards=known >= (0, 28),
        sorts_logits=known < (0, 17) or known >= (0, 30),
        keeps_workspaces=known >= (0, 16),
    )
