"""The file that says where the platform runs."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from casemate.cli import state
from casemate.errors import PlatformError
from casemate.finding import ModelNote


def _write(path: Path) -> state.Running:
    state.write(path, url="http://127.0.0.1:1", note=ModelNote("m"), ready=True)
    running = state.read(path)
    assert running is not None
    return running


def test_what_is_written_is_read_back_and_only_we_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "platform.json"
    running = _write(path)
    assert (running.pid, running.url, running.model) == (os.getpid(), "http://127.0.0.1:1", "m")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_the_home_folder_is_made_where_there_is_none(tmp_path: Path) -> None:
    path = tmp_path / "not" / "there" / "platform.json"
    with state.claimed(path):
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_home_folder_is_claimed_once_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "platform.json"
    with state.claimed(path):
        with pytest.raises(PlatformError, match="runs already"), state.claimed(path):
            pass
        _write(path)
    assert not list(tmp_path.iterdir()), "the claim takes the address away, and leaves nothing itself"
    with state.claimed(path):
        pass


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[]",
        '{"pid": 1}',
        "null",
        "\x00",
        '{"pid": 1, "born": 2, "url": 3, "model": 4, "note": 5, "ready": 6}',
    ],
)
def test_a_foreign_file_is_no_platform(tmp_path: Path, content: str) -> None:
    path = tmp_path / "platform.json"
    path.write_text(content)
    assert state.read(path) is None


def test_a_process_that_ended_is_no_platform_even_if_its_number_is_used_again(tmp_path: Path) -> None:
    path = tmp_path / "platform.json"
    running = _write(path)
    with subprocess.Popen([sys.executable, "-c", "pass"]) as child:
        child.wait()
    for pid, born in ((child.pid, running.born), (running.pid, "1")):
        path.write_text(json.dumps({"pid": pid, "born": born, "url": "u", "model": "m", "note": "", "ready": True}))
        assert state.read(path) is None


def test_only_our_own_address_is_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "platform.json"
    _write(path)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        born = Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[19]
        path.write_text(
            json.dumps({"pid": other.pid, "born": born, "url": "u", "model": "m", "note": "", "ready": True})
        )
        state.remove(path)
        assert path.exists()
        other.communicate(b"\n")
    state.remove(path)
    assert not path.exists()
