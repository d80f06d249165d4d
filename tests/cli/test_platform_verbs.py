"""`up`, `status` and `down`, as real processes on an engine that is simulated."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from casemate.engine.supervisor import free_port

Verb = Callable[..., subprocess.CompletedProcess[str]]
_CASEMATE = str(Path(sys.executable).parent / "casemate")
_PATIENCE_S = 30.0


@pytest.fixture
def simulated(home: Path) -> Iterator[dict[str, str]]:
    """The environment of a platform whose engine is a running simulator."""
    port = free_port()
    engine = subprocess.Popen(
        [_CASEMATE, "simulate", "--port", str(port), "--first-token-ms", "1", "--token-ms", "0"],
        stderr=subprocess.DEVNULL,
    )
    _until(lambda: _answers(port))
    yield dict(os.environ) | {
        "CASEMATE_ENGINE_URL": f"http://127.0.0.1:{port}",
        "CASEMATE_ENGINE_MODEL": "simulator",
        "CASEMATE_PORT": "0",
    }
    engine.terminate()
    engine.wait(_PATIENCE_S)


@pytest.fixture
def verb(simulated: dict[str, str]) -> Verb:
    def call(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [_CASEMATE, *words], env=simulated | environment, capture_output=True, text=True, check=False, timeout=60
        )

    return call


@pytest.fixture
def platform(simulated: dict[str, str], verb: Verb) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([_CASEMATE, "up"], env=simulated, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert verb("status", "--wait", "30").returncode == 0, running.poll()
            yield running
        finally:
            running.terminate()
            running.communicate(timeout=_PATIENCE_S)


def test_a_platform_says_where_it_is_answers_there_and_ends_when_told(
    platform: subprocess.Popen[str], verb: Verb, home: Path
) -> None:
    told = json.loads(verb("status", "--json").stdout)
    assert (told["running"], told["ready"], told["model"], told["pid"]) == (True, True, "simulator", platform.pid)
    with urllib.request.urlopen(f"{told['url']}/readyz", timeout=10) as answer:
        assert answer.status == 200
    assert verb("down").returncode == 0
    assert platform.wait(_PATIENCE_S) == 0
    assert not (home / ".casemate" / "platform.json").exists()
    assert verb("status").returncode == 1


def test_one_home_has_one_platform(platform: subprocess.Popen[str], verb: Verb) -> None:
    second = verb("up")
    assert second.returncode == 3
    assert second.stderr.count("\n") == 1
    assert "casemate down" in second.stderr
    assert platform.poll() is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_how_a_platform_is_meant_to_end(platform: subprocess.Popen[str], number: int, home: Path) -> None:
    platform.send_signal(number)
    assert platform.wait(_PATIENCE_S) == 0
    assert not (home / ".casemate" / "platform.json").exists()


def test_a_question_goes_through_the_running_platform(platform: subprocess.Popen[str], verb: Verb) -> None:
    answer = json.loads(verb("ask", "eval(input())", "--json").stdout)
    assert answer["findings"][0]["cwe"] == "CWE-95"
    assert platform.poll() is None


def test_a_port_that_somebody_else_has_is_one_line_that_says_so(verb: Verb, home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = verb("up", CASEMATE_PORT=str(taken.getsockname()[1]))
    assert ran.returncode == 3
    assert ran.stderr.count("\n") == 1
    assert "the port is taken" in ran.stderr
    assert not (home / ".casemate" / "platform.json").exists()


def test_down_without_a_platform_is_no_error(verb: Verb) -> None:
    assert verb("down").returncode == 0


def test_an_engine_that_is_not_there_takes_no_finding_with_it(home: Path, tmp_path: Path) -> None:
    (tmp_path / "weak.py").write_text("print(eval(input()))\n")
    nobody = {"CASEMATE_ENGINE_URL": f"http://127.0.0.1:{free_port()}", "CASEMATE_ENGINE_MODEL": "m"}
    ran = subprocess.run(
        [_CASEMATE, "audit", str(tmp_path), "--json"],
        env=dict(os.environ) | nobody,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 1
    told = json.loads(ran.stdout)
    assert told["findings"][0]["cwe"] == "CWE-95"
    assert told["model"]["name"] == ""
    assert "rules only" in told["model"]["note"]


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, "it did not come up"
        time.sleep(0.05)
