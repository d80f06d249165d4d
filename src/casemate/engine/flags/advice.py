"""The table of what is known of single options, as it ships; the texts are ours, their sources stand beside them."""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources
from typing import Literal, cast

from casemate.finding import Severity
from casemate.plan.recipe.advice import Advice
from casemate.plan.recipe.problem import Kind

_FILE = "advice.tsv"


@cache
def advice() -> tuple[Advice, ...]:
    """Every row, in the order of the file: the first that applies counts."""
    text = (resources.files(__package__) / _FILE).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True)
    return tuple(
        Advice(
            name=row["name"],
            when=cast('Literal["gone", "here", "variable"]', row["when"]),
            pattern=row["pattern"],
            needs=row["needs"],
            kind=Kind(row["kind"]),
            severity=Severity(row["severity"]),
            mend=row["mend"],
            says=row["says"],
            source=row["source"],
        )
        for row in rows
    )
