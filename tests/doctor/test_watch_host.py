from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from casemate.doctor.watch.host import Host
from casemate.doctor.watch.log_tail import LogTail
from casemate.errors import UsageError

LISTENER = """
import socket, sys, subprocess
server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen()
child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
print(server.getsockname()[1], child.pid, flush=True)
sys.stdin.read(); child.kill(); child.wait()
"""


def stat(pid: int, name: str, *, parent: int = 1, ticks: int = 0, faults: int = 0, children: int = 0) -> str:
    fields = ["S", parent, 0, 0, 0, 0, 0, faults, 0, 0, 0, ticks, 0, children, 0, 0, 0, 1, 0, 500]
    return f"{pid} ({name}) " + " ".join(map(str, fields))


class Tree:
    """A made-up `/proc`: one process a line of `put`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "proc").mkdir()
        self.cpu(0, 0)
        (root / "proc/meminfo").write_text("MemTotal: 100 kB\nMemAvailable: 40 kB\n")

    def cpu(self, busy: int, idle: int) -> None:
        (self.root / "proc/stat").write_text(f"cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1 1 1 1\n")

    def put(self, pid: int, name: str, *, argv: str = "", **facts: int) -> None:
        folder = self.root / "proc" / str(pid)
        (folder / "task" / str(pid)).mkdir(parents=True, exist_ok=True)
        (folder / "stat").write_text(stat(pid, name, **facts))
        (folder / "task" / str(pid) / "stat").write_text(stat(pid, name, **facts))
        (folder / "cmdline").write_text(argv.replace(" ", "\0") + "\0")


def test_the_family_on_the_cards_is_told_with_its_compilers_children_and_first_touches(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.put(10, "engine core) x", parent=1, argv="vllm serve m --max-num-seqs 64 --port 8000")
    tree.put(11, "worker", parent=10)
    tree.put(99, "somebody", parent=1, ticks=1)
    host = Host(root=tmp_path)
    host.sample([10])
    tree.cpu(50, 50)
    tree.put(
        10, "engine core) x", parent=1, ticks=500, faults=9_000_000, children=300, argv="vllm serve m --max-num-seqs 64"
    )
    tree.put(12, "ptxas", parent=11)
    tree.put(99, "somebody", parent=1, ticks=100_000)
    found = host.sample([10])
    assert found.busy == 0.5
    assert found.memory_available_bytes == 40 * 1024
    assert {(worker.pid, worker.name) for worker in found.workers} == {(10, "engine core) x"), (11, "worker")}
    assert found.compilers == 1
    assert found.children_cores is not None
    assert found.children_cores > 1
    assert found.faults_per_s is not None
    assert found.faults_per_s > 1000
    assert found.max_num_seqs == 64


@pytest.mark.parametrize(
    ("argv", "seats"),
    [
        ("x --max-num-seqs=8", 8),
        ("x --max_num_seqs 8", 8),
        ("llama-server -np 4", 4),
        ("x --parallel 4", 4),
        ("x --max-num-seqs eight", None),
        ("x", None),
    ],
)
def test_the_limit_of_requests_stands_on_the_command_line_in_either_form(
    argv: str, seats: int | None, tmp_path: Path
) -> None:
    tree = Tree(tmp_path)
    tree.put(10, "engine", argv=argv)
    assert Host(root=tmp_path).sample([10]).max_num_seqs == seats


def test_a_host_that_shows_no_engine_says_nothing_of_one(tmp_path: Path) -> None:
    Tree(tmp_path)
    found = Host(root=tmp_path).sample([12345])
    assert (found.workers, found.compilers, found.children_cores, found.faults_per_s) == ((), None, None, None)
    assert Host(root=tmp_path / "nothing").sample().busy is None


def test_a_number_that_was_given_to_another_process_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.put(10, "engine", ticks=9000)
    host = Host(root=tmp_path)
    host.sample([10])
    folder = tmp_path / "proc/10"
    (folder / "stat").write_text(stat(10, "other", ticks=5).rsplit(" ", 1)[0] + " 777")
    assert host.sample([10]).workers == ()


def test_whoever_listens_at_the_port_and_what_it_started_are_the_engine() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LISTENER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        port, child = map(int, server.stdout.readline().split())
        host = Host(port=port)
        host.sample()
        time.sleep(0.5)
        found = host.sample()
        server.communicate("")
    workers = {worker.pid: worker for worker in found.workers}
    assert set(workers) == {server.pid, child}
    assert workers[server.pid].serves
    assert not workers[child].serves
    assert workers[child].cores > 0.05, "it spins, as far as this host lets it"
    assert found.faults_per_s is not None
    assert found.faults_per_s < 1000, "spinning touches no new page"


def test_a_real_compiler_touches_new_pages_by_the_thousand(tmp_path: Path) -> None:
    """What tells compiling inside a process from spinning: here Python's own compiler stands for the others."""
    source = "s = '\\n'.join(f'def f{i}(a): return [a + {i}, {{a: {i}}}]' for i in range(4000))"
    work = f"{source}\nwhile True: keep = compile(s, '', 'exec')"
    with subprocess.Popen([sys.executable, "-c", work]) as child:
        host = Host()
        time.sleep(0.3)
        host.sample([child.pid])
        time.sleep(0.8)
        found = host.sample([child.pid])
        child.kill()
    assert found.faults_per_s is not None
    assert found.faults_per_s > 1000


def test_a_log_is_followed_from_its_end_through_rotation(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_text("WARNING Triton kernel JIT compilation during inference: old_kernel.\n")
    tail = LogTail(log)
    assert tail.sample().compile_lines == 0, "an old line accuses nobody"
    with log.open("a") as file:
        file.write("WARNING Triton kernel JIT compilation during inference: a.\n")
        file.write("TileLang begins to compile kernel `b`\nhalf a li")
    found = tail.sample()
    assert (found.compile_lines, found.compiling) == (2, True)
    with log.open("a") as file:
        file.write("ne\nTileLang completes to compile kernel `b`\n")
    assert tail.sample().compiling is False
    log.rename(tmp_path / "engine.log.1")
    log.write_text("DeepGEMM JIT compiling x\r")
    assert tail.sample().compile_lines == 1
    log.unlink()
    assert tail.sample().compile_lines == 0


def test_a_log_that_cannot_be_read_is_a_wrong_request(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        LogTail(tmp_path / "none.log")
    with pytest.raises(UsageError, match="cannot be read"):
        LogTail(tmp_path)


def test_an_own_port_is_found_by_its_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = Host(port=server.getsockname()[1])
        found.sample()
        assert os.getpid() in {worker.pid for worker in found.sample().workers}
