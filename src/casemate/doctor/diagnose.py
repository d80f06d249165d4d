"""What an engine's log says went wrong: the line at the root of it, ranked findings, and the facts told on the way.

A log is read once, in constant memory. Launches are told apart; the last one that says something is judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from casemate.doctor.log.facts import EngineLog
from casemate.doctor.log.launch import Launch
from casemate.doctor.log.lines import Line, parse
from casemate.doctor.log.ranking import FAILED, LogFinding, ranked
from casemate.doctor.log.reading import Readable, pieces, text_of
from casemate.doctor.log.sentences import WORDS
from casemate.doctor.log.signatures import Sieve, Signature, signatures
from casemate.doctor.log.tracebacks import Part, Tracebacks

Verdict = Literal["failed", "healthy", "unfinished", "unknown"]
"""failed: it did not start, or died. healthy: it became ready and nothing ended it. unfinished: nothing went wrong so
far, but the log ends before the engine was ready. unknown: not a line in it is an engine's."""

_EARLIER_KEPT = 20
_CHAINS = ("traceback most recent call last", "exception direct cause following", "during handling exception occurred")
_FAILURES = (
    "error", "critical", "fatal", "exception", "valueerror", "runtimeerror", "typeerror", "keyerror", "assertionerror",
    "importerror", "oserror", "attributeerror", "notimplementederror", "indexerror", "timeouterror", "connectionerror",
    "filenotfounderror", "permissionerror", "memoryerror", "modulenotfounderror", "validationerror",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Earlier:
    """A launch before the one that is judged: where it begins, and what stands first in its findings."""

    line: int
    id: str
    cause_line: int
    quote: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A log, judged. `findings` are ranked, best first; `lines` is how many there were."""

    verdict: Verdict
    findings: tuple[LogFinding, ...]
    facts: EngineLog
    lines: int
    launches: int
    earlier: tuple[Earlier, ...] = ()
    note: str = ""

    @property
    def root(self) -> LogFinding | None:
        """The finding at the root of a failure; None where nothing failed."""
        return self.findings[0] if self.findings and self.findings[0].standing in FAILED else None


def diagnose(stream: Readable, name: str = "") -> Diagnosis:
    """Read a log to its end and judge it.

    Args:
        stream: the bytes, in any encoding that `reading` knows.
        name: what to call the log in an error.

    Raises:
        UsageError: the bytes are compressed.
    """
    reader = _Reader()
    for number, piece in pieces(stream, name):
        reader.take(number, piece)
    return reader.result()


class _Reader:
    """One pass over a log."""

    def __init__(self) -> None:
        self._signatures = signatures()
        groups = [(words, index) for index, one in enumerate(self._signatures) for words in one.words]
        self._owners = [index for _, index in groups]
        self._sieve = Sieve([words for words, _ in groups] + list(WORDS + _CHAINS + _FAILURES))
        self._first_fact = len(groups)
        self._facts = range(len(groups), len(groups) + len(WORDS))
        self._tracebacks = Tracebacks()
        self._launch = Launch(1)
        self._over: list[tuple[Earlier, tuple[LogFinding, ...], EngineLog]] = []
        self._launches = 1
        self._lines = 0

    def take(self, number: int, piece: bytes) -> None:
        """Look at one piece; most are done after the sieve."""
        self._lines = number
        groups = self._sieve(piece)
        if self._launch.crashed is not None:
            self._launch.frame(parse(number, text_of(piece)))
        if not groups and not self._tracebacks.active:
            return
        text = text_of(piece)
        line = parse(number, text)
        part = self._tracebacks.feed(line)
        if part is Part.BODY or (part is Part.OUTSIDE and not groups):
            return
        if part is Part.HEAD:
            self._launch.drop_headline(line)
            return
        raised = self._tracebacks.last if part is Part.END else None
        line = raised.line if raised else line
        if groups and groups[-1] >= self._first_fact and any(group in self._facts for group in groups):
            self._begin_anew(line)
            self._launch.note(line, text)
        self._launch.match(line, self._candidates(groups), raised=raised)

    def result(self) -> Diagnosis:
        """The judgement of what was read so far."""
        findings, facts = ranked(self._launch), self._launch.facts.result()
        verdict = _verdict(findings, self._launch, facts=facts)
        earlier = tuple(told for told, _, _ in self._over)
        note = ""
        if verdict in ("unfinished", "unknown") and self._over and _failed(self._over[-1][1]):
            _, findings, before = self._over[-1]
            note = f"the last launch (from line {self._launch.begun}) is not finished; this is the one before it"
            verdict, facts, earlier = "failed", before, earlier[:-1]
        return Diagnosis(verdict, findings, facts, self._lines, self._launches, earlier, note)

    def _candidates(self, groups: tuple[int, ...]) -> list[Signature]:
        known = len(self._owners)
        return [self._signatures[index] for index in dict.fromkeys(self._owners[one] for one in groups if one < known)]

    def _begin_anew(self, line: Line) -> None:
        if not self._launch.begins_anew(line):
            return
        findings = ranked(self._launch)
        top = findings[0] if findings else None
        told = Earlier(self._launch.begun, top.id if top else "", top.line if top else 0, top.quote if top else "")
        self._over = [*self._over, (told, findings, self._launch.facts.result())][-_EARLIER_KEPT:]
        self._launch = Launch(line.number)
        self._launches += 1


def _failed(findings: tuple[LogFinding, ...]) -> bool:
    return bool(findings) and findings[0].standing in FAILED


def _verdict(findings: tuple[LogFinding, ...], launch: Launch, *, facts: EngineLog) -> Verdict:
    if _failed(findings):
        return "failed"
    if launch.died_line is not None and launch.died_line > launch.alive_line:
        return "failed"
    if facts.ready or launch.stage == "serve":
        return "healthy"
    return "unfinished" if facts.engine or launch.stage else "unknown"
