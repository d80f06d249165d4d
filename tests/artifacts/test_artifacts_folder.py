from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from artifacts.origin import Origin, listening
from artifacts.pinning import pinned
from casemate.artifacts import partial
from casemate.artifacts.fetch import fetch, needed_bytes, present, verify
from casemate.artifacts.lock import Artifact, Url
from casemate.errors import ArtifactError
from conftest import Optional

CONTENT = b"pinned " * 300_000
FETCH = """
import sys
from pathlib import Path
from casemate.artifacts.fetch import fetch
from casemate.artifacts.lock import Artifact, Url
name, group, file, size, sha256, licence, address, folder = sys.argv[1:]
sources = (Url(address),)
artifact = Artifact(name, group, file, int(size), sha256, licence, "nobody", "", sources)
print(fetch(artifact, Path(folder)))
"""


@pytest.fixture
def good() -> Iterator[Origin]:
    with Origin({"/thing": CONTENT}).serving() as origin:
        yield origin


@pytest.fixture
def artifact(good: Origin) -> Artifact:
    return pinned(CONTENT, Url(f"{good.url}/thing"))


def fetching(artifact: Artifact, folder: Path) -> subprocess.Popen[str]:
    """The same fetch in a process of its own."""
    (source,) = artifact.sources
    assert isinstance(source, Url)
    words = (artifact.name, artifact.group, artifact.file, str(artifact.size_bytes), artifact.sha256, artifact.licence)
    return subprocess.Popen(
        [sys.executable, "-c", FETCH, *words, source.address, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_what_is_there_is_not_fetched_again(artifact: Artifact, good: Origin, tmp_path: Path) -> None:
    first = fetch(artifact, tmp_path)
    assert fetch(artifact, tmp_path) == first == present(artifact, tmp_path)
    assert len(good.asked) == 1
    assert needed_bytes(artifact, tmp_path) == 0


def test_a_file_put_there_by_hand_is_verified_and_taken(artifact: Artifact, good: Origin, tmp_path: Path) -> None:
    (tmp_path / "thing.bin").write_bytes(CONTENT)
    assert fetch(artifact, tmp_path, offline=True).read_bytes() == CONTENT
    assert good.asked == []


def test_a_verified_file_is_not_hashed_again_until_asked(artifact: Artifact, tmp_path: Path) -> None:
    path = fetch(artifact, tmp_path)
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    path.write_bytes(CONTENT[::-1])
    os.utime(path, ns=times)  # same size, same time: only a hash can tell
    assert present(artifact, tmp_path) == path
    assert not verify(artifact, tmp_path)
    assert present(artifact, tmp_path) is None


@pytest.mark.parametrize("damaged", [CONTENT[:-1] + b"!", CONTENT[:-1], b""], ids=["changed", "cut", "empty"])
def test_a_damaged_file_is_not_there_and_is_replaced(
    damaged: bytes, artifact: Artifact, good: Origin, tmp_path: Path
) -> None:
    path = fetch(artifact, tmp_path)
    path.write_bytes(damaged)
    assert present(artifact, tmp_path) is None
    assert fetch(artifact, tmp_path).read_bytes() == CONTENT
    assert len(good.asked) == 2


def test_a_new_pin_does_not_take_the_old_file(artifact: Artifact, tmp_path: Path) -> None:
    fetch(artifact, tmp_path)
    assert present(replace(artifact, sha256="0" * 64), tmp_path) is None


@pytest.mark.parametrize("memory", ["", "[]", "{}", "\x00"])
def test_a_damaged_memory_only_costs_a_hash(memory: str, artifact: Artifact, tmp_path: Path) -> None:
    path = fetch(artifact, tmp_path)
    (tmp_path / ".thing.bin.verified.json").write_text(memory)
    assert present(artifact, tmp_path) == path
    assert json.loads((tmp_path / ".thing.bin.verified.json").read_text())["sha256"] == artifact.sha256


def test_offline_no_address_is_asked(artifact: Artifact, good: Origin, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"fetching is switched off.*thing\.bin.*put the file there"):
        fetch(artifact, tmp_path / "none", offline=True)
    assert good.asked == []
    assert not (tmp_path / "none").exists()


def test_a_disk_that_cannot_hold_it_is_told_before_the_first_byte(
    artifact: Artifact, good: Origin, tmp_path: Path
) -> None:
    with pytest.raises(ArtifactError, match=r"needs \d+ MiB of disk, \d+ MiB are free.*free some space"):
        fetch(replace(artifact, size_bytes=1 << 60), tmp_path)
    assert good.asked == []
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_a_file_is_one_line(artifact: Artifact, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ArtifactError, match="thing could not be written") as caught:
        fetch(artifact, tmp_path / "file")
    assert "\n" not in str(caught.value)


def test_bytes_that_a_full_disk_refuses_are_given_back(artifact: Artifact, tmp_path: Path) -> None:
    def write_until_full() -> None:
        with partial.opened(tmp_path / "partial", artifact) as growing:
            growing.write(CONTENT[1000:2000])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "partial").write_bytes(CONTENT[:1000])
    with pytest.raises(OSError, match="No space"):
        write_until_full()
    assert list(tmp_path.iterdir()) == []


def test_short_writes_are_gone_on_with(artifact: Artifact, tmp_path: Path) -> None:
    class Stingy(FileIO):
        def write(self, data: Any, /) -> int:
            return super().write(bytes(data)[:1000])

    with Stingy(tmp_path / "partial", "w+") as file:
        growing = partial.Partial(file, artifact, observer=None)
        growing.write(CONTENT)
        assert growing.matches()
    assert (tmp_path / "partial").read_bytes() == CONTENT


@pytest.fixture
def small_disk(tmp_path: Path, optional: Optional) -> Iterator[Path]:
    """A file system of 32 MiB, where we may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(folder)]
    mounted = os.geteuid() == 0 and subprocess.run(mount, check=False, capture_output=True).returncode == 0
    optional("a small disk can be mounted by root only", mounted)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_fills_up_on_the_way_is_one_line_and_gets_its_space_back(
    artifact: Artifact, good: Origin, small_disk: Path
) -> None:
    def fill() -> None:
        (small_disk / "neighbour").write_bytes(bytes(shutil.disk_usage(small_disk).free - len(CONTENT) // 2))

    good.before = fill
    with pytest.raises(ArtifactError, match=r"thing could not be written: No space left.*free some space") as caught:
        fetch(artifact, small_disk)
    assert "\n" not in str(caught.value)
    assert [path.name for path in small_disk.iterdir()] == ["neighbour"]


def test_of_two_processes_one_fetches_and_the_other_waits_for_it(
    artifact: Artifact, good: Origin, tmp_path: Path
) -> None:
    second: list[subprocess.Popen[str]] = []

    def hold_until_the_other_waits() -> None:
        if not second:
            second.append(fetching(artifact, tmp_path))
            until(lambda: waits_for_a_lock(second[0].pid))

    good.before = hold_until_the_other_waits
    first = fetching(artifact, tmp_path)
    assert first.communicate() == (f"{tmp_path / 'thing.bin'}\n", "")
    assert second[0].communicate() == (f"{tmp_path / 'thing.bin'}\n", "")
    assert len(good.asked) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"thing.bin", ".thing.bin.verified.json"}


def test_what_a_killed_process_left_is_gone_on_with(artifact: Artifact, good: Origin, tmp_path: Path) -> None:
    half = CONTENT[:1_000_000]

    def stop_half_way(caller: socket.socket, over: threading.Event) -> None:
        caller.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(CONTENT)}\r\n\r\n".encode() + half)
        over.wait()

    with listening(stop_half_way) as address:
        child = fetching(pinned(CONTENT, Url(f"{address}/thing")), tmp_path)
        growing = tmp_path / ".thing.bin.partial"
        until(lambda: growing.exists() and growing.stat().st_size == len(half))
        child.kill()
        child.communicate()
    assert (tmp_path / ".thing.bin.work").is_dir()
    assert fetch(artifact, tmp_path).read_bytes() == CONTENT
    assert good.asked == [("/thing", "bytes=1000000-")]
    assert {path.name for path in tmp_path.iterdir()} == {"thing.bin", ".thing.bin.verified.json"}


def waits_for_a_lock(pid: int) -> bool:
    waiting = (line.split() for line in Path("/proc/locks").read_text().splitlines() if "->" in line)
    return any(str(pid) in words for words in waiting)


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
