"""Scores engines on a labelled set: folders, each a small program with a `label.json`.

A label has `kind`, `cwe`, `vulnerable`, `pair`, `file`, `line`. An engine calls a program vulnerable if one of its
findings there has a CWE of the kind's family; the families are the same for every engine.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import mean, median, quantiles

from audit_engines import Found, Ran

_FAMILIES: Mapping[str, str] = {
    "code-injection": "94 95 96",
    "command-injection": "77 78 88",
    "cookie-flags": "614 1004 1275",
    "csrf-off": "352",
    "debug-on": "489 215 94",
    "deserialisation": "502 20",
    "hard-coded-secret": "798 259 321",
    "header-injection": "113 93",
    "jwt-unverified": "347 345 287",
    "ldap-injection": "90",
    "log-injection": "117 93",
    "mass-assignment": "915",
    "missing-authorisation": "306 862 863 285 284",
    "nosql-injection": "943 89",
    "open-redirect": "601",
    "path-traversal": "22 23 36 73",
    "redos": "1333 400",
    "resource-exhaustion": "400 409 770 789 776",
    "sql-injection": "89 564",
    "ssrf": "918",
    "temp-files-and-permissions": "377 378 379 732 276",
    "template-injection": "1336 94",
    "timing-compare": "208 203",
    "tls-verification-off": "295 297",
    "trust-boundary": "501",
    "unrestricted-upload": "434",
    "weak-cipher": "327 326",
    "weak-hash": "327 328 916",
    "weak-key-size": "326",
    "weak-mode": "327 329 323 1204",
    "weak-randomness": "330 331 337 338",
    "xpath-injection": "643 91",
    "xss": "79 80",
    "xxe": "611 776 20",
    "zip-slip": "22 23",
}
"""CWE numbers that count as naming the kind; engines choose among parents, children and neighbours."""
_Z = 1.96
_RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Program:
    """One labelled program; `pair` joins a vulnerable one and its look-alike."""

    folder: str
    kind: str
    cwe: str
    vulnerable: bool
    pair: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Score:
    """Of some programs: flagged among vulnerable ones and among safe ones, with both totals."""

    hits: int
    bad: int
    alarms: int
    good: int

    @property
    def youden(self) -> float:
        """True positive rate minus false positive rate."""
        return self.hits / max(self.bad, 1) - self.alarms / max(self.good, 1)

    @property
    def mcc(self) -> float:
        """Matthews correlation; 0 where it is not defined."""
        missed, quiet = self.bad - self.hits, self.good - self.alarms
        product = (self.hits + self.alarms) * self.bad * self.good * (quiet + missed)
        return (self.hits * quiet - self.alarms * missed) / sqrt(product) if product else 0.0


def labelled(folder: Path) -> list[Program]:
    """The labels of a set."""
    programs = []
    for path in sorted(folder.glob("*/label.json")):
        label = json.loads(path.read_text())
        facts = (label[key] for key in ("kind", "cwe", "vulnerable", "pair", "file", "line"))
        programs.append(Program(path.parent.name, *facts))
    return programs


def unpacked(lines: Path, folder: Path) -> Path:
    """A set kept as JSON lines (`id`, `files` and the label) as folders below `folder`, which it gives back."""
    for line in filter(None, lines.read_text(encoding="utf-8").split("\n")):
        program = json.loads(line)
        for name, text in (*program.pop("files").items(), ("label.json", json.dumps(program))):
            path = folder / program["id"] / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
    return folder


def report(programs: Sequence[Program], ran: Ran, *, kinds: bool = True) -> None:
    """Print an engine's score by kind and over all."""
    flagged = {program.folder: _matching(program, ran.findings) for program in programs}
    groups: dict[str, list[Program]] = defaultdict(list)
    for program in programs:
        groups[program.kind].append(program)
    print(f"\n{ran.name}: {len(ran.findings)} findings, {ran.cpu_s:.1f} s of CPU")
    for kind, group in sorted(groups.items()) if kinds else ():
        score = _score(group, flagged)
        print(
            f"  {kind:28} TPR {_rate(score.hits, score.bad)}  FPR {_rate(score.alarms, score.good)}"
            f"  Youden {score.youden:5.2f}"
        )
    _overall(programs, groups, flagged=flagged)


