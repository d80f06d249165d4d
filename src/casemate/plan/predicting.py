"""The predicted speed of a plan, in the conditions that it is printed with. Pure."""

from __future__ import annotations

from dataclasses import replace

from casemate.checkpoint.facts import Checkpoint
from casemate.plan.accounting import accounting
from casemate.plan.decision import GIB, CardsPlan, Intent, Purpose
from casemate.plan.kv import pools
from casemate.plan.launch import Launch, Layout, stages
from casemate.plan.pages import is_packed, paged
from casemate.plan.rates import Rates
from casemate.plan.roofline import Pace, Workload, speed

_WORK = {Purpose.CHAT: (2048, 512), Purpose.AUDIT: (8192, 1024), Purpose.BATCH: (2048, 512)}
"""Tokens of a prompt and of an answer that a purpose is predicted with."""


def predicted(plan: CardsPlan, checkpoint: Checkpoint, *, known: Rates | None, intent: Intent, pace: Pace) -> CardsPlan:
    """The plan with its speed, or unchanged where nothing is known of what its cards can do.

    Args:
        plan: what was decided.
        checkpoint: of which model.
        known: what the plan's cards can do.
        intent: purpose and number of streams.
        pace: what a measurement corrects.
    """
    if known is None:
        return plan
    prompt, answer = _WORK[intent.purpose]
    fitting = min(prompt, max(plan.max_model_len // 2, 1))
    answer = min(answer, max(plan.max_model_len - fitting, 1))
    work = Workload(fitting, answer, intent.concurrency, fitting=_streams(plan, checkpoint, tokens=fitting + answer))
    return replace(plan, speed=speed(checkpoint, launch_of(plan), rates=known, workload=work, pace=pace))


def _streams(plan: CardsPlan, checkpoint: Checkpoint, *, tokens: int) -> int:
    """How many requests of so many tokens decode at once before the cache is full; at least one.

    While they decode, each has only the tokens of its own step in flight, not a whole batch.
    """
    launch, engine = launch_of(plan), accounting(plan.engine_version)
    pages = paged(checkpoint, launch, states=2 if engine.caches_state_prefixes else 1)
    ranges = stages(len(checkpoint.layers), plan.pipeline_parallel)
    held = pools(pages, ranges, engine=engine, packed=is_packed(checkpoint))
    kv_bytes = int(plan.kv_gib * GIB)
    return max(min(kv_bytes // max(pool.need_bytes(tokens, launch.decode_tokens), 1) for pool in held), 1)


def launch_of(plan: CardsPlan) -> Launch:
    """The values of a plan that memory and speed depend on."""
    return Launch(
        layout=Layout(plan.tensor_parallel, plan.pipeline_parallel, plan.data_parallel, plan.expert_parallel),
        context=plan.max_model_len,
        batched_tokens=plan.max_num_batched_tokens,
        sequences=plan.max_num_seqs,
        utilization=plan.gpu_memory_utilization,
        kv_dtype=plan.kv_cache_dtype,
        block_size=plan.block_size,
        capture=0 if plan.enforce_eager else plan.max_cudagraph_capture_size,
        speculation=plan.speculation,
    )
