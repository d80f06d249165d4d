"""The look after each test sees what it is for: shown on planted tests that leave something, in a run of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from house.source import ROOT

pytestmark = pytest.mark.slow  # it waits for what was left to go away by itself

_PLANTED = """
import os, socket, subprocess, sys

kept = []
SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def test_a_child():
    kept.append(subprocess.Popen(SLEEP))


def test_b_orphan():
    start = f"import subprocess; subprocess.Popen({SLEEP!r}, start_new_session=True)"
    subprocess.run([sys.executable, "-c", start], check=True)


def test_c_port():
    kept.append(socket.create_server(("127.0.0.1", 0)))


def test_d_variable():
    os.environ["CASEMATE_PORT"] = "1"


def test_e_clean(optional, home):
    assert "CASEMATE_PORT" not in os.environ
    assert os.environ["HOME"] == str(home) and not any(home.iterdir())


def test_f_optional(optional):
    optional("the big sample is not here", present=False)
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("planted")
    (folder / "test_planted.py").write_text(_PLANTED)
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:randomly", "-v", "--rootdir=.", "."]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), "CASEMATE_THREADS": "3"}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=90, check=False)
    return ran.stdout


@pytest.mark.parametrize(
    ("test", "left"),
    [
        ("test_a_child", r"process \d+ .*time\.sleep"),
        ("test_b_orphan", r"process \d+ .*time\.sleep"),
        ("test_c_port", r"listening socket tcp port \d+"),
    ],
)
def test_a_test_that_leaves_a_process_an_orphan_or_a_port_fails_and_is_cleaned_up(
    report: str, test: str, left: str
) -> None:
    assert re.search(rf"::{test} ERROR", report), report
    assert re.search(rf"_ ERROR at teardown of {test} _+\n(?:E +)?left behind: {left}", report), report
    pids = [int(pid) for pid in re.findall(r"left behind: process (\d+)", report)]
    assert not [pid for pid in pids if _runs(pid)]


def test_the_environment_of_the_user_and_of_the_test_before_is_gone(report: str) -> None:
    assert re.search("::test_d_variable PASSED", report)
    assert re.search("::test_e_clean PASSED", report), report


def test_an_optional_check_that_did_not_run_is_counted_aloud(report: str) -> None:
    assert "1 optional check did not run: the big sample is not here" in report


def _runs(pid: int) -> bool:
    """Whether the process is still at work; one that ended and is waited for by nobody does not count."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"
