"""Judgements on whether the model fits the cards as the command asks, by the planner's own arithmetic.

They need the model's facts and the machine's; without either nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from casemate.checkpoint.facts import Checkpoint
from casemate.errors import UsageError
from casemate.finding import Severity
from casemate.plan.accounting import Accounting, accounting
from casemate.plan.decision import GIB, Speculation
from casemate.plan.launch import Launch, Layout, default_capture
from casemate.plan.memory import Budget, budget
from casemate.plan.overhead import engine_total_bytes
from casemate.plan.pages import is_packed
from casemate.plan.recipe.problem import Kind, Problem
from casemate.plan.recipe.situation import Situation

_CACHE = "https://github.com/vllm-project/vllm/issues/51041"
_OFFLOAD = "https://github.com/vllm-project/vllm/issues/42284"
_SHARE = "gpu-memory-utilization"
_TENSOR = "tensor-parallel-size"
_BATCHED = "max-num-batched-tokens"
_LENGTH = "max-model-len"
_MOST_SHARE = 0.95
_SMALL_STEP = 2048
_BIG_CARD = 70 * GIB
_SEQUENCES = 256
_MOST_CARDS = 4096
_MOST_TOKENS = 1 << 30
_WRONG_BY = GIB
"""The arithmetic may be wrong by so much on a box that was never measured; less than that is no verdict."""


@dataclass(frozen=True, slots=True)
class _Case:
    """What the arithmetic needs."""

    checkpoint: Checkpoint
    launch: Launch
    card_bytes: int
    engine: Accounting

    def budget(self, launch: Launch | None = None) -> Budget:
        return budget(self.checkpoint, launch or self.launch, card_bytes=self.card_bytes, engine=self.engine)

    def fits(self, launch: Launch) -> bool:
        return self.budget(launch).spare_bytes >= 0


def fit(situation: Situation) -> Iterator[Problem]:
    """Whether weights and cache fit, and whether offload is needed for it."""
    case = _case(situation)
    if case is None:
        return
    if situation.number("cpu-offload-gb"):
        yield from _offload(situation, case)
    elif (spare := case.budget().spare_bytes) < -_WRONG_BY:
        yield from _short(situation, case, spare=spare)


def _case(situation: Situation) -> _Case | None:
    checkpoint = situation.checkpoint
    sizes = [engine_total_bytes(card) for card in situation.cards if not card.unified]
    known = [size for size in sizes if size]
    share = situation.number(_SHARE)
    unclear = "kv-cache-memory-bytes" in situation.options or (share is not None and not 0 < share <= 1)
    if checkpoint is None or not checkpoint.layers or not known or len(known) < len(situation.cards) or unclear:
        return None
    try:
        engine = replace(
            accounting(situation.table.version or "0.33"), capability=situation.cards[0].compute_capability
        )
    except UsageError:
        return None
    launch = _launch(situation, checkpoint, engine=engine, card=min(known))
    if launch.layout.cards > _MOST_CARDS or max(launch.context, launch.batched_tokens, launch.sequences) > _MOST_TOKENS:
        return None  # other judgements say that this cannot be meant
    if launch.layout.pipeline > len(checkpoint.layers):
        return None
    return _Case(checkpoint, launch, min(known), engine)


def _launch(situation: Situation, checkpoint: Checkpoint, *, engine: Accounting, card: int) -> Launch:
    keys = situation.keys("speculative-config")
    tokens = keys.get("num_speculative_tokens")
    drafts = Speculation(str(keys.get("method")), tokens) if isinstance(tokens, int) and 0 < tokens < 64 else None
    sequences = max(1, int(situation.number("max-num-seqs") or _SEQUENCES))
    capture = default_capture(sequences, 1 + (drafts.tokens if drafts else 0))
    length = situation.number(_LENGTH)
    return Launch(
        layout=Layout(
            tensor=max(1, int(situation.number(_TENSOR) or 1)),
            pipeline=max(1, int(situation.number("pipeline-parallel-size") or 1)),
            data=max(1, int(situation.number("data-parallel-size") or 1)),
            expert=bool(situation.on("enable-expert-parallel")),
        ),
        context=int(length if length and length > 0 else checkpoint.context_length or 4096),
        batched_tokens=int(situation.number(_BATCHED) or (8192 if card >= _BIG_CARD else _SMALL_STEP)),
        sequences=sequences,
        utilization=situation.number(_SHARE) or engine.utilization,
        kv_dtype=situation.value("kv-cache-dtype") or "auto",
        block_size=256 if is_packed(checkpoint) else None,
        capture=0 if situation.on("enforce-eager") else capture,
        speculation=drafts,
    )


def _short(situation: Situation, case: _Case, *, spare: int) -> Iterator[Problem]:
    found, launch = case.budget(), case.launch
    share = launch.utilization * case.card_bytes
    working, left = share - found.weights_bytes - found.kv_bytes, max(0, found.kv_bytes)
    says = (
        f"{launch.utilization:g} of a card is {share / GIB:.1f} GiB. Weights take {found.weights_bytes / GIB:.1f}, a "
        f"step and graphs {working / GIB:.1f}, so {left / GIB:.1f} "
        f"are left for the cache, and one request of {launch.context:,} tokens takes {found.start_bytes / GIB:.1f}: "
        f"{-spare / GIB:.1f} GiB are missing."
    )
    name, mend = _remedy(situation, case)
    if mend is None:
        says += " casemate plan says what would fit."
    problem = Problem(Kind.REFUSED, Severity.HIGH, says, _CACHE, mend)
    placed = list(situation.told(name, problem))
    yield from placed or [problem]


def _remedy(situation: Situation, case: _Case) -> tuple[str, tuple[str, ...] | None]:
    """The option that is to blame, and the smallest change that helps as words; None where nothing here does."""
    launch = case.launch
    for candidate in _candidates(situation, case):
        if candidate != launch and case.fits(candidate):
            words = dict(_changes(launch, candidate))
            return next(iter(words)), tuple(part for name, value in words.items() for part in (f"--{name}", value))
    return _SHARE, None


def _candidates(situation: Situation, case: _Case) -> Iterator[Launch]:
    """More of the card, smaller steps, more cards, and at last a shorter context."""
    launch = case.launch
    cards = len(situation.cards) // (launch.layout.pipeline * launch.layout.data)
    heads = case.checkpoint.attention_heads or 1
    now = launch.layout.tensor
    counts = [count for count in range(now, cards + 1) if heads % count == 0] or [now]
    for count in counts:
        wider = replace(launch, layout=replace(launch.layout, tensor=count))
        higher = replace(wider, utilization=max(launch.utilization, _MOST_SHARE))
        yield from (wider, higher, replace(higher, batched_tokens=min(launch.batched_tokens, _SMALL_STEP)))
    widest = replace(launch, layout=replace(launch.layout, tensor=counts[-1]), utilization=_MOST_SHARE)
    smallest = replace(widest, batched_tokens=min(launch.batched_tokens, _SMALL_STEP))
    length = case.budget(smallest).longest(launch.context)
    if length >= _SMALL_STEP:
        yield replace(smallest, context=length)


def _changes(before: Launch, after: Launch) -> Iterator[tuple[str, str]]:
    if after.context != before.context:
        yield _LENGTH, str(after.context)
    if after.layout.tensor != before.layout.tensor:
        yield _TENSOR, str(after.layout.tensor)
    if after.batched_tokens != before.batched_tokens:
        yield _BATCHED, str(after.batched_tokens)
    if after.utilization != before.utilization:
        yield _SHARE, f"{after.utilization:g}"


def _offload(situation: Situation, case: _Case) -> Iterator[Problem]:
    found = case.budget()
    if found.spare_bytes < 0:
        return
    says = (
        f"Offload is not needed: weights take {found.weights_bytes / GIB:.1f} GiB of a card, and "
        f"{found.kv_bytes / GIB:.1f} are left for the cache. Expect about 20 times slower decoding with it (2,434 "
        "tokens/s became 120 on eight H20)."
    )
    yield from situation.told("cpu-offload-gb", Problem(Kind.HARMFUL, Severity.HIGH, says, _OFFLOAD))
