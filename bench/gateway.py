"""What the gateway adds: time to the first streamed token beside the engine's own, and the platform's memory.

    python bench/gateway.py [MODEL.gguf]

The engine is the simulator with a first token after 20 ms, which is faster than any real model here, so the ratio is
the worst case; with a model file, llama.cpp is measured too. Both ways are asked in turn, in one run on one machine.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from casemate.chat.http import HttpModel
from casemate.chat.model import Endpoint
from casemate.chat.wire import ChatRequest, Message
from casemate.engine import supervisor
from casemate.engine.interface import Engine, Ready
from casemate.engine.llamacpp import LlamaCpp
from casemate.engine.simulator import Script, Simulator
from casemate.gateway.admission import Admission
from casemate.gateway.pipeline import closing
from casemate.plan.planner import Plan
from casemate.web.app import application, serving
from casemate.web.services import Services

_ROUNDS = 60
_WORDS = "word " * 64
_RATIO_BUDGET = 1.3
_RESIDENT_BUDGET_MB = 150


async def main(path: str) -> None:
    await measure(Simulator(Script(otherwise=_WORDS, first_token_ms=20.0)), _ROUNDS)
    if path:
        await measure(LlamaCpp(), _ROUNDS // 4, path=path)
    print(f"platform without the engine: {resident_mb():.0f} MB resident (budget {_RESIDENT_BUDGET_MB})")


async def measure(engine: Engine, rounds: int, *, path: str = "") -> None:
    """Print the time to the first token, direct and through the gateway."""
    plan = Plan(engine.name, "bench", path, context=1024, slots=1, threads=2, memory_bytes=0)
    async with (
        supervisor.running(engine, plan) as endpoint,
        HttpModel(endpoint, key=engine.key) as model,
        platform(model) as address,
        HttpModel(Endpoint(address, "bench")) as front,
    ):
        pairs = [(await first_token_s(model, at), await first_token_s(front, at)) for at in range(rounds)]
    direct, through = (statistics.median(times) * 1000 for times in zip(*pairs, strict=True))
    ratio = through / direct
    print(f"{engine.name}: first token {direct:.2f} ms direct, {through:.2f} ms through the gateway")
    print(f"{engine.name}: ratio {ratio:.2f} (budget {_RATIO_BUDGET})")


@asynccontextmanager
async def platform(model: HttpModel) -> AsyncIterator[str]:
    parts = Services(model=model, model_name="bench", ready=Ready, admission=Admission(slots=4, queue=4))
    async with serving(application(parts), host="127.0.0.1", port=0) as address:
        yield address


async def first_token_s(model: HttpModel, at: int) -> float:
    """The time to the first text, of a question that no cache has seen."""
    start = time.perf_counter()
    async with closing(model.stream(question(f"{at} {start}: count to ten.", 4))) as deltas:
        async for delta in deltas:
            if delta.content:
                return time.perf_counter() - start
    raise RuntimeError("the answer had no text")


def question(words: str, limit: int) -> ChatRequest:
    return ChatRequest(messages=(Message("user", words),), options={"max_tokens": limit, "temperature": 0})


def resident_mb() -> float:
    """What this process keeps in memory; it holds the whole platform, and nothing of the engine."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else ""))
