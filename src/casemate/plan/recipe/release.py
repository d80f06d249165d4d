"""Judgements on the engine's release: whether it knows the model at all, its draft and its pipeline stages."""

from __future__ import annotations

from collections.abc import Iterator

from casemate.errors import UsageError
from casemate.finding import Severity
from casemate.plan.accounting import Accounting, accounting
from casemate.plan.kernels import HOPPER, draft_obstacle, obstacle, stages_obstacle
from casemate.plan.recipe.problem import Kind, Problem
from casemate.plan.recipe.situation import Situation

_V4 = "vllm 0.20.0 wheel, vllm/models/deepseek_v4"
_DSPARK = "https://github.com/vllm-project/vllm/issues/52761"
_STAGES = "vllm 0.22.1 wheel, vllm/models/deepseek_v4/nvidia/model.py"
_DRAFT = "speculative-config"
_PIPELINE = "pipeline-parallel-size"


def release(situation: Situation) -> Iterator[Problem]:
    """Everything that another release is needed for; nothing where model or version is not known."""
    engine, checkpoint = _engine(situation), situation.checkpoint
    if engine is None or checkpoint is None:
        return
    capability = situation.capability or HOPPER
    if why := obstacle(checkpoint, capability, engine=engine):
        yield Problem(Kind.REFUSED, Severity.HIGH, f"{_told(why, situation)} No words of a command help.", _V4, None)
        return
    if situation.keys(_DRAFT).get("method") == "dspark" and (
        why := draft_obstacle(checkpoint, engine=engine, pipeline=1)
    ):
        yield from situation.told(_DRAFT, Problem(Kind.REFUSED, Severity.HIGH, _told(why, situation), _DSPARK))
    stages = situation.number(_PIPELINE) or 1
    if stages > 1 and (why := stages_obstacle(checkpoint, engine=engine)):
        wide = int(stages * (situation.number("tensor-parallel-size") or 1))
        heads = checkpoint.attention_heads
        mend = ("--tensor-parallel-size", str(wide)) if not heads or heads % wide == 0 else ()
        problem = Problem(Kind.REFUSED, Severity.HIGH, _told(why, situation), _STAGES, mend)
        yield from situation.told(_PIPELINE, problem)


def _engine(situation: Situation) -> Accounting | None:
    try:
        return accounting(situation.table.version) if situation.table.version else None
    except UsageError:
        return None


def _told(why: str, situation: Situation) -> str:
    return f"{why}; this is {situation.table.version}."
