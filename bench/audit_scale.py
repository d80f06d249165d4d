"""How time and memory of the audit grow with the project: made ones and copies of real trees, to a million lines."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from audit_made import make
from casemate.agents.audit.incremental.store import Store
from casemate.agents.audit.scan import scan

_COLD = """
import pathlib, sys, time
from casemate.agents.audit.incremental.store import Store
from casemate.agents.audit.scan import scan
begin = time.perf_counter()
findings = scan(pathlib.Path(sys.argv[1]), store=Store(pathlib.Path(sys.argv[2]))).findings
print(time.perf_counter() - begin, len(findings))
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one run: seconds by the clock and of CPU, peak of all its processes together in bytes, findings."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    findings: int


def gather(folder: Path, trees: Sequence[Path], *, lines: int) -> int:
    """Copy Python files of real trees until there are so many lines; how many there are."""
    copied = 0
    for number, tree in enumerate(trees):
        for path in sorted(tree.rglob("*.py")):
            if copied >= lines or not path.is_file():
                break
            target = folder / f"tree{number}" / path.relative_to(tree)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            copied += path.read_bytes().count(b"\n")
    return copied


def measured(folder: Path, store: Store) -> Cost:
    """One cold audit in a process of its own; the memory of its whole tree is sampled twenty times a second."""
    before, peak = resource.getrusage(resource.RUSAGE_CHILDREN), 0
    argv = [sys.executable, "-c", _COLD, str(folder), str(store.folder)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as child:
        while child.poll() is None:
            peak = max(peak, _tree_bytes(child.pid))
            time.sleep(0.05)
        wall_s, found = (child.stdout.read() if child.stdout else "").split()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Cost(float(wall_s), used_s, peak, int(found))


def second_runs(folder: Path, store: Store) -> tuple[float, float]:
    """Seconds of another run with nothing changed, and of one with one file changed."""
    same_s = _clocked(folder, store)
    path = min(folder.rglob("*.py"))
    text = path.read_bytes()
    path.write_bytes(text + b"\n# changed\n")
    changed_s = _clocked(folder, store)
    path.write_bytes(text)
    return same_s, changed_s


def report(sizes: Sequence[int], trees: Sequence[Path]) -> None:
    """Print cost by size; of copies of `trees`, or without them of made projects."""
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder, store = Path(name) / "project", Store(Path(name) / "audits")
            lines = gather(folder, trees, lines=size) if trees else make(folder, size)
            cost = measured(folder, store)
            again = seconds(cost, second_runs(folder, store))
        print(
            f"{lines:9,} lines: {cost.wall_s:6.1f} s, {lines / cost.cpu_s:8,.0f} lines/s of CPU, "
            f"peak {cost.peak_bytes / 1e6:5.0f} MB, {cost.findings} findings; {again}",
            flush=True,
        )


def seconds(cold: Cost, later: tuple[float, float]) -> str:
    """How much faster later runs are, in words."""
    same_s, changed_s = later
    return (
        f"second run {cold.wall_s / same_s:.0f}x faster ({same_s:.2f} s), "
        f"with one file changed {cold.wall_s / changed_s:.1f}x ({changed_s:.2f} s)"
    )


def _clocked(folder: Path, store: Store) -> float:
    begin = time.perf_counter()
    scan(folder, store=store)
    return time.perf_counter() - begin


def _tree_bytes(pid: int) -> int:
    """Resident memory of a process and all below it; pages that they share count for each."""
    total, waiting = 0, [pid]
    while waiting:
        one = Path(f"/proc/{waiting.pop()}")
        try:
            total += int((one / "statm").read_text().split()[1]) * 4096
            for task in (one / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except (OSError, ValueError):
            continue
    return total
