"""Figures of `casemate doctor watch`: how often it names what limits a simulated engine, as a confusion matrix.

python bench/watch.py                 30 variants of every scenario: half tuned on, half never looked at
python bench/watch.py --seeds 100     more of them
python bench/watch.py --wrong         name every variant that was taken for something else, with its ranked suspects

Rows are what limited the engine by its own books, columns what was said. The simulator is in tests/doctor/scenarios.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from casemate.doctor.watch.bottleneck import Verdict, judge
from doctor.scenarios.classes import SCENARIOS, held_back, tuned, variant


def main() -> None:
    """Print one matrix for each half of the seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--wrong", action="store_true")
    wanted = parser.parse_args()
    half = max(1, wanted.seeds // 2)
    for title, seeds in (("tuned on", tuned(half)), ("held back", held_back(half))):
        begin = time.process_time()
        matrix, wrong = judged(seeds)
        show(title, matrix)
        print(f"  {time.process_time() - begin:.1f} s of CPU for {sum(matrix.values())} windows\n")
        for line in wrong if wanted.wrong else ():
            print(f"  {line}")


def judged(seeds: range) -> tuple[Counter[tuple[str, str]], list[str]]:
    """How often each scenario was called what, and a line for every wrong one."""
    matrix: Counter[tuple[str, str]] = Counter()
    wrong = []
    for name in SCENARIOS:
        for seed in seeds:
            verdict = judge(variant(name, seed).samples)
            matrix[name, verdict.kind] += 1
            if verdict.kind != name:
                wrong.append(f"{name} {seed}: {ranked(verdict)}")
    return matrix, wrong


def ranked(verdict: Verdict) -> str:
    """All suspects with their weights."""
    return ", ".join(f"{suspect.kind} {suspect.weight:.2f}" for suspect in verdict.suspects) or verdict.kind


def show(title: str, matrix: Counter[tuple[str, str]]) -> None:
    """The matrix, and the share on its diagonal."""
    said = [*SCENARIOS, *sorted({kind for _, kind in matrix} - set(SCENARIOS))]
    print(f"{title:<11}" + "".join(f"{name[:6]:>7}" for name in said) + "  right")
    for name in SCENARIOS:
        row = [matrix[name, kind] for kind in said]
        right = matrix[name, name] / sum(row)
        print(f"{name:<11}" + "".join(f"{count or '·':>7}" for count in row) + f"{right:7.2f}")
    right = sum(matrix[name, name] for name in SCENARIOS) / matrix.total()
    print(f"  {100 * right:.1f} % of {matrix.total()} are right")


if __name__ == "__main__":
    main()
