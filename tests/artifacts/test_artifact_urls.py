from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from artifacts import origin as world
from artifacts.origin import Origin, closed_port, listening
from artifacts.pinning import archive, pinned
from casemate.artifacts.fetch import fetch
from casemate.artifacts.lock import Url
from casemate.artifacts.partial import Progress
from casemate.artifacts.url import Patience
from casemate.errors import ArtifactError

CONTENT = bytes(range(256)) * 5000
HURRIED = Patience(answer_s=1, silence_s=1, window_s=0.5, floor_bytes_per_s=1 << 16)
Greeting = Callable[[socket.socket, threading.Event], None]


@pytest.fixture
def good() -> Iterator[Origin]:
    with Origin({"/thing": CONTENT}).serving() as origin:
        yield origin


def partial(folder: Path) -> Path:
    return folder / ".thing.bin.partial"


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def break_off(origin: Origin, folder: Path, at: int) -> None:
    """Leave half a download behind, as a lost connection does."""
    origin.cut_at = at
    with pytest.raises(ArtifactError, match="broke off"):
        fetch(pinned(CONTENT, Url(f"{origin.url}/thing")), folder)
    origin.cut_at = None
    origin.asked.clear()


def test_a_fetched_file_has_the_pinned_bytes_and_nothing_else_is_left(good: Origin, tmp_path: Path) -> None:
    path = fetch(pinned(CONTENT, Url(f"{good.url}/thing")), tmp_path / "new" / "folder")
    assert path.read_bytes() == CONTENT
    assert names(path.parent) == {"thing.bin", ".thing.bin.verified.json"}


def test_progress_goes_from_nothing_to_all_and_names_the_source(good: Origin, tmp_path: Path) -> None:
    seen: list[Progress] = []
    fetch(pinned(CONTENT, Url(f"{good.url}/thing")), tmp_path, observer=seen.append)
    assert (seen[0].done_bytes, seen[-1].done_bytes) == (0, len(CONTENT))
    assert all(before.done_bytes <= after.done_bytes for before, after in pairwise(seen))
    assert {(step.artifact, step.source, step.total_bytes) for step in seen} == {("thing", "127.0.0.1", len(CONTENT))}


@pytest.mark.parametrize(
    "greet",
    [world.silent, world.head_by_drops, world.body_by_drops, world.falls_silent],
    ids=lambda greet: greet.__name__,
)
def test_an_address_that_gives_nothing_is_given_up_and_the_next_is_tried(
    greet: Greeting, good: Origin, tmp_path: Path
) -> None:
    with listening(greet) as stuck:
        artifact = pinned(CONTENT, Url(f"{stuck}/thing"), Url(f"{good.url}/thing"))
        # The good one may be slow on a busy machine, so it gets more time than the stuck one needs to be found out.
        patience = replace(HURRIED, answer_s=2, silence_s=2)
        assert fetch(artifact, tmp_path, patience=patience).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("greet", "said"),
    [
        (world.silent, "did not answer within 1 s"),
        (world.head_by_drops, "did not answer within 1 s"),
        (world.body_by_drops, "only trickles"),
        (world.falls_silent, "broke off: timed out"),
    ],
)
def test_the_error_says_how_an_address_failed(greet: Greeting, said: str, tmp_path: Path) -> None:
    with listening(greet) as stuck, pytest.raises(ArtifactError, match=said) as caught:
        fetch(pinned(CONTENT, Url(f"{stuck}/thing")), tmp_path, patience=HURRIED)
    assert "\n" not in str(caught.value)


def test_unless_told_otherwise_an_address_has_five_seconds_to_answer() -> None:
    assert Patience().answer_s == 5


def test_an_address_that_refuses_is_given_up_and_the_next_is_tried(good: Origin, tmp_path: Path) -> None:
    artifact = pinned(CONTENT, Url(f"{closed_port()}/thing"), Url(f"{good.url}/none"), Url(f"{good.url}/thing"))
    assert fetch(artifact, tmp_path).read_bytes() == CONTENT


def test_when_no_source_is_left_one_line_names_each_failure_and_nothing_stays(good: Origin, tmp_path: Path) -> None:
    artifact = pinned(CONTENT, Url(f"{closed_port()}/thing"), Url(f"{good.url}/none"))
    with pytest.raises(ArtifactError, match=r"no source gave thing.*refused.*answered 404.*put the file at") as caught:
        fetch(artifact, tmp_path)
    assert "\n" not in str(caught.value)
    assert names(tmp_path) == set()


def test_half_a_download_stays_and_is_resumed_where_it_broke_off(good: Origin, tmp_path: Path) -> None:
    break_off(good, tmp_path, 700_000)
    assert partial(tmp_path).read_bytes() == CONTENT[:700_000]
    assert not (tmp_path / "thing.bin").exists()
    assert fetch(pinned(CONTENT, Url(f"{good.url}/thing")), tmp_path).read_bytes() == CONTENT
    assert good.asked == [("/thing", "bytes=700000-")]
    assert names(tmp_path) == {"thing.bin", ".thing.bin.verified.json"}


def test_a_file_that_changed_at_its_address_is_not_mixed_from_two_versions(good: Origin, tmp_path: Path) -> None:
    good.files["/thing"] = b"old" + CONTENT[3:]
    break_off(good, tmp_path, 700_000)
    good.files["/thing"], good.etag = CONTENT, '"two"'
    assert fetch(pinned(CONTENT, Url(f"{good.url}/thing")), tmp_path).read_bytes() == CONTENT
    assert len(good.asked) == 1


