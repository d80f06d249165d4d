"""Judgements on how work is spread over cards: tensor, pipeline, data and expert parallelism, and links."""

from __future__ import annotations

from collections.abc import Iterator

from casemate.finding import Severity
from casemate.plan.recipe.problem import VARIABLE, Kind, Problem
from casemate.plan.recipe.situation import Situation

_MOST_CARDS = 4096
_PARALLEL = "vllm 0.33.0 wheel, vllm/config/parallel.py"
_DSPARK = "https://github.com/vllm-project/vllm/issues/52761"
_TWO_CARDS = "https://github.com/vllm-project/vllm/issues/51041"
_HANG = "https://github.com/vllm-project/vllm/issues/51513"


def layout(situation: Situation) -> Iterator[Problem]:
    """Everything about cards and how they share the work."""
    yield from _pipeline(situation)
    yield from _drafted_pipeline(situation)
    yield from _heads(situation)
    yield from _count(situation)
    yield from _visible(situation)
    yield from _experts(situation)
    yield from _links(situation)


def _pipeline(situation: Situation) -> Iterator[Problem]:
    stages = situation.number("pipeline-parallel-size") or 1
    if stages < 2 or (situation.number("tensor-parallel-size") or 1) > 1 or _several_hosts(situation):
        return
    if situation.peers is False:
        says = "These cards do not reach each other's memory, so stages may be the better split; measure both."
        yield from situation.told("pipeline-parallel-size", Problem(Kind.BELIEF, Severity.INFO, says, _HANG, mend=None))
        return
    sure = (
        "and these cards reach each other's memory" if situation.peers else "where the cards reach each other's memory"
    )
    says = (
        "Stages take turns on one request, so it becomes no faster; tensor parallelism is the better split on a host, "
        f"{sure} (NVLink or PCIe peer access)."
    )
    mend = ("--tensor-parallel-size", f"{stages:.0f}") if _divides(situation, int(stages)) else ()
    yield from situation.told(
        "pipeline-parallel-size", Problem(Kind.BELIEF, Severity.MEDIUM, says, _TWO_CARDS, mend=mend)
    )


def _drafted_pipeline(situation: Situation) -> Iterator[Problem]:
    stages = situation.number("pipeline-parallel-size") or 1
    if stages > 1 and situation.keys("speculative-config").get("method") == "dspark":
        says = "DSpark and pipeline parallelism exclude each other; the engine refuses."
        mend = ("--tensor-parallel-size", f"{stages * (situation.number('tensor-parallel-size') or 1):.0f}")
        yield from situation.told(
            "pipeline-parallel-size", Problem(Kind.REFUSED, Severity.HIGH, says, _DSPARK, mend=mend)
        )


def _heads(situation: Situation) -> Iterator[Problem]:
    size = int(situation.number("tensor-parallel-size") or 1)
    heads = situation.checkpoint.attention_heads if situation.checkpoint else 0
    if size > 1 and heads and heads % size:
        fitting = max(count for count in range(1, min(size, _MOST_CARDS)) if heads % count == 0)
        says = f"The model has {heads} attention heads, and they cannot be shared evenly by {size} cards."
        mend = ("--tensor-parallel-size", str(fitting))
        yield from situation.told("tensor-parallel-size", Problem(Kind.REFUSED, Severity.HIGH, says, _PARALLEL, mend))


def _count(situation: Situation) -> Iterator[Problem]:
    held, asked = len(situation.cards), situation.ranks
    if not held or asked <= held or _several_hosts(situation) or situation.machine is None:
        return
    says = f"The command asks for {asked} cards, and this machine has {held}."
    for name in ("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size"):
        size = int(situation.number(name) or 1)
        if size > 1:
            counts = range(1, min(size, held + 1))
            fitting = [count for count in counts if asked // size * count <= held and _divides(situation, count)]
            mend = (f"--{name}", str(max(fitting))) if fitting else ()
            yield from situation.told(name, Problem(Kind.REFUSED, Severity.HIGH, says, _PARALLEL, mend))
            return


def _visible(situation: Situation) -> Iterator[Problem]:
    """CUDA_VISIBLE_DEVICES names fewer cards than the command asks for."""
    shown = situation.variable("CUDA_VISIBLE_DEVICES")
    if shown is None or _several_hosts(situation):
        return
    count = len([part for part in shown.split(",") if part.strip()])
    if count < situation.ranks:
        says = f"The command asks for {situation.ranks} cards, and this variable shows {count} of them to the engine."
        yield _variable(
            "CUDA_VISIBLE_DEVICES", shown, problem=Problem(Kind.CONTRADICTORY, Severity.HIGH, says, _PARALLEL)
        )


def _experts(situation: Situation) -> Iterator[Problem]:
    if situation.on("enable-expert-parallel") and situation.checkpoint and not situation.checkpoint.experts:
        says = "The model has no experts to spread."
        yield from situation.told("enable-expert-parallel", Problem(Kind.NEEDLESS, Severity.LOW, says, _PARALLEL))


def _links(situation: Situation) -> Iterator[Problem]:
    off = situation.variable("NCCL_P2P_DISABLE")
    if off in (None, "", "0"):
        return
    if situation.peers:
        says = "These cards reach each other's memory; with this, all their exchange goes through the host."
        problem = Problem(Kind.NEEDLESS, Severity.MEDIUM, says, _HANG)
    else:
        says = (
            "It sends all exchange between cards through the host. It is a remedy for boxes where IOMMU or ACS breaks "
            "peer access, together with --disable-custom-all-reduce; elsewhere it only costs speed."
        )
        problem = Problem(Kind.NEEDLESS, Severity.INFO if situation.peers is None else Severity.LOW, says, _HANG, None)
    if situation.peers is not False:
        yield _variable("NCCL_P2P_DISABLE", off or "", problem=problem)


def _several_hosts(situation: Situation) -> bool:
    executor = situation.value("distributed-executor-backend")
    return (situation.number("nnodes") or 1) > 1 or executor in ("ray", "external_launcher")


def _divides(situation: Situation, count: int) -> bool:
    heads = situation.checkpoint.attention_heads if situation.checkpoint else 0
    return count > 0 and (not heads or heads % count == 0)


def _variable(name: str, value: str, *, problem: Problem) -> Problem:
    return Problem(
        problem.kind, problem.severity, problem.says, problem.source, problem.mend, name, value, position=VARIABLE
    )
