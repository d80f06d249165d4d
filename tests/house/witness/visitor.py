"""Run in the empty network as `visitor.py CASEMATE`: brings up an engine and the platform over it, visits the platform,
ends both. Prints JSON: of each visit the status and the body, and the exit status of the platform.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

_ENGINE_PORT = "8600"  # nobody else lives here, so any port is free
_ENGINE = {"CASEMATE_ENGINE_URL": f"http://127.0.0.1:{_ENGINE_PORT}", "CASEMATE_ENGINE_MODEL": "simulator"}
_QUESTION = {"messages": [{"role": "user", "content": "What is CWE-89?"}]}


@contextmanager
def _running(*argv: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(argv, env=os.environ | _ENGINE, stdout=sys.stderr) as process:
        try:
            yield process
        finally:
            process.terminate()


def _visit(url: str, body: object = None) -> tuple[int, str]:
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return reply.status, reply.read().decode()


if __name__ == "__main__":
    casemate = sys.argv[1]
    with (
        _running(casemate, "simulate", "--port", _ENGINE_PORT, "--answer", "It is CWE-89."),
        _running(casemate, "up", "--port", "0") as platform,
    ):
        ready = subprocess.check_output([casemate, "status", "--wait", "60", "--json"])
        url = json.loads(ready)["url"]
        visits = {
            "page": _visit(url),
            "plain": _visit(f"{url}/v1/chat/completions", _QUESTION),
            "grounded": _visit(f"{url}/v1/chat/completions", _QUESTION | {"casemate": {"ground": True}}),
        }
    print(json.dumps(visits | {"exit": platform.returncode}))
