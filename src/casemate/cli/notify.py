"""Tells a service manager how far the platform is, as sd_notify(3) has it. Without a manager it says nothing."""

from __future__ import annotations

import socket
from contextlib import suppress

from casemate import settings

_SOCKET = "NOTIFY_SOCKET"


def ready(status: str) -> None:
    """The engine made a token: what is ordered after this service may start. `systemctl status` shows `status`."""
    _tell(f"READY=1\nSTATUS={_one_line(status)}")


def stopping() -> None:
    """The end has begun; what follows is tidying up."""
    _tell("STOPPING=1")


def _tell(message: str) -> None:
    address = settings.of_environment([_SOCKET]).get(_SOCKET, "")
    if not address.startswith(("/", "@")):
        return
    # A name that begins with @ lies in the abstract namespace, which the kernel writes with a leading NUL.
    place = "\0" + address[1:] if address.startswith("@") else address
    # A manager that is gone must not end what it managed.
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.settimeout(1.0)
        channel.sendto(message.encode(), place)


def _one_line(text: str) -> str:
    return " ".join(text.split())
