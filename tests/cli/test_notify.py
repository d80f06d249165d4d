from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from casemate.cli import notify


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A service manager that listens where it says."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield listening


def test_a_manager_hears_that_the_platform_is_ready_and_where(manager: socket.socket) -> None:
    notify.ready("a model at http://127.0.0.1:8642")
    assert manager.recv(4096).decode().splitlines() == ["READY=1", "STATUS=a model at http://127.0.0.1:8642"]


def test_a_manager_hears_that_the_end_has_begun(manager: socket.socket) -> None:
    notify.stopping()
    assert manager.recv(4096) == b"STOPPING=1"


def test_a_name_of_several_lines_forges_no_message(manager: socket.socket) -> None:
    notify.ready("a model\nMAINPID=1")
    assert manager.recv(4096).decode().splitlines() == ["READY=1", "STATUS=a model MAINPID=1"]


def test_an_abstract_address_is_understood(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = f"casemate-{tmp_path.name}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0{name}")
        listening.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
        notify.stopping()
        assert listening.recv(4096) == b"STOPPING=1"


@pytest.mark.parametrize("address", ["", "vsock:2:1234", "/nowhere/notify", "/" + "x" * 300])
def test_without_a_manager_that_listens_nothing_happens(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    notify.ready("a model")
    notify.stopping()
