"""Judgements on options that say different things, or of which one makes the other idle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from casemate.finding import Severity
from casemate.plan.recipe.checking import shown
from casemate.plan.recipe.flags import Hit
from casemate.plan.recipe.problem import Kind, Problem
from casemate.plan.recipe.situation import Situation
from casemate.plan.recipe.uses import Use

_COLLECTED = frozenset({"middleware"})
"""Each use adds to the others."""
_CLI = "vllm 0.33.0 wheel, vllm/entrypoints/common/cli_args.py"
_SERVE = "vllm 0.33.0 wheel, vllm/entrypoints/cli/serve.py"
_CACHE = "vllm 0.33.0 wheel, vllm/config/cache.py"
_COMPILATION = "vllm 0.33.0 wheel, vllm/config/vllm.py"
_GRAPHS = ("cudagraph-capture-sizes", "max-cudagraph-capture-size", "cuda-graph-sizes")


def contradictions(situation: Situation) -> Iterator[Problem]:
    """Every pair that cannot both be meant."""
    yield from _twice(situation)
    if "uds" in situation.options:
        says = "The server listens on the socket file of --uds and on nothing else."
        for name in ("host", "port"):
            yield from situation.told(name, Problem(Kind.CONTRADICTORY, Severity.LOW, says, _CLI))
    if situation.on("headless") and (situation.number("api-server-count") or 0) > 0:
        says = "With --headless there is no API server to count; the engine refuses."
        yield from situation.told("api-server-count", Problem(Kind.CONTRADICTORY, Severity.HIGH, says, _SERVE))
    if "kv-cache-memory-bytes" in situation.options:
        says = "--kv-cache-memory-bytes sets the cache's size, and this share is then ignored."
        yield from situation.told("gpu-memory-utilization", Problem(Kind.CONTRADICTORY, Severity.LOW, says, _CACHE))
    if situation.on("enforce-eager"):
        says = "With --enforce-eager no graph is captured, so this does nothing."
        for name in _GRAPHS:
            yield from situation.told(name, Problem(Kind.CONTRADICTORY, Severity.LOW, says, _COMPILATION, None))


def _twice(situation: Situation) -> Iterator[Problem]:
    last: dict[str, Use] = {}
    for use in reversed(situation.used):
        if not isinstance(use.meant, Hit) or use.meant.path or use.name in _COLLECTED:
            continue
        later = last.setdefault(use.name, use)
        if later is not use:
            same = (later.value, later.negated) == (use.value, use.negated)
            kind = Kind.NEEDLESS if same else Kind.CONTRADICTORY
            says = f"It stands there twice; the last one counts ({later.typed} {shown(later)}".rstrip() + ")."
            problem = Problem(kind, Severity.LOW, says, "https://docs.python.org/3/library/argparse.html")
            yield replace(problem, flag=use.typed, value=shown(use), position=use.position)
