"""Run as `unshare -rn python alone.py PROGRAM ARGUMENT…`: brings loopback up in the new, empty network and goes on.

Afterwards it writes down what the kernel counted: packets and connections for which there was no way. That also tells
of code that no audit hook sees, such as a C library's own look-up of a name.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

_SET_FLAGS = 0x8914  # SIOCSIFFLAGS
_UP_AND_RUNNING = 0x41  # IFF_UP | IFF_RUNNING


def _without_a_way() -> int:
    names, figures = (line.split() for line in Path("/proc/net/snmp").read_text().splitlines()[:2])
    newer = dict(line.split() for line in Path("/proc/net/snmp6").read_text().splitlines())
    return int(figures[names.index("OutNoRoutes")]) + int(newer["Ip6OutNoRoutes"])


if __name__ == "__main__":
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP_AND_RUNNING))
    status = subprocess.call(sys.argv[1:])
    if count := _without_a_way():
        with Path(os.environ["EGRESS_LOG"]).open("a") as log:
            log.write(json.dumps(["kernel", f"{count} without a way"]) + "\n")
    sys.exit(status)
