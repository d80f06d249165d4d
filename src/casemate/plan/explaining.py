"""A plan in words: one line for each value, keyed by its field, and notes that belong to none. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from casemate.checkpoint.facts import Checkpoint, Compressed, Grouped, Latent, Recurrent
from casemate.plan.accounting import accounting
from casemate.plan.correction import NOTHING, Correction
from casemate.plan.decision import GIB, CardsPlan, Intent
from casemate.plan.fitting import TARGET_CONTEXT, Fit, Place, asked_context, default_batched_tokens, window
from casemate.plan.kernels import draft_obstacle, moe_backend, remarks
from casemate.plan.layout import Seats
from casemate.plan.pages import is_packed


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen and for what: the fit taken, the one with the draft loaded (None: there is none), where, intent.

    `correction` is what a measured start-up changed, `draft_limit` the longest context with the draft in tokens, and
    `wider` the same values on the next larger number of cards that there are.
    """

    fit: Fit
    drafted: Fit | None
    where: Place
    intent: Intent
    correction: Correction = NOTHING
    draft_limit: int = 0
    wider: Fit | None = None


def explained(plan: CardsPlan, checkpoint: Checkpoint, *, choice: Choice) -> Iterator[tuple[str, str]]:
    """Each value of a plan by its field name, with the reason for it."""
    yield "cards", _cards(plan, checkpoint, choice=choice)
    yield from _spread(plan, checkpoint)
    yield "gpu_memory_utilization", _utilization(plan, choice.where)
    yield from _lengths(plan, checkpoint, choice=choice)
    yield from _cache(plan, checkpoint, correction=choice.correction)
    yield from _memory(plan, choice.fit, correction=choice.correction)
    engine = accounting(plan.engine_version)
    yield "moe_backend", moe_backend(checkpoint, choice.where.capability, engine=engine)
    yield "speculation", _speculation(plan, checkpoint, choice=choice)
    yield "enforce_eager", "never: CUDA graphs are what makes decoding fast, and they fit"


def noted(plan: CardsPlan, checkpoint: Checkpoint, *, seats: Seats, choice: Choice) -> Iterator[str]:
    """Warnings and hints of a plan, one line each."""
    if choice.fit.is_tight:
        yield (
            f"tight: {max(choice.fit.room_bytes, 0) / GIB:.1f} GiB of cache to spare; if start-up refuses,"
            " lower max_model_len or max_num_batched_tokens"
        )
    yield from remarks(checkpoint, choice.where.capability, engine=accounting(plan.engine_version))
    if is_packed(checkpoint):
        yield (
            "the printed 'GPU KV cache size' is full-length requests × context, no capacity: a smaller max_model_len"
            " prints fewer tokens and serves more requests"
        )
    if plan.kv_cache_dtype == "fp8" and not is_packed(checkpoint):
        yield "fp8 cache without calibrated scales can cost accuracy; measure before you rely on it"
    if plan.pipeline_parallel > 1 and plan.nodes == 1:
        yield "pipeline stages do not shorten a single request; a number of cards that divides the heads would"
    used = seats.seats[: len(plan.cards)]
    if len({seat.card.compute_capability for seat in used}) > 1:
        yield (
            "cards of different architectures serve together: the smallest one's memory binds all, and each step is as"
            " slow as the slowest; cards of one kind are the better choice"
        )
    spare = len(seats.seats) - len(plan.cards)
    if spare > 0:
        use = "for a second copy of the model" if spare >= len(plan.cards) else "for something else"
        yield f"{spare} more card{'s are' if spare > 1 else ' is'} free {use}"
    yield from seats.left_out
    yield from checkpoint.notes


