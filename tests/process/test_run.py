from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from casemate import process
from casemate.errors import CasemateError

PYTHON = [sys.executable, "-c"]


def test_a_program_that_ends_gives_its_status_and_both_outputs() -> None:
    script = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(5)"
    assert process.run([*PYTHON, script], timeout_s=30) == process.Finished(5, b"out\n", b"err\n", timed_out=False)


def test_a_megabyte_on_both_pipes_is_read_whole() -> None:
    script = "import sys; [stream.write('x' * 1_000_000) for stream in (sys.stderr, sys.stdout)]"
    finished = process.run([*PYTHON, script], timeout_s=30)
    assert (len(finished.stdout), len(finished.stderr), finished.timed_out) == (1_000_000, 1_000_000, False)


def test_stdin_is_at_its_end() -> None:
    assert process.run([*PYTHON, "print(repr(input()))"], timeout_s=30).stderr.endswith(
        b"EOFError: EOF when reading a line\n"
    )


def test_a_program_over_its_time_is_killed_with_its_group_and_what_it_said_is_kept() -> None:
    finished = process.run(["sh", "-c", "echo said; sleep 60 & sleep 60"], timeout_s=0.5)
    assert finished == process.Finished(-9, b"said\n", b"", timed_out=True)


def test_a_descendant_that_left_the_group_holds_nobody_up(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    leaver = f"import os, time; os.setsid(); open({str(noted)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    finished = process.run(["sh", "-c", f'{sys.executable} -c "{leaver}" & echo said; sleep 60'], timeout_s=1.5)
    os.kill(int(noted.read_text()), 9)
    assert finished == process.Finished(-9, b"said\n", b"", timed_out=True)


def test_nothing_goes_through_a_shell() -> None:
    assert process.run([*PYTHON, "import sys; print(sys.argv[1])", "$HOME; ls"], timeout_s=30).stdout == b"$HOME; ls\n"


def test_the_environment_is_the_given_one() -> None:
    script = "import os; print(os.environ.get('HOME'), os.environ['ONLY'])"
    assert process.run([*PYTHON, script], timeout_s=30, environment={"ONLY": "1"}).stdout == b"None 1\n"


def test_a_program_that_is_not_there_is_an_error_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(CasemateError, match="cannot start 'no-such-program': No such file or directory"):
        process.run(["no-such-program"], timeout_s=1, cwd=tmp_path)
