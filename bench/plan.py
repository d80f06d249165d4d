"""Figures of the planner: predicted beside measured.

python bench/plan.py                        speed: the public measurements that its constants were fitted to
python bench/plan.py --speeds FILE          another file of the same format, e.g. measurements of one's own cards
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

sys.path.pop(0)  # this file is named as the package that it needs
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from plan.speeds import TUNING, Compared, compared, load

USEFUL = 0.25


def main() -> None:
    """Print the figures, one section after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--speeds", type=Path, default=TUNING)
    wanted = parser.parse_args()
    speeds(wanted.speeds)


def speeds(path: Path) -> None:
    """Every measured speed beside the predicted one with its band, then how near and how often within, by figure."""
    found = [compared(measured) for measured in load(path)]
    print(f"speed: {len(found)} figures of {len({case.measured.source for case in found})} sources ({path.name})")
    for case in found:
        outside = "" if case.is_within else "  outside"
        print(
            f"{case.measured.name:66} measured {case.measured.value:9.2f}"
            f"  predicted {case.predicted:9.2f} ±{case.band:3.0%}  {case.error:+5.0%}{outside}"
        )
    for figure in sorted({case.measured.figure for case in found}):
        summed(figure, [case for case in found if case.measured.figure == figure])
    summed("all", found)


def summed(figure: str, cases: list[Compared]) -> None:
    """One line of statistics."""
    errors = [abs(case.error) for case in cases]
    print(
        f"{figure:8} {len(cases):3} figures, off by {statistics.median(errors):.0%} (median), "
        f"{sum(error <= USEFUL for error in errors) / len(cases):.0%} within {USEFUL:.0%}, "
        f"{sum(case.is_within for case in cases) / len(cases):.0%} within the stated band"
    )


if __name__ == "__main__":
    main()
