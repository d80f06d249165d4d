"""From what was seen in a launch to an ordered list of findings: causes first, consequences last.

The order, best first: a known cause that was not survived and that no other finding explains; a failure that no
signature knows and a symptom, the earlier one first; what was survived; what makes it slow; failed requests; notices;
and at the end what follows from something above. Among equals the one that was near the engine's death comes first,
then the earliest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from casemate.doctor.log.facts import EngineLog
from casemate.doctor.log.figures import told
from casemate.doctor.log.launch import Launch, Sighting, Unknown
from casemate.doctor.log.lines import Line
from casemate.doctor.log.secrets import masked
from casemate.doctor.log.signatures import trends
from casemate.doctor.log.trends import advised, implied, shown

_BARE = re.compile(r"(?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt|Exit):?")
Standing = Literal["cause", "unrecognised", "symptom", "survived", "degraded", "request", "notice", "consequence"]
"""What a finding is to the launch, in the order of the list."""

STANDINGS: tuple[Standing, ...] = (
    "cause", "unrecognised", "symptom", "survived", "degraded", "request", "notice", "consequence",
)  # fmt: skip
FAILED: tuple[Standing, ...] = ("cause", "unrecognised", "symptom")
"""Standings that mean: the engine did not start, or died."""

_EXPLAINABLE: tuple[Standing, ...] = ("cause", "symptom", "survived", "degraded", "notice")

_SLOWING = ("performance", "nccl")
"""Components whose notices come before the others: they tell what a running engine pays for."""

LONGEST_QUOTE = 400
_NEAR_LINES = 3000
_FURTHER_UNKNOWN = 2
_ABSENT = "cause-not-in-log"
_LOOKUP_OF_UNKNOWN = "look the quoted line up with the engine's version; keep the lines above it"


@dataclass(frozen=True, slots=True)
class LogFinding:
    """One finding in a log.

    Attributes:
        id: of the signature or trend; `unrecognised` and `cause-not-in-log` are no signatures.
        line: of the quote, from 1; 0: no single line shows it.
        quote: the line's text, verbatim but for masked secrets and at most LONGEST_QUOTE characters.
        code: the source line that raised, where the traceback shows it, and its line number.
        process: who wrote the line; `processes`: how many wrote one like it.
        count: how many lines match; `last_line`: the last of them before the engine's death.
        detail: figures of this log.
    """

    id: str
    component: str
    severity: str
    standing: Standing
    line: int
    quote: str
    process: str
    code: str
    code_line: int
    processes: int
    count: int
    last_line: int
    detail: str
    root_cause: str
    fix: str
    verify: str
    source: tuple[str, ...]
    applies_to: str
    confidence: str


def ranked(launch: Launch) -> tuple[LogFinding, ...]:
    """The findings of one launch, best first."""
    log = launch.facts.result()
    standings = {id_: _standing(seen, launch) for id_, seen in launch.sightings.items()}
    _explain(launch, standings)
    known = [_known(seen, standings[id_], launch=launch, log=log) for id_, seen in launch.sightings.items()]
    found = [*known, *_unknown(launch, standings), *_trending(log)]
    return _without_echoes(sorted(found, key=lambda one: _key(launch, one)))


def _without_echoes(findings: list[LogFinding]) -> tuple[LogFinding, ...]:
    """Without consequences that are another reading of a line which stands above."""
    lines = {one.line for one in findings if one.standing != "consequence" and one.id != _ABSENT}
    return tuple(one for one in findings if one.standing != "consequence" or one.line not in lines)


def quote_of(line: Line) -> str:
    """A line's text as it may be shown: secrets masked, bounded."""
    text = masked(line.text.strip())
    return text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "…"


def _standing(seen: Sighting, launch: Launch) -> Standing:
    signature = seen.signature
    if signature.role == "wrapper":
        return "consequence" if signature.severity == "fatal" or launch.died_line is not None else "notice"
    if signature.needs and not any(id_ in launch.sightings for id_ in signature.needs):
        return "notice"
    if signature.severity != "fatal":
        return signature.severity
    if seen.quiet:
        return "notice"
    if _survived(seen.last_line, launch):
        return "survived"
    return "symptom" if signature.role == "symptom" else "cause"


def _survived(last_line: int, launch: Launch) -> bool:
    if last_line >= launch.alive_line:
        return False
    return launch.died_line is None or launch.died_line - last_line > _NEAR_LINES


def _explain(launch: Launch, standings: dict[str, Standing]) -> None:
    """What a standing failure explains becomes its consequence; a warning that explains one is a cause after all."""
    for id_, seen in launch.sightings.items():
        explained = [other for other in seen.signature.explains if standings.get(other) in _EXPLAINABLE]
        if standings[id_] == "notice" and seen.quiet and any(standings[other] in FAILED for other in explained):
            standings[id_] = "cause"
        if standings[id_] in _EXPLAINABLE:
            weaker = STANDINGS.index(standings[id_])
            standings.update(
                {
                    other: "consequence"
                    for other in explained
                    if STANDINGS.index(standings[other]) >= weaker or standings[id_] in FAILED
                }
            )


def _key(launch: Launch, one: LogFinding) -> tuple[int, bool, int]:
    died = launch.died_line
    far = died is not None and max(one.line, one.last_line) < died - _NEAR_LINES
    standing = (
        "unrecognised" if one.standing == "symptom" else one.standing
    )  # which of them led to the other: time tells
    aside = one.standing == "notice" and one.component not in _SLOWING
    return STANDINGS.index(standing), far or aside, one.line


