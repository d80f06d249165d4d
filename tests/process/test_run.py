from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from casemate import process
from casemate.errors import CasemateError
from engine.family import eventually, living

PYTHON = [sys.executable, "-c"]


def test_a_program_that_ends_gives_its_status_and_both_outputs() -> None:
    script = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(5)"
    assert process.run([*PYTHON, script], timeout_s=30, environment={}) == process.Finished(
        5, b"out\n", b"err\n", timed_out=False
    )


def test_a_megabyte_on_both_pipes_is_read_whole() -> None:
    script = "import sys; [stream.write('x' * 1_000_000) for stream in (sys.stderr, sys.stdout)]"
    finished = process.run([*PYTHON, script], timeout_s=30, environment={})
    assert (len(finished.stdout), len(finished.stderr), finished.timed_out) == (1_000_000, 1_000_000, False)


def test_stdin_is_at_its_end() -> None:
    assert process.run([*PYTHON, "print(repr(input()))"], timeout_s=30, environment={}).stderr.endswith(
        b"EOFError: EOF when reading a line\n"
    )


def test_a_program_over_its_time_is_killed_with_its_group_and_what_it_said_is_kept() -> None:
    finished = process.run(["sh", "-c", "echo said; sleep 60 & sleep 60"], timeout_s=0.5, environment={})
    assert finished == process.Finished(-9, b"said\n", b"", timed_out=True)


def test_a_descendant_that_left_the_group_holds_nobody_up(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    leaver = f"import os, time; os.setsid(); open({str(noted)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    finished = process.run(
        ["sh", "-c", f'{sys.executable} -c "{leaver}" & echo said; sleep 60'], timeout_s=1.5, environment={}
    )
    os.kill(int(noted.read_text()), 9)
    assert finished == process.Finished(-9, b"said\n", b"", timed_out=True)


def test_whom_a_program_leaves_behind_in_its_group_is_ended_with_it(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    finished = process.run(
        ["sh", "-c", f"sleep 60 >/dev/null 2>&1 & echo $! > {noted}; echo said"], timeout_s=30, environment={}
    )
    assert finished == process.Finished(0, b"said\n", b"", timed_out=False)
    assert eventually(lambda: not living([int(noted.read_text())]))


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT), (signal.SIGUSR1, 1)],
    ids=["SystemExit", "KeyboardInterrupt", "any other exception"],
)
def test_whatever_a_signal_raises_in_the_waiting_thread_leaves_nothing_of_the_program(
    number: signal.Signals, status: int, tmp_path: Path
) -> None:
    noted = tmp_path / "pids"
    shell = f"sleep 60 & echo $$ $! > {noted}.new; mv {noted}.new {noted}; wait"
    program = (
        "import signal, sys; from casemate import process\n"
        "def fail(*_): raise LookupError\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143)); signal.signal(signal.SIGUSR1, fail)\n"
        "process.run(['sh', '-c', sys.argv[1]], timeout_s=60, environment={})"
    )
    with subprocess.Popen([*PYTHON, program, shell], stderr=subprocess.DEVNULL) as owner:
        assert eventually(noted.exists)
        owner.send_signal(number)
        assert owner.wait(20) == status
    pids = {int(pid) for pid in noted.read_text().split()}
    assert len(pids) == 2
    assert eventually(lambda: not living(pids))


def test_nothing_goes_through_a_shell() -> None:
    assert (
        process.run([*PYTHON, "import sys; print(sys.argv[1])", "$HOME; ls"], timeout_s=30, environment={}).stdout
        == b"$HOME; ls\n"
    )


def test_the_environment_is_the_given_one() -> None:
    script = "import os; print(os.environ.get('HOME'), os.environ['ONLY'])"
    assert process.run([*PYTHON, script], timeout_s=30, environment={"ONLY": "1"}).stdout == b"None 1\n"


def test_a_program_that_is_not_there_is_an_error_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(CasemateError, match="cannot start 'no-such-program': No such file or directory"):
        process.run(["no-such-program"], timeout_s=1, environment={}, cwd=tmp_path)
