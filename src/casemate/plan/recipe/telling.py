"""A judged recipe as text for people and as JSON values."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from casemate.plan.recipe.judging import Judged, Report
from casemate.plan.recipe.masking import HIDDEN, shown_words
from casemate.plan.recipe.mending import command, variable
from casemate.plan.recipe.problem import Problem

_VERDICT = 14
_MOST_WORD = 200


def lines(report: Report, width: int = 100) -> Iterator[str]:
    """The command word by word with its verdicts, then the corrected one."""
    origin = report.table.version or report.table.origin
    place = report.launch.where
    yield f"against vLLM {origin}" + (f", {place}" if place else "")
    for word in report.words:
        yield from _word(word, width)
    counts = Counter(problem.severity.value for problem in report.problems)
    told = ", ".join(f"{count} {severity}" for severity, count in counts.items())
    yield f"{len(report.problems)} remarks: {told}" if report.problems else "nothing to say: every word is fine"
    if report.followed:
        yield "with that mended:"
        for problem in report.followed:
            yield from _word(Judged(f"{problem.flag} {problem.value}".strip() or "vllm serve", (problem,)), width)
    if report.open:
        yield "not to be mended by words: " + "; ".join(dict.fromkeys(problem.says for problem in report.open))
    if report.launch.around and not report.clean:
        yield f"what stands around it is left out below: {report.launch.around}"
    if not report.clean and not report.launch.skipped:
        yield "corrected:" if report.mendable else "it does not run like this; what words can mend:"
        told = command(report.corrected)
        yield from _broken(told, width)
        if HIDDEN in told:
            yield f"{HIDDEN} stands for a secret that is not repeated here"


def as_value(report: Report) -> dict[str, Any]:
    """The report as JSON values: `problems`, `words`, and `corrected` as words and as one line."""
    corrected = report.corrected
    variables = {name: variable(name, word) for name, word in corrected.environment}
    argv = list(shown_words([word.text for word in (*corrected.program, *corrected.arguments)]))
    return {
        "where": report.launch.where,
        "clean": report.clean,
        "runs": report.mendable,
        "words": [{"text": word.text, "verdict": word.verdict} for word in report.words],
        "problems": [_problem(problem) for problem in report.problems],
        "followed": [_problem(problem) for problem in report.followed],
        "open": [_problem(problem) for problem in report.open],
        "corrected": {"argv": argv, "environment": variables, "command": command(corrected)},
    }


def _problem(problem: Problem) -> dict[str, Any]:
    named = asdict(problem)
    order = ("flag", "value", "kind", "severity", "says", "source")
    kept = problem.mend is None
    return {name: named[name] for name in order} | {"replacement": None if kept else problem.replacement}


def _word(word: Judged, width: int) -> Iterator[str]:
    text = " ".join(word.text.split())
    text = text if len(text) <= _MOST_WORD else text[: _MOST_WORD - 1] + "…"
    yield f"  {word.verdict:<{_VERDICT}} {text or '(no program)'}"
    indent = " " * (_VERDICT + 5)
    for problem in word.problems:
        yield from textwrap.wrap(problem.says, max(40, width), initial_indent=indent, subsequent_indent=indent)
        if problem.source:
            yield f"{indent}see {problem.source}"


def _broken(text: str, width: int) -> Iterator[str]:
    """A command over several lines, broken before options, so that it can be pasted."""
    line = "  "
    for part in text.replace(" --", "\n--").split("\n"):
        if len(line) + len(part) + 3 > width and line.strip():
            yield line + "\\"
            line = "    "
        line += part + " "
    yield line.rstrip()
