"""What an engine's process receives, word for word; the interpreter's path aside."""

import sys

import pytest
from syrupy.assertion import SnapshotAssertion

from casemate.engine.interface import Engine
from casemate.engine.llamacpp import LlamaCpp
from casemate.engine.simulator import Faults, Script, Simulator
from casemate.plan.decision import CpuPlan

_PLAN = CpuPlan("llamacpp", "a model", "/models/a model.gguf", 4096, slots=2, threads=3, memory_bytes=0)
_ENGINES: list[Engine] = [LlamaCpp(key="k"), Simulator(Script(faults=Faults(die_after_tokens=3)), key="k")]


@pytest.mark.parametrize("engine", _ENGINES, ids=lambda engine: str(engine.name))
def test_the_process_of_a_plan_is_started_like_this(engine: Engine, snapshot: SnapshotAssertion) -> None:
    launch = engine.launch(_PLAN, 8001)
    assert launch is not None
    assert [word.replace(sys.executable, "PYTHON") for word in launch.argv] == snapshot
    assert "k" not in launch.argv, "a key in argv is seen by everybody on the machine"
    assert launch.environment == (("CASEMATE_ENGINE_KEY", "k"),)