def test_a_damaged_half_is_found_out_and_the_whole_fetched_once_more(good: Origin, tmp_path: Path) -> None:
    partial(tmp_path).write_bytes(b"damaged")
    assert fetch(pinned(CONTENT, Url(f"{good.url}/thing")), tmp_path).read_bytes() == CONTENT
    assert good.asked == [("/thing", "bytes=7-"), ("/thing", None)]


def test_a_server_without_ranges_begins_anew(good: Origin, tmp_path: Path) -> None:
    break_off(good, tmp_path, 700_000)
    good.ranges = False
    assert fetch(pinned(CONTENT, Url(f"{good.url}/thing")), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("left", [CONTENT, CONTENT + b"x"], ids=["complete", "too long"])
def test_a_half_that_is_none_does_no_harm(left: bytes, good: Origin, tmp_path: Path) -> None:
    partial(tmp_path).write_bytes(left)
    assert fetch(pinned(CONTENT, Url(f"{good.url}/thing")), tmp_path).read_bytes() == CONTENT


def test_other_bytes_than_were_pinned_are_refused_and_removed(good: Origin, tmp_path: Path) -> None:
    good.files["/thing"] = CONTENT[:-1] + b"!"
    with pytest.raises(ArtifactError, match="other bytes than were pinned; they are removed"):
        fetch(pinned(CONTENT, Url(f"{good.url}/thing")), tmp_path)
    assert names(tmp_path) == set()


@pytest.mark.parametrize("size_bytes", [0, 10, len(CONTENT) + 1])
def test_a_file_of_another_size_is_refused_before_its_body_is_read(
    size_bytes: int, good: Origin, tmp_path: Path
) -> None:
    good.files["/thing"] = bytes(size_bytes)
    with pytest.raises(ArtifactError, match=f"offers {size_bytes} bytes where {len(CONTENT)} are missing"):
        fetch(pinned(CONTENT, Url(f"{good.url}/thing")), tmp_path)
    assert names(tmp_path) == set()


def test_a_stream_without_end_is_cut_at_the_pinned_size(tmp_path: Path) -> None:
    def flood(caller: socket.socket, over: threading.Event) -> None:
        caller.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        while not over.is_set():
            caller.sendall(CONTENT)

    with listening(flood) as address, pytest.raises(ArtifactError, match="more than the 1280000 bytes"):
        fetch(pinned(CONTENT, Url(f"{address}/thing")), tmp_path)


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n"])
def test_an_answer_that_is_no_http_is_one_line_too(answer: bytes, tmp_path: Path) -> None:
    def greet(caller: socket.socket, _: threading.Event) -> None:
        caller.recv(1 << 16)
        caller.sendall(answer)

    with listening(greet) as address, pytest.raises(ArtifactError, match="no source gave thing"):
        fetch(pinned(CONTENT, Url(f"{address}/thing")), tmp_path)


def test_a_redirect_is_followed_with_the_range_that_was_asked_for(good: Origin, tmp_path: Path) -> None:
    break_off(good, tmp_path, 700_000)
    good.redirects["/moved"] = f"{good.url}/thing"
    assert fetch(pinned(CONTENT, Url(f"{good.url}/moved")), tmp_path).read_bytes() == CONTENT
    assert good.asked == [("/moved", "bytes=700000-"), ("/thing", "bytes=700000-")]


@pytest.mark.parametrize("target", ["file:///etc/hostname", "/moved"], ids=["to a file", "in a circle"])
def test_a_redirect_that_leads_nowhere_good_is_refused(target: str, good: Origin, tmp_path: Path) -> None:
    good.redirects["/moved"] = target if ":" in target else f"{good.url}{target}"
    with pytest.raises(ArtifactError, match="answered 302"):
        fetch(pinned(CONTENT, Url(f"{good.url}/moved")), tmp_path)


@pytest.mark.parametrize("scheme", ["ftp", "file", "data"])
def test_what_is_not_http_has_nobody_who_would_open_it(scheme: str, good: Origin, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        address = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/thing"
        with pytest.raises(ArtifactError, match=f"unknown url type: {scheme}"):
            fetch(pinned(CONTENT, Url(address)), tmp_path)
        if scheme == "ftp":  # the one of them that urllib lets a redirect lead to
            good.redirects["/moved"] = address
            with pytest.raises(ArtifactError, match="unknown url type: ftp"):
                fetch(pinned(CONTENT, Url(f"{good.url}/moved")), tmp_path)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_member_of_an_archive_is_unpacked(good: Origin, tmp_path: Path) -> None:
    good.files["/thing.zip"] = archive({"other.txt": b"other", "../thing.bin": CONTENT})
    artifact = pinned(CONTENT, Url(f"{good.url}/thing.zip", unpack="../thing.bin"))
    assert fetch(artifact, tmp_path / "artifacts").read_bytes() == CONTENT
    assert names(tmp_path) == {"artifacts"}


@pytest.mark.parametrize(
    ("packed", "said"),
    [
        (archive({"other": CONTENT}), "does not hold"),
        (archive({"thing": CONTENT + b"x"}), "does not hold"),
        (archive({"thing": bytes(len(CONTENT))}), "other bytes than were pinned"),
        (archive({"thing": CONTENT})[:-30], "damaged or no zip"),
        (b"<html>not found</html>", "damaged or no zip"),
        (bytes(len(CONTENT) + (1 << 20) + 1), "more than the archive can have"),
    ],
    ids=["no such member", "another size", "another content", "half of it", "a page", "too large"],
)
def test_an_archive_that_is_not_the_pinned_one_is_refused(
    packed: bytes, said: str, good: Origin, tmp_path: Path
) -> None:
    good.files["/thing.zip"] = packed
    with pytest.raises(ArtifactError, match=re.escape(said)):
        fetch(pinned(CONTENT, Url(f"{good.url}/thing.zip", unpack="thing")), tmp_path)
    assert names(tmp_path) == set()
