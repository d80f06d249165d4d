"""Memory as the planner predicts it beside what engines printed: every report of `tests/plan/reports.jsonl`.

python bench/plan_memory.py           all of them, and how many lie within tolerance
python bench/plan_memory.py --misses  only what lies outside
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from casemate.plan.decision import GIB

sys.path.pop(0)  # plan.py beside this file is named as the package that it needs
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from plan.reports import Comparison, compared, read

_UNITS = {"weights": "GiB", "kv": "GiB", "start": "GiB", "requests": "×"}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--misses", action="store_true")
    wanted = parser.parse_args()
    print(f"{'case':<28} {'on':<14} {'vLLM':<14} {'figure':<9} {'predicted':>10} {'measured':>10} {'error':>8}")
    right: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for report in read():
        comparison = compared(report)
        show(comparison, misses_only=wanted.misses)
        for figure in comparison.figures:
            seen[figure.name] += 1
            right[figure.name] += not figure.misses
        if report.measured.get("failed"):
            seen["refused"] += 1
            right["refused"] += not comparison.wrongly_fits
    print("within tolerance: " + ", ".join(f"{name} {right[name]}/{seen[name]}" for name in seen))


def show(comparison: Comparison, *, misses_only: bool) -> None:
    """The lines of one report."""
    report = comparison.report
    place = f"{report.id:<28} {f'{report.count}x{report.card}':<14} {report.vllm:<14}"
    for figure in comparison.figures:
        if figure.misses or not misses_only:
            values = f"{figure.predicted:>10.2f} {figure.measured:>10.2f} {figure.error:>+8.2f}"
            print(f"{place} {figure.name:<9} {values} {_UNITS[figure.name]}{'  MISS' if figure.misses else ''}")
    if report.measured.get("failed") and (comparison.wrongly_fits or not misses_only):
        spare = comparison.budget.spare_bytes / GIB
        print(f"{place} {'refused':<9} {f'spare {spare:+.2f} GiB':>21}{'  MISS' if comparison.wrongly_fits else ''}")


if __name__ == "__main__":
    main()
