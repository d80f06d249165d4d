from __future__ import annotations

import importlib
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from casemate import process
from casemate.process import Broken, Limits
from engine.family import descendants
from process import deeds

LIMITS = Limits(time_s=20, memory_bytes=1 << 30, processes=2)
IMPATIENT = Limits(time_s=1, memory_bytes=1 << 30, processes=1)


def test_every_item_comes_with_its_result_in_order() -> None:
    items = list(range(40))
    assert list(process.each(deeds.slow_if_even, items[:6], limits=LIMITS)) == [(item, item) for item in items[:6]]
    assert list(process.each(deeds.square, items, limits=LIMITS)) == [(item, item * item) for item in items]


def test_no_items_start_no_worker() -> None:
    assert list(process.each(deeds.square, [], limits=LIMITS)) == []


def test_items_and_results_may_be_large() -> None:
    text = "x" * 3_000_000
    assert list(process.each(deeds.length, [text, text], limits=LIMITS)) == [(text, 3_000_000)] * 2


def test_a_worker_takes_many_items() -> None:
    pids = {pid for _, pid in process.each(deeds.my_pid, range(30), limits=LIMITS)}
    assert 1 <= len(pids) <= LIMITS.processes
    assert os.getpid() not in pids


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("sleep", "time limit of 1 s"),
        ("hold the interpreter", "time limit of 1 s"),
        ("crash", "crashed with SIGSEGV"),
        ("leave", "ended with status 3"),
        ("raise", "ValueError: no good"),
        ("hoard", "memory limit of 1024 MiB"),
    ],
)
def test_what_an_item_does_to_its_worker_breaks_that_item_only(how: str, reason: str) -> None:
    items = ["before", how, "after"]
    assert list(process.each(deeds.misbehave, items, limits=IMPATIENT)) == [
        ("before", "before"),
        (how, Broken(reason)),
        ("after", "after"),
    ]


def test_many_small_things_hit_the_memory_limit_too() -> None:
    limits = Limits(time_s=60, memory_bytes=128 << 20, processes=1)
    assert list(process.each(deeds.misbehave, ["hoard slowly", "after"], limits=limits)) == [
        ("hoard slowly", Broken("memory limit of 128 MiB")),
        ("after", "after"),
    ]


def test_a_result_that_cannot_travel_breaks_its_item() -> None:
    ((_, broken),) = process.each(deeds.misbehave, ["return a function"], limits=IMPATIENT)
    assert isinstance(broken, Broken)
    assert "pickle" in broken.reason


def test_of_our_environment_a_worker_has_nothing_but_the_way_to_our_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CASEMATE_ENGINE_API_KEY", "CASEMATE_ENGINE_KEY", "HF_TOKEN", "PIP_INDEX_URL"):
        monkeypatch.setenv(name, "planted")
    ((_, seen),) = process.each(deeds.variables, [0], limits=LIMITS)
    assert isinstance(seen, set)
    assert seen <= {"PYTHONPATH", "LC_CTYPE"}, "the second one the interpreter sets itself"


def test_an_item_that_cannot_travel_is_an_error_and_leaves_no_worker() -> None:
    with pytest.raises((pickle.PicklingError, AttributeError)):
        list(process.each(deeds.my_pid, [lambda: None], limits=LIMITS))
    assert not descendants(os.getpid())


def test_a_function_that_a_worker_cannot_find_breaks_every_item(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere.py").write_text("def name(item): return item")
    monkeypatch.syspath_prepend(tmp_path)
    name = importlib.import_module("elsewhere").name
    assert list(process.each(name, [1], limits=LIMITS)) == [(1, 1)], "the way is ours"
    sys.path.remove(str(tmp_path))
    missing = Broken("ModuleNotFoundError: No module named 'elsewhere'")
    assert list(process.each(name, [1, 2], limits=LIMITS)) == [(1, missing), (2, missing)]
    assert not descendants(os.getpid())


def test_a_program_in_the_working_folder_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    witness = tmp_path / "witness"
    for name in ("pickle", "ctypes", "socket"):
        (tmp_path / f"{name}.py").write_text(f"open({str(witness)!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    assert list(process.each(deeds.square, [3], limits=LIMITS)) == [(3, 9)]
    assert not witness.exists()


def test_closing_the_iterator_early_ends_busy_workers(tmp_path: Path) -> None:
    results = process.each(
        deeds.pid_at_once_then_sleep, [str(tmp_path / "first"), str(tmp_path / "second")], limits=LIMITS
    )
    next(results)
    _until(lambda: len(_pids(tmp_path)) == 2)
    results.close()  # type: ignore[attr-defined] # a generator, promised as an iterator
    assert not any(map(_lives, _pids(tmp_path)))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
def test_no_worker_outlives_an_owner_that_is_ended(number: signal.Signals, tmp_path: Path) -> None:
    program = (
        "from casemate.process import Limits, each; from process import deeds; import sys\n"
        "list(each(deeds.pid_then_sleep, sys.argv[1:], limits=Limits(2, 1 << 30, 2)))"
    )
    argv = [sys.executable, "-c", program, str(tmp_path / "first"), str(tmp_path / "second")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(argv, env=environment, stderr=subprocess.DEVNULL) as owner:
        _until(lambda: len(_pids(tmp_path)) == 2)
        owner.send_signal(number)
        assert owner.wait(20) == -number
    assert _until(lambda: not any(map(_lives, _pids(tmp_path))))


def _until(fact: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while not fact() and time.monotonic() < deadline:
        time.sleep(0.02)
    return fact()


def _pids(folder: Path) -> list[str]:
    return [pid for file in folder.iterdir() if (pid := file.read_text())]


def _lives(pid: str) -> bool:
    stat = Path("/proc", pid, "stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"