def _known(seen: Sighting, standing: Standing, *, launch: Launch, log: EngineLog) -> LogFinding:
    signature, raised = seen.signature, seen.raised
    return LogFinding(
        id=signature.id,
        component=signature.component,
        severity=signature.severity,
        standing=standing,
        line=seen.line.number,
        quote=quote_of(seen.line),
        process=seen.line.process,
        code=masked(raised.code)[:LONGEST_QUOTE] if raised else "",
        code_line=raised.code_line if raised else 0,
        processes=len(seen.processes),
        count=seen.count,
        last_line=seen.last_line,
        detail=implied(signature.id, log) or told(seen, launch)[:LONGEST_QUOTE],
        root_cause=signature.root_cause,
        fix=advised(signature.id, log) or signature.fix,
        verify=signature.verify,
        source=signature.source,
        applies_to=signature.applies_to,
        confidence=signature.confidence,
    )


def _unknown(launch: Launch, standings: dict[str, Standing]) -> list[LogFinding]:
    """Failures without a signature: the best guess first, and a word where the log holds no cause at all."""
    if "cause" in standings.values():
        return []
    fatal = [one for one in launch.unknown if not (_survived(one.line.number, launch) or _is_requests(one, launch))]
    if "symptom" in standings.values():
        # A bare class name (`TimeoutError`) says less than the symptom that the chain ends in.
        fatal = [one for one in fatal if one.raised is not None and not _BARE.fullmatch(quote_of(one.line).strip())]
    if fatal:
        first = min(fatal, key=lambda one: _weight(one, launch))
        rest = [one for one in fatal if one is not first and one.raised is not None]
        return [_told(one, launch, standing="unrecognised") for one in (first, *rest[:_FURTHER_UNKNOWN])]
    died = [
        seen
        for seen in launch.sightings.values()
        if seen.signature.role == "wrapper" and seen.signature.severity == "fatal"
    ]
    if died and "symptom" not in standings.values():
        return [_without_cause(min(died, key=lambda seen: seen.line.number))]
    return [_told(one, launch, standing="survived") for one in launch.unknown[:_FURTHER_UNKNOWN]]


def _is_requests(one: Unknown, launch: Launch) -> bool:
    """Whether it is an error of one request: the front end's, while the engine served and went on."""
    front = not one.line.process or one.line.process.startswith("APIServer")
    return front and launch.died_line is None and 0 < launch.ready_line < one.line.number


def _weight(one: Unknown, launch: Launch) -> tuple[bool, bool, bool, int]:
    """Order of unknown failures: ended a traceback, near the death, not the front end's, early."""
    died = launch.died_line
    far = died is not None and one.line.number < died - _NEAR_LINES
    front = one.line.process.startswith("APIServer")
    return one.raised is None, far, front, one.line.number


def _told(one: Unknown, launch: Launch, *, standing: Standing) -> LogFinding:
    origin = one.raised.origin if one.raised else None
    line = origin.line if origin else one.line
    surfaced = f"it surfaced as line {one.line.number}: {quote_of(one.line)}" if line is not one.line else ""
    where = launch.stage and f"while the engine was in its stage `{launch.stage}`"
    return LogFinding(
        id="unrecognised",
        component="unknown",
        severity="fatal",
        standing=standing,
        line=line.number,
        quote=quote_of(line),
        process=line.process,
        code=masked(origin.code)[:LONGEST_QUOTE] if origin else "",
        code_line=origin.code_line if origin else 0,
        processes=1,
        count=1,
        last_line=line.number,
        detail="; ".join(part for part in (surfaced, where) if part),
        root_cause="no signature knows this line; it is where the failure shows first",
        fix="",
        verify=_LOOKUP_OF_UNKNOWN,
        source=(),
        applies_to="any",
        confidence="medium" if origin else "low",
    )


def _without_cause(seen: Sighting) -> LogFinding:
    return LogFinding(
        id=_ABSENT,
        component=seen.signature.component,
        severity="fatal",
        standing="unrecognised",
        line=seen.line.number,
        quote=quote_of(seen.line),
        process=seen.line.process,
        code="",
        code_line=0,
        processes=len(seen.processes),
        count=seen.count,
        last_line=seen.last_line,
        detail="",
        root_cause="this line only says that something failed before it; what failed is not in this log",
        fix="get the whole log: from the start of the launch, of every process, standard error included",
        verify="journalctl -u UNIT --since START, docker logs CONTAINER 2>&1, and dmesg -T for the kernel's side",
        source=seen.signature.source,
        applies_to="any",
        confidence="high",
    )


def _trending(log: EngineLog) -> list[LogFinding]:
    table = trends()
    return [
        LogFinding(
            id=one.id,
            component=table[one.id].component,
            severity=table[one.id].severity,
            standing="degraded" if table[one.id].severity == "degraded" else "notice",
            line=one.line,
            quote="",
            process="",
            code="",
            code_line=0,
            processes=0,
            count=1,
            last_line=one.line,
            detail=one.detail,
            root_cause=table[one.id].root_cause,
            fix=table[one.id].fix,
            verify=table[one.id].verify,
            source=table[one.id].source,
            applies_to=table[one.id].applies_to,
            confidence="high",
        )
        for one in shown(log)
    ]
