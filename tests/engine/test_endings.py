"""Every way out of `supervisor.running`, in a real tree of processes: owner, keeper, engine, and a grandchild that
ignores SIGTERM in a session of its own. After each of them nothing lives and the port is free.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.family import descendants, eventually, living, only_child, port_is_free

STUBBORN = {"orphan": True, "deaf": True}


@dataclass(frozen=True)
class Tree:
    owner: subprocess.Popen[str]
    port: int
    pids: frozenset[int]

    @property
    def keeper(self) -> int:
        return only_child(self.owner.pid)

    @property
    def engine(self) -> int:
        return only_child(self.keeper)

    def has_vanished(self) -> bool:
        return eventually(lambda: not living(self.pids)) and port_is_free(self.port)


@contextmanager
def tree(deed: str, **faults: bool) -> Iterator[Tree]:
    owner = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("owner.py")), deed, json.dumps(faults)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        text=True,
    )
    with owner:
        assert owner.stdout is not None
        line = owner.stdout.readline()
        assert line, owner.communicate()
        found = json.loads(line)
        try:
            yield Tree(owner, found["port"], frozenset(found["pids"]))
        finally:
            owner.kill()


@pytest.mark.parametrize("faults", [{}, STUBBORN], ids=["docile", "stubborn"])
def test_nothing_lives_after_the_block_is_left_in_order(faults: dict[str, bool]) -> None:
    with tree("leave", **faults) as family:
        out, _ = family.owner.communicate(timeout=20)
        assert out == "left in order\n"
        assert family.owner.returncode == 0
        assert family.has_vanished()


@pytest.mark.parametrize("faults", [{}, STUBBORN], ids=["docile", "stubborn"])
def test_nothing_lives_after_the_body_raised(faults: dict[str, bool]) -> None:
    with tree("raise", **faults) as family:
        _, err = family.owner.communicate(timeout=20)
        assert "LookupError: the body broke" in err
        assert family.has_vanished()


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGINT, -signal.SIGINT), (signal.SIGKILL, -signal.SIGKILL)],
    ids=["SIGTERM", "SIGINT", "SIGKILL"],
)
@pytest.mark.parametrize("faults", [{}, STUBBORN], ids=["docile", "stubborn"])
def test_nothing_lives_after_a_signal_ended_the_owner(
    number: signal.Signals, status: int, faults: dict[str, bool]
) -> None:
    with tree("wait", **faults) as family:
        family.owner.send_signal(number)
        assert family.owner.wait(20) == status
        assert family.has_vanished()


def test_signals_that_come_again_while_the_engine_is_ending_change_nothing() -> None:
    with tree("wait", **STUBBORN) as family:
        for _ in range(5):
            family.owner.send_signal(signal.SIGTERM)
        assert family.owner.wait(20) == 128 + signal.SIGTERM
        assert family.has_vanished()


def test_nothing_lives_after_the_engine_was_killed_under_the_block() -> None:
    with tree("wait", **STUBBORN) as family:
        os.kill(family.engine, signal.SIGKILL)
        _, err = family.owner.communicate(timeout=20)
        assert "EngineDied: the engine's process ended with signal SIGKILL" in err
        assert family.has_vanished()


def test_nothing_in_the_engines_group_lives_after_the_keeper_was_killed() -> None:
    with tree("wait") as family:
        os.kill(family.keeper, signal.SIGKILL)
        _, err = family.owner.communicate(timeout=20)
        assert "EngineDied" in err
        assert family.has_vanished()


def test_the_engine_ends_with_a_keeper_and_an_owner_that_are_both_killed() -> None:
    with tree("wait") as family:
        keeper = family.keeper
        os.kill(family.owner.pid, signal.SIGSTOP)
        os.kill(keeper, signal.SIGKILL)
        family.owner.kill()
        family.owner.wait(20)
        assert family.has_vanished()


def test_nothing_lives_after_kill_9_although_another_process_holds_our_end_of_the_line_to_the_keeper() -> None:
    with tree("leak", **STUBBORN) as family:
        assert family.owner.stdout is not None
        holder = int(family.owner.stdout.readline())
        family.owner.kill()
        family.owner.wait(20)
        assert family.has_vanished()
        assert living([holder])
        os.kill(holder, signal.SIGKILL)


def test_the_tree_is_the_one_that_is_meant() -> None:
    with tree("wait", **STUBBORN) as family:
        assert len(family.pids) == 3
        (grandchild,) = descendants(family.engine)
        assert len({os.getsid(pid) for pid in (family.owner.pid, family.keeper, family.engine, grandchild)}) == 4
        assert not port_is_free(family.port)