def _cards(plan: CardsPlan, checkpoint: Checkpoint, *, choice: Choice) -> str:
    """How many cards, why not fewer, and what the next larger number would bring."""
    target = min(TARGET_CONTEXT, window(checkpoint))
    many = f"{choice.intent.concurrency} × {plan.max_model_len:,} tokens"
    if choice.intent.context:
        why = "the fewest on which it fits with room for its cache"
    elif plan.max_model_len >= target:
        why = f"the fewest that hold {many}"
    else:
        why = f"no other number of them here holds more than {many}"
    told = f"{len(plan.cards)}: {why}"
    wider = choice.wider
    if wider is None or wider.room_bytes < 0:
        return told
    return (
        f"{told}; on {wider.launch.layout.cards} each would read {wider.budget.weights_bytes / GIB:.1f} GiB of weights"
        f" instead of {plan.weights_gib:.1f} and hold {wider.budget.full_length_requests:.1f} such requests instead of"
        f" {plan.full_length_requests:.1f}"
    )


def _spread(plan: CardsPlan, checkpoint: Checkpoint) -> Iterator[tuple[str, str]]:
    if plan.tensor_parallel > 1:
        why = (
            f"{plan.tensor_parallel} ranks divide {checkpoint.attention_heads} heads and shorten every request;"
            " pipeline stages would not"
        )
    else:
        why = "1: one card holds a whole stage" if plan.pipeline_parallel > 1 else "1: one card holds the model"
    yield "tensor_parallel", why
    if plan.pipeline_parallel == 1:
        yield "pipeline_parallel", "1: no stage to wait for"
    elif plan.nodes > 1:
        yield "pipeline_parallel", f"{plan.pipeline_parallel}: one stage a host, because links between hosts are slow"
    else:
        yield (
            "pipeline_parallel",
            f"{plan.pipeline_parallel}: ranks alone do not divide the heads, do not hold it, or hold less context",
        )
    yield "data_parallel", "1: one copy; every further copy would need the attention weights again"
    yield "nodes", f"{plan.nodes}"
    if plan.expert_parallel:
        yield "expert_parallel", f"{checkpoint.experts} experts are dealt out whole, as the engine's recipe for TP does"
    else:
        yield (
            "expert_parallel",
            "no routed experts to deal out" if not checkpoint.experts else "one rank holds all experts",
        )


def _utilization(plan: CardsPlan, where: Place) -> str:
    share = plan.gpu_memory_utilization
    if where.cap_bytes < where.card_bytes:
        return (
            f"{share:g} of {where.card_bytes / GIB:.1f} GiB keeps it under the cap of {where.cap_bytes / GIB:.1f} GiB"
        )
    if where.most_utilization < share + 0.005:
        return f"{share:g}: the rest is held by other processes, the driver's context, or a host that shares the memory"
    if share > 0.92:
        return f"{share:g}: above the default of 0.92, because the cache needs it"
    return f"{share:g}: the engine's default"


def _lengths(plan: CardsPlan, checkpoint: Checkpoint, *, choice: Choice) -> Iterator[tuple[str, str]]:
    intent, where = choice.intent, choice.where
    if not intent.context:
        if plan.max_model_len >= window(checkpoint):
            why = f"all that the model was made for, {intent.concurrency} at once leave room for it"
        else:
            why = f"the longest round number that {intent.concurrency} at once leave room for"
    elif asked_context(checkpoint, intent) < intent.context:
        why = f"the model was made for {checkpoint.context_length:,} tokens, {intent.context:,} were asked for"
    else:
        why = "as asked"
    yield "max_model_len", f"{plan.max_model_len:,} tokens: {why}"
    default = default_batched_tokens(where, engine=accounting(plan.engine_version))
    if plan.max_num_batched_tokens >= default:
        yield "max_num_batched_tokens", f"{plan.max_num_batched_tokens}: the engine's default on such a card"
    else:
        yield (
            "max_num_batched_tokens",
            f"{plan.max_num_batched_tokens} instead of {default}: activations and tokens in flight take cache memory",
        )
    yield "max_num_seqs", f"{plan.max_num_seqs}: {intent.concurrency} asked for, purpose {intent.purpose}"
    yield (
        "max_cudagraph_capture_size",
        f"{plan.max_cudagraph_capture_size}: twice the widest decode step, as the engine does",
    )


