"""A program that runs an engine and then does what its argument says. The tests of endings start it and end it.

It writes one line of JSON when the engine is ready: the port, and every process below it.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from casemate.engine import supervisor
from casemate.engine.simulator import Faults, Script, Simulator
from casemate.plan.decision import CpuPlan
from engine.family import descendants

PLAN = CpuPlan(engine="simulator", model="sim", path="", context=4096, slots=2, threads=1, memory_bytes=0)


async def main(deed: str, faults: Faults) -> None:
    async with supervisor.running(
        Simulator(Script(faults=faults)), PLAN, terms=supervisor.Terms(grace_s=0.5)
    ) as endpoint:
        found = {"port": urlsplit(endpoint.url).port, "pids": sorted(descendants(os.getpid()))}
        print(json.dumps(found), flush=True)
        if deed == "leak":
            leak_descriptors()
        if deed == "raise":
            raise LookupError("the body broke")
        if deed in {"wait", "leak"}:
            await asyncio.Event().wait()
    print("left in order", flush=True)


def leak_descriptors() -> None:
    """Start a process that holds all that we hold, as the fork of a server's worker does."""
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the listing's own
            os.set_inheritable(int(entry.name), True)  # noqa: FBT003 - it takes no keyword
    holder = subprocess.Popen(["sleep", "60"], close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(holder.pid, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Faults(**json.loads(sys.argv[2]))))
