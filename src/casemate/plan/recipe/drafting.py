"""Judgements on speculation and kernels that only some cards or checkpoints have."""

from __future__ import annotations

import json
from collections.abc import Iterator

from casemate.finding import Severity
from casemate.plan.recipe.problem import Kind, Problem
from casemate.plan.recipe.situation import Situation

_HOPPER = 9
_NAME = "speculative-config"
_MTP_OF_DSPARK = "https://github.com/vllm-project/vllm/issues/52165"
_NEXT_TOKENS = "https://github.com/vllm-project/recipes/issues/390"
_BLACKWELL = "https://github.com/vllm-project/vllm/issues/57772"


def drafting(situation: Situation) -> Iterator[Problem]:
    """Everything about drafts, and flags that were copied from recipes for other cards."""
    yield from _method(situation)
    yield from _tokens(situation)
    yield from _blackwell(situation)


def _method(situation: Situation) -> Iterator[Problem]:
    method = situation.keys(_NAME).get("method")
    checkpoint = situation.checkpoint
    if checkpoint is None or method not in ("mtp", "dspark"):
        return
    draft = checkpoint.draft
    if draft is None:
        says = f"The checkpoint holds no draft, so there is nothing that {method} could run."
        yield from situation.told(_NAME, Problem(Kind.REFUSED, Severity.HIGH, says, _MTP_OF_DSPARK))
    elif draft.method != method:
        says = f"The checkpoint's draft is of method {draft.method}; {method} looks for other tensors: KeyError."
        wanted = {**situation.keys(_NAME), "method": draft.method, "num_speculative_tokens": draft.tokens}
        mend = (f"--{_NAME}", json.dumps(wanted))
        yield from situation.told(_NAME, Problem(Kind.REFUSED, Severity.HIGH, says, _MTP_OF_DSPARK, mend))


def _tokens(situation: Situation) -> Iterator[Problem]:
    """MTP of DeepSeek-V4 on Hopper: the paged kernel takes one or two tokens a step, so one may be drafted."""
    keys = situation.keys(_NAME)
    tokens = keys.get("num_speculative_tokens")
    if keys.get("method") != "mtp" or not isinstance(tokens, int) or tokens < 2 or situation.compressed is False:
        return
    hopper = None if situation.capability is None else situation.capability[0] == _HOPPER
    draft = situation.checkpoint.draft if situation.checkpoint else None
    if hopper is False or (draft is not None and draft.method != "mtp"):
        return
    says = (
        "On compute capability 9.0 DeepSeek-V4's attention takes two tokens a step at most, so one may be drafted; "
        f"with {tokens} it stops at an assertion (next_n)."
    )
    if situation.compressed and hopper:
        mend = (f"--{_NAME}", json.dumps({**keys, "num_speculative_tokens": 1}))
        yield from situation.told(_NAME, Problem(Kind.REFUSED, Severity.HIGH, says, _NEXT_TOKENS, mend))
    else:
        yield from situation.told(_NAME, Problem(Kind.BELIEF, Severity.INFO, says, _NEXT_TOKENS, None))


def _blackwell(situation: Situation) -> Iterator[Problem]:
    backend = (situation.value("moe-backend") or "").lower().replace("-", "_")
    fp4_index = situation.keys("attention-config").get("use_fp4_indexer_cache")
    older = None if situation.capability is None else situation.capability[0] < 10
    for name, used in (("moe-backend", backend == "deep_gemm_mega_moe"), ("attention-config", fp4_index is True)):
        if not used or older is False:
            continue
        says = (
            "It exists for compute capability 10.0 (Blackwell) alone; older cards have no FP4 arithmetic and refuse it."
        )
        if older:
            yield from situation.told(name, Problem(Kind.REFUSED, Severity.HIGH, says, _BLACKWELL))
        else:
            yield from situation.told(name, Problem(Kind.BELIEF, Severity.INFO, says, _BLACKWELL, None))
