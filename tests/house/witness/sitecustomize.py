"""Copied onto PYTHONPATH by test_egress: each Python process below writes down whom it wants to reach, beforehand."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

_ADDRESS_AT = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
    "socket.gethostbyaddr": 0,
}
_LOG = os.path.join(os.path.dirname(__file__), "egress.log")  # noqa: PTH118, PTH120 - every process pays for an import
"""Beside this file, not named in the environment: workers are started with a bare one."""


def _write_down(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _ADDRESS_AT:
        line = json.dumps([event, arguments[_ADDRESS_AT[event]]], default=repr) + "\n"
        descriptor = os.open(_LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, line.encode())
        os.close(descriptor)


sys.addaudithook(_write_down)
