"""What the command line costs: help, an audit without a model, and what an installation brings along.

    python bench/command.py

Each command runs five times as a process of its own; CPU seconds are its user and system time, the least of the five.
"""

from __future__ import annotations

import importlib.util
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CASEMATE = str(Path(sys.executable).parent / "casemate")
ROUNDS = 5


def main() -> None:
    """Print the figures beside their targets."""
    cpu_s, wall_s = cost([CASEMATE, "--help"])
    print(f"casemate --help              {cpu_s:.2f} s of CPU, {wall_s:.2f} s wall   target <= 0.30 s of CPU")
    cpu_s, wall_s = cost([CASEMATE, "audit", "examples/shop", "--no-model"])
    print(f"casemate audit examples/shop {cpu_s:.2f} s of CPU, {wall_s:.2f} s wall   target <= 2 s")
    torch = "torch is installed" if importlib.util.find_spec("torch") else "no torch"
    print(f"installation                 {torch}, {size_mb(Path(sys.prefix)):.0f} MB   target: no torch")


def cost(argv: Sequence[str]) -> tuple[float, float]:
    """Least CPU and least wall seconds of several runs."""
    runs = [_once(argv) for _ in range(ROUNDS)]
    return min(cpu for cpu, _ in runs), min(wall for _, wall in runs)


def size_mb(folder: Path) -> float:
    """Bytes on disk below a folder, in millions."""
    return sum(path.lstat().st_size for path in folder.rglob("*")) / 1e6


def _once(argv: Sequence[str]) -> tuple[float, float]:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(argv, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, ended - began


if __name__ == "__main__":
    main()
