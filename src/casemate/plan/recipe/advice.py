"""What is known of single options and variables, whatever stands beside them: replacements, and what does harm."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from casemate.finding import Severity
from casemate.plan.recipe.checking import shown
from casemate.plan.recipe.flags import Ambiguous, FlagTable, dashed
from casemate.plan.recipe.problem import Kind, Problem
from casemate.plan.recipe.uses import Use

_PARSER = frozenset({Kind.UNKNOWN, Kind.AMBIGUOUS, Kind.REMOVED, Kind.NEVER, Kind.NOT_YET, Kind.DEPRECATED})
_OPPOSITE = "opposite"
_KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Advice:
    """One row: `when` says whether it is for a version that lacks the option, one that has it, or a variable.

    `pattern` is a whole value that it applies to (any where it is empty; `opposite`: the form that says no), `needs` an
    option that the version must have for it to be true, `mend` the words that stand for it, with {value}.
    """

    name: str
    when: Literal["gone", "here", "variable"]
    pattern: str
    needs: str
    kind: Kind
    severity: Severity
    mend: str
    says: str
    source: str

    def words(self, value: str) -> tuple[str, ...] | None:
        """The replacement for this value; None keeps the option as it is."""
        if self.mend == _KEEP:
            return None
        return tuple(word.replace("{value}", value) for word in self.mend.split())


def enriched(
    problems: Iterable[Problem], used: Iterable[Use], *, advice: Iterable[Advice], table: FlagTable
) -> Iterator[Problem]:
    """What the parser refuses, with the reason and replacement that are known for it."""
    known = [row for row in advice if row.when == "gone" and (not row.needs or table.get(row.needs))]
    by_position = {use.position: use for use in used}
    for problem in problems:
        use = by_position[problem.position]
        name = dashed(use.typed).lstrip("-").partition(".")[0]
        row = next((row for row in known if row.name == name and _matches(row, use)), None) if use.typed else None
        if row is None or problem.kind not in _PARSER:
            yield problem
            continue
        said = problem.says.partition(" The nearest one is ")[0]
        kind = row.kind if problem.kind is Kind.AMBIGUOUS and use.flag is None else problem.kind
        mend = row.words(use.value)
        yield replace(problem, kind=kind, says=f"{said} {row.says}", mend=mend, source=row.source or problem.source)


def harmful(used: Iterable[Use], advice: Iterable[Advice], *, table: FlagTable) -> Iterator[Problem]:
    """Options that this version has and nobody should use, or that do nothing."""
    known = [row for row in advice if row.when == "here" and (not row.needs or table.get(row.needs))]
    for use in used:
        if use.meant is None or isinstance(use.meant, Ambiguous):
            continue
        for row in known:
            if row.name == use.name and _applies(row, use):
                words = row.words(use.value)
                told = Problem(row.kind, row.severity, row.says, row.source, words)
                yield replace(told, flag=use.typed, value=shown(use), position=use.position)
                break


def _applies(row: Advice, use: Use) -> bool:
    if row.pattern == _OPPOSITE or use.negated:
        return row.pattern == _OPPOSITE and use.negated
    if use.flag is not None and use.flag.form == "float" and use.known and _is_zero(use.value):
        return False
    return not row.pattern or re.fullmatch(row.pattern, use.value, re.IGNORECASE) is not None


def _matches(row: Advice, use: Use) -> bool:
    return not row.pattern or re.fullmatch(row.pattern, use.value, re.IGNORECASE) is not None


def _is_zero(value: str) -> bool:
    return re.fullmatch(r"0*\.?0*", value) is not None