def _overall(
    programs: Sequence[Program], groups: Mapping[str, list[Program]], *, flagged: Mapping[str, list[Found]]
) -> None:
    score = _score(programs, flagged)
    macro = mean(_score(group, flagged).youden for group in groups.values())
    low, high = _bootstrap(groups, flagged)
    right, pairs = _pairs_right(programs, flagged)
    worst = min(groups, key=lambda kind: _score(groups[kind], flagged).youden)
    print(f"  all: TPR {_rate(score.hits, score.bad)}  FPR {_rate(score.alarms, score.good)}  MCC {score.mcc:.2f}")
    print(f"  macro-Youden {macro:.3f} (95 %: {low:.3f} to {high:.3f}, pairs resampled), worst kind {worst}")
    print(f"  pairs right {_rate(right, pairs)}")
    errors = [
        min(abs(found.line - program.line) for found in flagged[program.folder])
        for program in programs
        if program.vulnerable and flagged[program.folder]
    ]
    if errors:
        exact = sum(not error for error in errors)
        print(f"  line error: median {median(errors):.0f}, exact {_rate(exact, len(errors))}")


def _matching(program: Program, findings: Iterable[Found]) -> list[Found]:
    family = {f"CWE-{number}" for number in _FAMILIES.get(program.kind, "").split()} | {program.cwe}
    return [found for found in findings if found.path.startswith(f"{program.folder}/") and found.cwe in family]


def _score(programs: Iterable[Program], flagged: Mapping[str, list[Found]]) -> Score:
    bad = [program for program in programs if program.vulnerable]
    good = [program for program in programs if not program.vulnerable]
    return Score(
        sum(bool(flagged[program.folder]) for program in bad),
        len(bad),
        sum(bool(flagged[program.folder]) for program in good),
        len(good),
    )


def _pairs(programs: Iterable[Program]) -> list[list[Program]]:
    pairs: dict[str, list[Program]] = defaultdict(list)
    for program in programs:
        pairs[program.pair].append(program)
    return list(pairs.values())


def _pairs_right(programs: Iterable[Program], flagged: Mapping[str, list[Found]]) -> tuple[int, int]:
    pairs = _pairs(programs)
    right = sum(all(bool(flagged[one.folder]) == one.vulnerable for one in pair) for pair in pairs)
    return right, len(pairs)


def _bootstrap(groups: Mapping[str, list[Program]], flagged: Mapping[str, list[Found]]) -> tuple[float, float]:
    """The middle 95 % of macro-Youden when the pairs of each kind are drawn anew."""
    chance = random.Random(5)
    scores = [[(_score(pair, flagged)) for pair in _pairs(group)] for group in groups.values()]
    macros = []
    for _ in range(_RESAMPLES):
        drawn = [chance.choices(pairs, k=len(pairs)) for pairs in scores]
        macros.append(mean(_sum(pairs).youden for pairs in drawn))
    cuts = quantiles(macros, n=40)
    return cuts[0], cuts[-1]


def _sum(scores: Sequence[Score]) -> Score:
    return Score(
        sum(score.hits for score in scores),
        sum(score.bad for score in scores),
        sum(score.alarms for score in scores),
        sum(score.good for score in scores),
    )


def _rate(count: int, total: int) -> str:
    """A share with its Wilson interval of 95 %."""
    if not total:
        return "-"
    share, spread = count / total, _Z * _Z / total
    centre = (share + spread / 2) / (1 + spread)
    half = _Z * sqrt(share * (1 - share) / total + spread / (4 * total)) / (1 + spread)
    return f"{share:.2f} ({max(0.0, centre - half):.2f}-{min(1.0, centre + half):.2f}, {count}/{total})"
