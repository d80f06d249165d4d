"""What `doctor --log` prints and returns: text that is safe to print, JSON with its version, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from casemate.cli import reading_logs
from casemate.errors import UsageError

OOM = "(Worker_TP0 pid=9) ERROR 06-01 10:00:01 [w.py:1] torch.OutOfMemoryError: CUDA out of memory.\n"
READY = "INFO 06-01 10:00:00 [u.py:1] non-default args: {'model': '/m'}\nINFO:     Application startup complete.\n"
PROGRAM = (
    "import sys; from casemate.cli.reading_logs import diagnose; sys.exit(diagnose('-', json='--json' in sys.argv))"
)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (OOM, 1),
        (READY, 0),
        ("INFO 06-01 10:00:00 [u.py:1] non-default args: {'model': '/m'}\n", 2),
        ("hello\n", 2),
        ("", 2),
    ],
)
def test_the_exit_code_tells_failed_from_healthy_and_from_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, code: int
) -> None:
    (tmp_path / "a.log").write_text(text)
    assert reading_logs.diagnose(str(tmp_path / "a.log"), json=False) == code
    assert capsys.readouterr().out


def test_json_has_its_version_first_and_the_root_beside_all_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.log").write_text(OOM)
    reading_logs.diagnose(str(tmp_path / "a.log"), json=True)
    told = json.loads(capsys.readouterr().out)
    assert next(iter(told)) == "schema_version"
    assert (told["verdict"], told["root"]["id"], told["root"]["line"]) == ("failed", "cuda-oom", 1)
    assert told["findings"][0] == told["root"]
    assert told["facts"]["ready"] is False


def test_the_text_names_line_quote_remedy_and_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.log").write_text(OOM)
    reading_logs.diagnose(str(tmp_path / "a.log"), json=False)
    out = capsys.readouterr().out
    for part in (
        "cause: cuda-oom (memory)",
        "line 1, Worker_TP0 pid=9",
        "> torch.OutOfMemoryError",
        "  do: ",
        "  check: ",
    ):
        assert part in out


def test_what_a_terminal_would_obey_is_shown_and_not_sent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.log").write_bytes(b"FooError: \x1b]0;title\x07 \x9b31m \xe2\x80\xae evil\x08\x08\n" + OOM.encode())
    for as_json in (False, True):
        reading_logs.diagnose(str(tmp_path / "a.log"), json=as_json)
        assert not set(capsys.readouterr().out) & set("\x1b\x07\x08\x9b\u202e")


def test_standard_input_is_read(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, "--json"],
        input=OOM.encode() * 50_000,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 1, ran.stderr
    assert json.loads(ran.stdout)["root"]["count"] == 50_000


@pytest.mark.parametrize("name", ["absent.log", "."])
def test_what_is_no_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        reading_logs.diagnose(str(tmp_path / name), json=False)


def test_a_profile_that_is_given_as_a_log_is_read_as_a_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "ts": 0, "dur": 10}
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": [kernel]}))
    assert reading_logs.diagnose(str(tmp_path / "trace.json"), json=True) == 0
    assert json.loads(capsys.readouterr().out)["costliest"] == "all-reduce"
    assert reading_logs.profile(str(tmp_path / "trace.json"), json=False) == 0
    assert "all-reduce costs most" in capsys.readouterr().out


def test_a_log_that_is_given_as_a_profile_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(OOM)
    with pytest.raises(UsageError, match="no profile"):
        reading_logs.profile(str(tmp_path / "a.log"), json=False)
