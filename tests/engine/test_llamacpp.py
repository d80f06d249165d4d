from __future__ import annotations

import ast
import sys
from pathlib import Path

import casemate
from casemate.engine.interface import Starting
from casemate.engine.llamacpp import LlamaCpp
from casemate.plan.decision import CpuPlan

PLAN = CpuPlan("llamacpp", "tiny", "/models/tiny.gguf", context=2048, slots=3, threads=2, memory_bytes=0)


def test_the_plan_becomes_a_command_line_and_the_key_an_environment_variable() -> None:
    launch = LlamaCpp(key="k").launch(PLAN, 8123)
    assert launch.argv == (
        sys.executable, "-P", "-m", "casemate.engine.llamacpp_server",
        "--path", "/models/tiny.gguf", "--name", "tiny",
        "--context", "2048", "--slots", "3", "--threads", "2", "--port", "8123",
    )  # fmt: skip
    assert launch.environment == (("CASEMATE_ENGINE_KEY", "k"),)


def test_every_instance_has_a_key_of_its_own_that_its_repr_hides() -> None:
    engines = [LlamaCpp() for _ in range(20)]
    assert len({engine.key for engine in engines}) == 20
    assert not any(engine.key in repr(engine) for engine in engines)


def test_the_endpoint_is_on_loopback_and_knows_its_window() -> None:
    endpoint = LlamaCpp(key="k").endpoint(PLAN, 8123)
    assert (endpoint.url, endpoint.model, endpoint.context) == ("http://127.0.0.1:8123", "tiny", 2048)


def test_lines_of_its_log_tell_how_far_it_is() -> None:
    lines = [
        "0.00.008.289 I srv          init: loading model",
        "0.00.008.405 I srv    load_model: loading model '/models/tiny.gguf'",
        "0.00.958.543 I cmn          init: llama threadpool init, n_threads = 2",
        "0.06.936.278 I srv    load_model: initializing, n_slots = 3, n_ctx_slot = 2048, kv_unified = 'false'",
        "0.06.940.427 I srv          init: model loaded",
    ]
    steps = [LlamaCpp().phase(line) for line in lines]
    assert steps == [None, Starting("load", 0.1), Starting("load", 0.4), Starting("load", 0.9), Starting("warm", 0.95)]


def test_only_the_child_imports_the_runtime() -> None:
    root = Path(casemate.__file__).parent
    importers = {
        file.relative_to(root).as_posix()
        for file in root.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Import) and any(alias.name == "xllamacpp" for alias in node.names)
    }
    assert importers == {"engine/llamacpp_server.py"}
