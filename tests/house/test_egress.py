"""Nothing leaves the box: the commands work in a network that has nothing but loopback, and try to reach nothing else.

Where no such network can be made the tests fail; a promise that cannot be checked is not kept.
"""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from homes import furnish
from house.source import ROOT

pytestmark = pytest.mark.slow

_WITNESS = Path(__file__).parent / "witness"
_CASEMATE = Path(sys.executable).with_name("casemate")
_CODE = "sqlite3: cursor.execute('SELECT * FROM users WHERE id = ' + user_id)"


@dataclass(frozen=True, slots=True)
class Lonely:
    """A home, and a network with no way out."""

    home: Path

    @property
    def log(self) -> Path:
        return self.home / "witness" / "egress.log"

    def run(self, *argv: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a program there to its end; `reached` then tells whom it wanted."""
        self.log.unlink(missing_ok=True)
        unshare = shutil.which("unshare")
        if unshare is None:
            pytest.fail("there is no `unshare` (util-linux), so zero egress cannot be shown")
        ran = subprocess.run(
            [unshare, "-rn", sys.executable, _WITNESS / "alone.py", *argv],
            cwd=ROOT,
            env=os.environ | {"HOME": str(self.home), "PYTHONPATH": str(self.log.parent), "EGRESS_LOG": str(self.log)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
        if ran.stderr.startswith("unshare:"):
            pytest.fail(f"no network namespace can be made here, so zero egress cannot be shown: {ran.stderr}")
        return ran

    def reached(self) -> list[Any]:
        """What the last run wanted to reach: [event, address] each, loopback left out."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [event for event in map(json.loads, lines) if not _is_loopback(event[1])]


@pytest.fixture(scope="module")
def lonely(tmp_path_factory: pytest.TempPathFactory) -> Lonely:
    found = Lonely(tmp_path_factory.mktemp("lonely"))
    found.log.parent.mkdir()
    shutil.copy(_WITNESS / "sitecustomize.py", found.log.parent)  # it writes beside itself
    return found


@pytest.fixture(scope="module")
def learned(lonely: Lonely, artifacts: Path) -> Lonely:
    """With the graph, built there from the fetched artefacts alone."""
    furnish(lonely.home / ".casemate", artifacts, lonely.home / "spare", pattern="*[!f]")  # no model: they end in gguf
    built = lonely.run(_CASEMATE, "kb", "build")
    assert built.returncode == 0, built.stderr
    assert lonely.reached() == []
    return lonely


def test_the_witness_sees_a_call_for_help_and_the_network_has_no_way_out(lonely: Lonely) -> None:
    ran = lonely.run(sys.executable, "-c", "import socket; socket.create_connection(('192.0.2.1', 80), timeout=5)")
    assert "unreachable" in ran.stderr
    assert [event for event, _ in lonely.reached()] == ["socket.getaddrinfo", "socket.connect", "kernel"]


def test_the_kernel_sees_what_no_hook_sees(lonely: Lonely) -> None:
    unseen = "import socket; s = socket.socket(socket.AF_INET6); s.connect_ex(('2001:db8::1', 80))"
    assert lonely.run(sys.executable, "-S", "-c", unseen).returncode == 0  # -S: without the hook
    assert [event for event, _ in lonely.reached()] == ["kernel"]


@pytest.mark.parametrize("unshare", ["", "#!/bin/sh\necho 'unshare: not permitted' >&2; exit 1"])
def test_where_no_such_network_can_be_made_the_promise_fails_and_is_not_skipped(
    unshare: str, lonely: Lonely, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if unshare:
        (tmp_path / "unshare").write_text(unshare)
        (tmp_path / "unshare").chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pytest.fail.Exception, match="zero egress cannot be shown"):
        lonely.run(_CASEMATE, "--help")


def test_loopback_works_there_and_does_not_count(lonely: Lonely) -> None:
    listen_and_connect = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname())"
    )
    assert lonely.run(sys.executable, "-W", "ignore", "-c", listen_and_connect).returncode == 0
    assert lonely.log.read_text()
    assert lonely.reached() == []


def test_help_reaches_nobody(lonely: Lonely) -> None:
    ran = lonely.run(_CASEMATE, "--help")
    assert (ran.returncode, lonely.reached()) == (0, []), ran.stderr
    assert "audit" in ran.stdout


def test_an_audit_reaches_nobody_and_finds_what_it_finds_anywhere(lonely: Lonely) -> None:
    ran = lonely.run(_CASEMATE, "audit", "examples/shop", "--no-model", "--format", "json")
    assert (ran.returncode, lonely.reached()) == (1, []), ran.stderr
    assert "CWE-89" in {finding["cwe"] for finding in json.loads(ran.stdout)["findings"]}


def test_a_question_about_code_reaches_nobody(lonely: Lonely) -> None:
    ran = lonely.run(_CASEMATE, "ask", _CODE, "--no-model", "--format", "json")
    assert (ran.returncode, lonely.reached()) == (1, []), ran.stderr
    assert "CWE-89" in ran.stdout


@pytest.mark.parametrize("words", ["SQL injection", "目录穿越"])
def test_a_search_of_the_graph_reaches_nobody_in_either_language(learned: Lonely, words: str) -> None:
    ran = learned.run(_CASEMATE, "kb", "search", words, "--format", "json")
    assert (ran.returncode, learned.reached()) == (0, []), ran.stderr
    assert ("CWE-89" if words.isascii() else "CWE-22") in ran.stdout


def test_the_platform_serves_page_and_answers_and_reaches_nobody(learned: Lonely) -> None:
    ran = learned.run(sys.executable, _WITNESS / "visitor.py", _CASEMATE)
    assert (ran.returncode, learned.reached()) == (0, []), ran.stderr
    seen = json.loads(ran.stdout)
    assert [seen[visit][0] for visit in ("page", "plain", "grounded")] == [200, 200, 200]
    assert seen["exit"] == 0
    assert "<h1>Casemate</h1>" in seen["page"][1]
    assert "It is CWE-89." in seen["plain"][1]
    citations = json.loads(seen["grounded"][1])["casemate"]["citations"]
    assert ("CWE-89", "H0") in [(one["id"], one["grade"]) for one in citations]


def _is_loopback(address: Any) -> bool:
    host = address[0] if isinstance(address, list) and address else address
    if host in (None, "", "localhost") or str(host).startswith(("/", "\0", "b'")):  # nobody, ourselves, a Unix socket
        return True
    try:
        return ipaddress.ip_address(str(host)).is_loopback
    except ValueError:  # a name: to be looked up is to ask somebody
        return False
