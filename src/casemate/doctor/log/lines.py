"""One line of a log taken apart: who wrote it, at which level, from where, and what it says.

Several programs put something before the text, each in its own way: the container or the journal, the engine's
process (`(Worker_TP0_EP0 pid=1567)`, `[rank0]:`), the logger (`ERROR 11-30 12:57:06 [core.py:1330]`; up to 0.7 without
the first bracket). A progress bar that was not finished stands before the next line that another process writes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LEVELS = ("debug", "info", "warning", "error", "critical", "")
"""What `Line.level` may be; the last one means that the line names none."""

_OUTER = re.compile(
    r"""(?:[\w.-]{1,64}\s{0,20}\|\s)?                                             # docker compose
        (?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?\s{1,3})?  # container runtime
        (?:std(?:out|err)\s[FP]\s)?
        (?:[A-Z][a-z]{2}\s[\s\d]\d\s\d\d:\d\d:\d\d\s\S{1,64}\s[\w@.:-]{1,64}(?:\[\d{1,7}\])?:\s)?  # journal
        (?:\[\s{0,5}\d{1,9}\.\d{3,9}\]\s)?                                        # kernel's clock
    """,
    re.VERBOSE,
)
_PROCESS = re.compile(
    r"\((?P<name>[A-Za-z][\w.:-]{0,60})(?:\s(?P<rank>rank=\d{1,5}|[A-Z]{2}\d{1,5}))?"
    r"(?:,)?\spid=(?P<pid>\d{1,8})(?:,\sip=[^)]{1,60})?\)\s?"
)
_RANK = re.compile(r"\[rank(?P<rank>\d{1,5})\]:\s?")
_LEVEL = re.compile(
    r"""(?: (?:-\s[\w.]{1,80}\s-\s)?(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL|FATAL)
            (?: \s{1,3}\d\d-\d\d\s\d\d:\d\d:\d\d(?:\.\d{1,6})?\s
                (?:\[(?P<where>[^\]\s]{1,120})\]|(?P<old>[\w./-]{1,120}:\d{1,6})\])\s?
              | :\s{1,5}
              | \s[\w./-]{1,120}:\d{1,6}\s--\s                                       # Ray
              | \s-\s
              | :[\w.]{1,80}:
              | \s{1,4}\[[^\]]{1,120}\]\s )
          | \[(?P<letter>[IWEF])(?:\d{3,4}\s[\d:.]{8,20})?\s(?P<native>[\w./-]{1,120}:\d{1,6})\]\s?  # torch
          | \d{1,6}(?:\.\d{1,4}){3}\s(?P<short>[IWED])\s                               # llama.cpp
        )""",
    re.VERBOSE,
)
_LETTERS = {"I": "info", "W": "warning", "E": "error", "F": "critical", "D": "debug"}
_BAR = re.compile(r"\d%\|")


@dataclass(frozen=True, slots=True)
class Line:
    """A line taken apart.

    Attributes:
        number: counted from 1.
        process: `Worker_TP0_EP0 pid=1567`, `rank0`, or empty.
        level: one of LEVELS.
        where: file and line of the engine's source that logged it (`core.py:1330`), or empty.
        text: what is left, leading blanks kept: they tell a traceback's frames from its end.
    """

    number: int
    process: str
    level: str
    where: str
    text: str


def parse(number: int, text: str) -> Line:
    """Take one line apart; whatever does not look like a prefix stays in the text."""
    if text.startswith("  ") and not text.startswith("  |"):
        return Line(number, "", "", "", text)
    if "%|" in text and _BAR.search(text):
        text = _after_bar(text)
    at = _OUTER.match(text).end()  # type: ignore[union-attr] # every part of it is optional
    process = ""
    while found := _PROCESS.match(text, at) or _RANK.match(text, at):
        process = process or _named(found)
        at = found.end()
    level = _LEVEL.match(text, at)
    if level is None:
        return Line(number, process, "", "", text[at:])
    word = level["level"]
    letter = level["letter"] or level["short"]
    named = _LETTERS[letter] if word is None else word.lower().replace("fatal", "critical")
    where = level["where"] or level["old"] or level["native"] or ""
    return Line(number, process, named, where, text[level.end() :])


def _named(found: re.Match[str]) -> str:
    parts = found.groupdict()
    if "pid" not in parts:
        return f"rank{parts['rank']}"
    return " ".join(part for part in (parts["name"], parts["rank"], f"pid={parts['pid']}") if part)


def _after_bar(text: str) -> str:
    """The line that another process wrote behind an unfinished bar; the text itself where there is none."""
    begins = [found.start() for found in _PROCESS.finditer(text)]
    return text[begins[-1] :] if begins else text
