"""Engines that look for weaknesses in Python, run on the same files: what each found by CWE, and its CPU time.

Nothing of them is installed with Casemate; each is found by a path that the caller gives.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casemate.agents.audit.reading.files import summaries
from casemate.agents.audit.reading.material import walk
from casemate.agents.audit.rules import RULES
from casemate.agents.audit.scan import linked

_PYSA = {
    "CWE-78 CWE-94": (5001, 5041, 5301, 6064, 6065, 5364, 5365),
    "CWE-918": (5012, 5053),
    "CWE-89": (5005, 5051, 5305, 5351),
    "CWE-79": (5008, 5052, 5308, 5352),
    "CWE-22": (5011, 6060, 6108),
    "CWE-601": (5018,),
    "CWE-113": (5029,),
    "CWE-502": (5067, 5366, 5367, 6066),
    "CWE-611": (5007, 5307),
    "CWE-798": (6074,),
    "CWE-90": (6303,),
    "CWE-1336": (5034, 5373, 6073),
}
"""What the rules of these numbers in pysa's own configuration stand for; it names no CWE itself."""


@dataclass(frozen=True, slots=True)
class Found:
    """One finding: path below the audited folder, line from 1, canonical CWE id (`CWE-89`)."""

    path: str
    line: int
    cwe: str


@dataclass(frozen=True, slots=True)
class Ran:
    """What an engine found, and what it took: seconds of CPU with all its children, seconds by the clock."""

    name: str
    findings: tuple[Found, ...]
    cpu_s: float
    wall_s: float


def casemate(folder: Path) -> Ran:
    """Casemate's front on each folder below as a program of its own, in this process."""
    begin, used = time.perf_counter(), time.process_time()
    found: list[Found] = []
    for program in sorted(path for path in folder.iterdir() if path.is_dir()):
        outcomes = summaries(str(program), walk(program).files)
        reached, _ = linked([outcome for outcome in outcomes if not isinstance(outcome, str)])
        found += [
            Found(f"{program.name}/{real.hit.location.path}", real.hit.location.line, RULES[real.hit.rule].cwe)
            for real in reached
        ]
    return Ran("casemate", tuple(found), time.process_time() - used, time.perf_counter() - begin)


def bandit(program: str, paths: Sequence[Path], *, below: Path) -> Ran:
    """Bandit with all its tests, on files or folders."""
    argv = [program, "--quiet", "--format", "json", "--recursive", *map(str, paths)]
    answer, cpu_s, wall_s = _timed(argv)
    found = [
        Found(_below(row["filename"], below), row["line_number"], f"CWE-{row['issue_cwe'].get('id', 0)}")
        for row in answer["results"]
    ]
    return Ran("bandit", tuple(found), cpu_s, wall_s)


def semgrep(program: str, paths: Sequence[Path], *, rules: Path, below: Path) -> Ran:
    """Semgrep's open engine with the rules of a folder; nothing is fetched or sent."""
    argv = [program, "scan", "--metrics", "off", "--disable-version-check", "--no-git-ignore", "--json", "--quiet"]
    answer, cpu_s, wall_s = _timed([*argv, "--config", str(rules), *map(str, paths)])
    found = [
        Found(_below(row["path"], below), row["start"]["line"], cwe)
        for row in answer["results"]
        for cwe in _cwes(row["extra"]["metadata"].get("cwe", ""))
    ]
    return Ran("semgrep", tuple(found), cpu_s, wall_s)


def pysa(errors: Path, *, below: str) -> Ran:
    """What `pyre analyze --save-results-to` left in `errors.json`; pysa wants a project set up for it first.

    Args:
        errors: the file.
        below: the prefix of its paths that is cut.
    """
    rows = json.loads(errors.read_text())
    found = [
        Found(row["path"].removeprefix(below).lstrip("/"), row["line"], cwe)
        for row in rows
        for told, codes in _PYSA.items()
        for cwe in told.split()
        if row["code"] in codes
    ]
    return Ran("pysa", tuple(found), 0.0, 0.0)


def _timed(argv: list[str]) -> tuple[Any, float, float]:
    """The JSON that a program prints, CPU seconds of it and its children, seconds by the clock."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    path = os.pathsep.join((str(Path(argv[0]).parent), os.environ.get("PATH", "")))
    finished = subprocess.run(argv, capture_output=True, check=False, env={**os.environ, "PATH": path})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return json.loads(finished.stdout), used_s, time.perf_counter() - begin


def _cwes(told: str | list[str]) -> list[str]:
    text = told if isinstance(told, str) else " ".join(told)
    return sorted(set(re.findall(r"CWE-\d+", text)))


def _below(path: str, folder: Path) -> str:
    return Path(path).resolve().relative_to(folder.resolve()).as_posix()
