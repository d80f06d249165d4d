"""Run as `unshare -rn python alone.py PROGRAM ARGUMENT…`: brings loopback up in the new, empty network and goes on."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import sys

_SET_FLAGS = 0x8914  # SIOCSIFFLAGS
_UP_AND_RUNNING = 0x41  # IFF_UP | IFF_RUNNING

if __name__ == "__main__":
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP_AND_RUNNING))
    os.execv(sys.argv[1], sys.argv[1:])
