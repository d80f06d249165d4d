"""What the gateway adds: time to the first streamed token beside the engine's own, and the platform's memory.

    python bench/gateway.py [MODEL.gguf]

The engine is the simulator with a first token after 20 ms, which is faster than any real model here, so the ratio is
the worst case; with a model file, llama.cpp is measured too. Both ways are asked in turn, in one run on one machine.
The memory is that of a `casemate up` of its own, over the simulator and with the graph of the fetched artefacts.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import orjson

from casemate import settings
from casemate.chat.http import HttpModel
from casemate.chat.model import Endpoint
from casemate.chat.wire import ChatRequest, Message
from casemate.engine import supervisor
from casemate.engine.interface import Engine, Ready
from casemate.engine.llamacpp import LlamaCpp
from casemate.engine.simulator import Script, Simulator
from casemate.gateway.admission import Admission
from casemate.gateway.pipeline import closing
from casemate.plan.decision import CpuPlan
from casemate.web.app import application, serving
from casemate.web.services import Services

CASEMATE = str(Path(sys.executable).parent / "casemate")
_ROUNDS = 60
_WORDS = "word " * 64
_RATIO_BUDGET = 1.3
_RESIDENT_BUDGET_MB = 150


async def main(path: str) -> None:
    await measure(Simulator(Script(otherwise=_WORDS, first_token_ms=20.0)), _ROUNDS)
    if path:
        await measure(LlamaCpp(), _ROUNDS // 4, path=path)
    print(f"platform without the engine: {await resident_mb():.0f} MB resident (budget {_RESIDENT_BUDGET_MB})")


async def measure(engine: Engine, rounds: int, *, path: str = "") -> None:
    """Print the time to the first token, direct and through the gateway."""
    plan = CpuPlan(engine.name, "bench", path, context=1024, slots=1, threads=2, memory_bytes=0)
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


async def resident_mb() -> float:
    """What a real `casemate up` keeps in memory, the graph open and one grounded request answered; no engine in it."""
    engine = Simulator(Script(otherwise=_WORDS))
    plan = CpuPlan(engine.name, "simulator", "", context=1024, slots=1, threads=1, memory_bytes=0)
    with tempfile.TemporaryDirectory() as home:
        artifacts = Path(home) / "artifacts"
        shutil.copytree(settings.load().artifacts, artifacts, ignore=shutil.ignore_patterns("*.gguf*", ".*"))
        async with supervisor.running(engine, plan) as endpoint:
            # The engine is a server that somebody else runs, so that nothing but the platform is weighed.
            there = {"CASEMATE_ENGINE_URL": endpoint.url, "CASEMATE_ENGINE_MODEL": endpoint.model}
            environment = os.environ | there | {"CASEMATE_HOME": home, "CASEMATE_ENGINE_API_KEY": engine.key}
            async with up(environment) as (pid, address):
                await grounded(address)
                return vm_rss_mb(pid)


@asynccontextmanager
async def up(environment: Mapping[str, str]) -> AsyncIterator[tuple[int, str]]:
    """A platform with its graph: its process and its address."""
    await casemate("kb", "build", environment=environment)
    process = await asyncio.create_subprocess_exec(
        CASEMATE, "up", "--port", "0", env=environment, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        status = await casemate("status", "--wait", "60", "--json", environment=environment)
        yield process.pid, orjson.loads(status)["url"]
    finally:
        process.terminate()
        await process.wait()


async def casemate(*words: str, environment: Mapping[str, str]) -> bytes:
    """Run a command to its end; what it printed."""
    running = await asyncio.create_subprocess_exec(CASEMATE, *words, env=environment, stdout=asyncio.subprocess.PIPE)
    printed, _ = await running.communicate()
    if running.returncode:
        raise RuntimeError(f"casemate {' '.join(words)} ended with {running.returncode}")
    return printed


async def grounded(address: str) -> None:
    """Ask once with the graph; an answer without citations would weigh too little."""
    body = {"messages": [{"role": "user", "content": "What is CWE-89?"}], "casemate": {"ground": True}}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{address}/v1/chat/completions", json=body) as response,
    ):
        if not (await response.json())["casemate"]["citations"]:
            raise RuntimeError("the answer was not grounded")


def vm_rss_mb(pid: int) -> float:
    """The resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else ""))