def _cache(plan: CardsPlan, checkpoint: Checkpoint, *, correction: Correction) -> Iterator[tuple[str, str]]:
    if is_packed(checkpoint):
        yield "kv_cache_dtype", "fp8: the only type of DeepSeek-V4's packed cache"
        yield "block_size", "256: DeepSeek-V4's kernels take no other"
    else:
        wide = "auto: the model's own type, whatever type the weights have"
        yield (
            "kv_cache_dtype",
            wide if plan.kv_cache_dtype == "auto" else "fp8: half of it, without it the context does not fit",
        )
        yield "block_size", "the engine's default for its attention backend"
    kinds = ", ".join(dict.fromkeys(_kind(cache, plan.tensor_parallel) for cache in checkpoint.caches))
    yield "kv_gib", f"{plan.kv_gib:.2f} GiB are left for the cache on each card" + _told(correction, changed=True)
    yield "need_gib", f"{plan.need_gib:.2f} GiB for one request of {plan.max_model_len:,} tokens: {kinds}"
    yield "start_gib", f"{plan.start_gib:.2f} GiB of cache are what start-up demands, else it refuses"
    yield "full_length_requests", f"{plan.full_length_requests:.2f}: what the engine prints as maximum concurrency"


def _kind(cache: Grouped | Latent | Compressed | Recurrent, tensor: int) -> str:
    match cache:
        case Grouped():
            heads = f"{max(1, cache.kv_heads // tensor)} of {cache.kv_heads} key heads a card"
            return f"{heads}, the last {cache.window}" if cache.window else heads
        case Latent():
            return "one latent a token, whole on every card"
        case Compressed():
            return "compressed entries, windows and states, whole on every card"
        case Recurrent():
            return "a state that does not grow"


def _memory(plan: CardsPlan, fit: Fit, *, correction: Correction) -> Iterator[tuple[str, str]]:
    peaks = (correction.forward, correction.sampling, correction.pictures)
    graphs = (correction.graphs, correction.graphs_estimate)
    yield (
        "weights_gib",
        f"{plan.weights_gib:.2f} GiB on the fullest card, tables of its own included"
        + _told(correction, changed=correction.weights != 1),
    )
    yield (
        "activation_gib",
        f"{plan.activation_gib:.2f} GiB at the peak of a step of {plan.max_num_batched_tokens} tokens"
        + _told(correction, changed=peaks != (1, 1, 1)),
    )
    yield (
        "graphs_gib",
        f"{plan.graphs_gib:.2f} GiB really; the engine sets {fit.budget.graphs_bytes / GIB:.2f} aside beforehand"
        + _told(correction, changed=graphs != (None, None)),
    )
    yield (
        "other_gib",
        f"{plan.other_gib:.2f} GiB outside PyTorch's allocator: NCCL, kernels"
        + _told(correction, changed=correction.other_bytes(plan.tensor_parallel) is not None),
    )


def _told(correction: Correction, *, changed: bool) -> str:
    return f"; {correction.told}" if changed and correction.told else ""


def _speculation(plan: CardsPlan, checkpoint: Checkpoint, *, choice: Choice) -> str:
    engine, drafted = accounting(plan.engine_version), choice.drafted
    if checkpoint.draft is None:
        return "off: the checkpoint has no draft"
    if plan.speculation is not None:
        return f"{plan.speculation.method}, {plan.speculation.tokens} at once: the draft fits with room to spare"
    if drafted is None:
        return f"off: {draft_obstacle(checkpoint, engine=engine, pipeline=plan.pipeline_parallel)}"
    extra = (drafted.budget.weights_bytes - int(plan.weights_gib * GIB)) / GIB
    if not choice.draft_limit:
        return f"off: its draft takes {extra:.1f} GiB more a card, and then it does not start"
    limit = f"with its draft {choice.draft_limit:,} tokens are the longest that start"
    if drafted.room_bytes >= 0:
        return f"off: memory is tight; {limit}, and it takes {extra:.1f} GiB more a card"
    wanted = "asked for" if choice.intent.context else "planned without it"
    many = f"{choice.intent.concurrency} × {plan.max_model_len:,} are {wanted}"
    return f"off: {limit}, {many}; it takes {extra:.1f} GiB more a card"
