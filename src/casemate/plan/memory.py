"""The memory of a rank under one launch: what it needs, what the cache gets, how long a request may be. Pure.

The engine may take `utilization` of a card, whatever else runs there. Off that it takes weights, the peak of a step,
memory outside its allocator and its estimate of the CUDA graphs; the cache gets the rest (`determine_available_memory`
in `v1/worker/gpu_worker.py`). With stages or unequal ranks the fullest one decides: all get as many blocks as it.
"""

from __future__ import annotations

from dataclasses import dataclass

from casemate.checkpoint.facts import Checkpoint
from casemate.plan.accounting import Accounting
from casemate.plan.kv import Pool, pools
from casemate.plan.launch import Launch, stages
from casemate.plan.overhead import activation_terms, graphs_bytes, other_bytes
from casemate.plan.pages import is_packed, paged
from casemate.plan.weights import stage_bytes


@dataclass(frozen=True, slots=True)
class Budget:
    """What the fullest rank does with its share of a card. Bytes are bytes.

    `kv_bytes` is what the cache gets (negative: start-up fails before it). `start_bytes` is what start-up demands of it
    for one request of full length; `need_bytes` what such a request takes by the engine's printed concurrency.
    `graphs_bytes` is what the engine sets aside for CUDA graphs, `graphs_real_bytes` what they take.
    """

    weights_bytes: int
    activation_bytes: int
    graphs_bytes: int
    graphs_real_bytes: int
    other_bytes: int
    kv_bytes: int
    start_bytes: int
    need_bytes: int
    pool: Pool
    in_flight: int

    @property
    def full_length_requests(self) -> float:
        """Requests of full length that the cache holds, as the engine prints it."""
        if self.need_bytes <= 0:
            return 0.0
        blocks = max(self.kv_bytes, 0) // self.pool.block_bytes
        return blocks / (self.need_bytes // self.pool.block_bytes)

    @property
    def spare_bytes(self) -> int:
        """What start-up has to spare; negative: it refuses."""
        return self.kv_bytes - self.start_bytes

    def longest(self, limit: int) -> int:
        """The longest request that start-up accepts here, at most `limit` tokens."""
        return self.pool.longest(self.kv_bytes, self.in_flight, limit=limit)

    def longest_of(self, requests: int, *, limit: int) -> int:
        """The longest context, at most `limit` tokens, of which the cache holds so many requests; 0 if none."""
        low, high = 0, self.longest(limit)
        while low < high:
            middle = (low + high + 1) // 2
            if requests * self.pool.need_bytes(middle, self.in_flight) <= self.kv_bytes:
                low = middle
            else:
                high = middle - 1
        return low


def budget(
    checkpoint: Checkpoint, launch: Launch, *, card_bytes: int, engine: Accounting, multicast: bool = False
) -> Budget:
    """The budget of the fullest rank; arguments as for `budgets`."""
    found = budgets(checkpoint, launch, card_bytes=card_bytes, engine=engine, multicast=multicast)
    return min(found, key=lambda item: (item.full_length_requests, item.kv_bytes))


def budgets(
    checkpoint: Checkpoint, launch: Launch, *, card_bytes: int, engine: Accounting, multicast: bool = False
) -> tuple[Budget, ...]:
    """The budget of a rank in each pipeline stage.

    Args:
        checkpoint: the model.
        launch: how it is started.
        card_bytes: memory of the smallest card used, as the engine sees it (`overhead.engine_total_bytes`).
        engine: the release's rules, with what a measured start-up corrects.
        multicast: whether tensor-parallel ranks reach each other through NVSwitch.
    """
    layout, correction = launch.layout, engine.correction
    ranges = stages(len(checkpoint.layers), layout.pipeline)
    states = 2 if engine.caches_state_prefixes else 1
    stage_pools = pools(paged(checkpoint, launch, states=states), ranges, engine=engine, packed=is_packed(checkpoint))
    loaded = stage_bytes(checkpoint, launch, engine=engine)
    activation = correction.of_peak(activation_terms(checkpoint, launch, engine=engine))
    graphs, graphs_real = correction.of_graphs(graphs_bytes(checkpoint, launch, engine=engine))
    other = correction.of_other(other_bytes(layout.tensor, engine=engine, multicast=multicast), layout.tensor)
    in_flight = engine.batches_in_flight(layout.pipeline) * launch.batched_tokens
    beside = activation + graphs + other
    return tuple(
        Budget(
            weights_bytes=weights,
            activation_bytes=activation,
            graphs_bytes=graphs,
            graphs_real_bytes=graphs_real,
            other_bytes=other,
            kv_bytes=int(card_bytes * launch.utilization) - weights - beside,
            start_bytes=pool.start_bytes(launch.context, in_flight),
            need_bytes=pool.need_bytes(launch.context, in_flight),
            pool=pool,
            in_flight=in_flight,
        )
        for weights, pool in zip(map(correction.of_weights, loaded), stage_pools, strict=True)
    )
