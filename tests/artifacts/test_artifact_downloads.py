from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from artifacts import origin as world
from artifacts.origin import Origin, closed_port, listening
from casemate.artifacts.partial import Progress
from casemate.artifacts.url import Caution, Patience, download
from casemate.errors import ArtifactError

CONTENT = bytes(range(256)) * 5000
HURRIED = Patience(answer_s=1, silence_s=1, window_s=0.5, floor_bytes_per_s=1 << 16)
Greeting = Callable[[socket.socket, threading.Event], None]


def had(address: str, path: Path, *, most_bytes: int = 1 << 30, forbidden: str = "") -> list[Progress]:
    seen: list[Progress] = []
    caution = Caution(most_bytes, lambda host: host == forbidden)
    download(address, path, caution=caution, patience=HURRIED, observer=seen.append)
    return seen


def test_what_an_address_sends_is_written_and_told(tmp_path: Path) -> None:
    with Origin({"/thing": CONTENT}).serving() as origin:
        seen = had(f"{origin.url}/thing", tmp_path / "thing")
    assert (tmp_path / "thing").read_bytes() == CONTENT
    assert seen[-1] == Progress("thing", "127.0.0.1", len(CONTENT), len(CONTENT))


def test_a_redirect_on_the_same_host_is_followed(tmp_path: Path) -> None:
    with Origin({"/new": CONTENT}, redirects={"/old": "/new"}).serving() as origin:
        had(f"{origin.url}/old", tmp_path / "thing")
    assert (tmp_path / "thing").read_bytes() == CONTENT


def test_a_redirect_to_another_host_is_refused_and_never_asked(tmp_path: Path) -> None:
    with (
        Origin({"/thing": CONTENT}).serving() as other,
        Origin({}, redirects={"/thing": f"{other.url}/thing"}).serving() as origin,
    ):
        with pytest.raises(ArtifactError, match="a redirect leads away, to 127"):
            had(f"{origin.url}/thing", tmp_path / "thing")
        assert other.asked == []


def test_a_redirect_to_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("mine")
    with (
        Origin({}, redirects={"/thing": f"file://{tmp_path}/secret"}).serving() as origin,
        pytest.raises(ArtifactError),
    ):
        had(f"{origin.url}/thing", tmp_path / "thing")
    assert not (tmp_path / "thing").exists()


def test_a_forbidden_address_is_given_up_before_a_request_is_sent(tmp_path: Path) -> None:
    with Origin({"/thing": CONTENT}).serving() as origin:
        with pytest.raises(ArtifactError, match="link-local"):
            had(f"{origin.url}/thing", tmp_path / "thing", forbidden="127.0.0.1")
        assert origin.asked == []


def test_more_bytes_than_are_allowed_are_refused_announced_or_not(tmp_path: Path) -> None:
    with Origin({"/thing": CONTENT}).serving() as origin, pytest.raises(ArtifactError, match="sends more than 1 MiB"):
        had(f"{origin.url}/thing", tmp_path / "thing", most_bytes=1 << 20)

    def endless(caller: socket.socket, over: threading.Event) -> None:
        caller.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        while not over.is_set():
            caller.sendall(b"x" * 65536)

    with listening(endless) as address, pytest.raises(ArtifactError, match="sends more than 1 MiB"):
        had(address, tmp_path / "endless", most_bytes=1 << 20)


def test_a_body_that_breaks_off_is_refused(tmp_path: Path) -> None:
    with Origin({"/thing": CONTENT}, cut_at=1000).serving() as origin, pytest.raises(ArtifactError, match="broke off"):
        had(f"{origin.url}/thing", tmp_path / "thing")


@pytest.mark.parametrize("greet", [world.silent, world.head_by_drops, world.body_by_drops, world.falls_silent])
def test_an_address_that_does_not_come_to_an_end_is_given_up(greet: Greeting, tmp_path: Path) -> None:
    with listening(greet) as address, pytest.raises(ArtifactError):
        had(address, tmp_path / "thing")


def test_a_closed_port_and_a_missing_page_are_told(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="could not be reached"):
        had(closed_port(), tmp_path / "thing")
    with Origin({}).serving() as origin, pytest.raises(ArtifactError, match="answered 404"):
        had(f"{origin.url}/thing", tmp_path / "thing")
