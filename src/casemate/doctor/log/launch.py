"""What was seen during one launch of an engine: known failures, unknown ones, its stage, its last sign of life."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from casemate.doctor.log import sentences
from casemate.doctor.log.gathering import Facts
from casemate.doctor.log.lines import Line
from casemate.doctor.log.payload import spoken
from casemate.doctor.log.signatures import Signature
from casemate.doctor.log.tracebacks import Raised

_UNKNOWN_KEPT = 64
_PROCESSES_KEPT = 64
_NEW_LAUNCH_AFTER_LINES = 200

_STAGES = (
    ("load", re.compile(r"Starting to load model|Loading (?:safetensors|pt) checkpoint|llama_model_loader")),
    ("profile", re.compile(r"(?:Model loading|Loading model weights) took")),
    ("cache", re.compile(r"Available KV cache memory|GPU KV cache size|# (?:GPU|cuda) blocks")),
    (
        "capture",
        re.compile(
            r"Capturing CUDA graph|Capturing the model for CUDA graph|Capturing cudagraphs|Profiling CUDA graph"
        ),
    ),
    ("warm", re.compile(r"Graph capturing finished|init engine \(")),
    ("serve", re.compile(r"Application startup complete|Uvicorn running on|server is listening on")),
)
_BEGINS = re.compile(r"non-default args:|vLLM API server version|args: Namespace\(|main: build")
_BENIGN = re.compile(
    r"(?:asyncio\.(?:exceptions\.)?)?CancelledError|KeyboardInterrupt|GeneratorExit|SystemExit\b|BrokenPipeError"
    r"|ConnectionResetError|(?:starlette|uvicorn|fastapi|anyio)\b.{0,80}(?:Disconnect|EndOfStream|ClosedResource)|EOFError$"
    r"|ld\.so: object .{1,300} cannot be preloaded|Dumping (?:input data|scheduler (?:output|stats))"
)
_NO_HEAD = re.compile(
    r"\s|$|File \"|Traceback \(|frame #|#\d|\^|(?:Exception )?[Ss]tack ?[Tt]race"
    r"|The above exception was|During handling of"
)
"""What stands around an exception and never is its line: frames, markers, native stacks, the rest of a message."""
_BARE = re.compile(r"(?:[A-Za-z_]\w{0,80}\.){0,8}[A-Z]\w{0,80}(?:Error|Exception|Interrupt)\b(?:: |$)")
_DETAIL = re.compile(r"\s{1,4}(?:Value error|Assertion failed|Input should|Extra inputs|Field required)\b")
_HEADLINE_LINES = 2
_CRASH = re.compile(r"Segfault encountered|Fatal Python error: |\bSIG(?:SEGV|BUS|ILL|ABRT) received at")
_CRASH_LINES = 6
_FRAME = re.compile(r"\s{1,8}File \".{1,300}\", line \d{1,8},? in \S|\s{0,60}PC: @")
_QUIET = ("info", "debug")


@dataclass(slots=True)
class Sighting:
    """A signature's matches in one launch: the first, how many, the last before the engine died, and who wrote them."""

    signature: Signature
    line: Line
    raised: Raised | None
    count: int = 1
    last_line: int = 0
    quiet: bool = False
    mild: bool = False
    processes: set[str] = field(default_factory=set)
    groups: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unknown:
    """A failure that no signature knows: an exception's line, or a line of level ERROR."""

    line: Line
    raised: Raised | None


class Launch:
    """Gathers what belongs to one launch."""

    def __init__(self, begun: int) -> None:
        self.begun = begun
        self.facts = Facts()
        self.sightings: dict[str, Sighting] = {}
        self.unknown: list[Unknown] = []
        self.stage = ""
        self.died_line: int | None = None
        self.alive_line = 0
        self.ready_line = 0
        self.crashed: Sighting | None = None
        self._argued = 0
        self._given = ""

    def begins_anew(self, line: Line) -> bool:
        """Whether this line is the first of another launch, so that this one is over."""
        if not _BEGINS.search(line.text):
            return False
        over = self.died_line is not None or self.stage == "serve" or bool(self.sightings)
        return bool(self._argued) and (over or line.number - self._argued > _NEW_LAUNCH_AFTER_LINES)

    def note(self, line: Line, whole: str) -> None:
        """Keep what one line tells: facts, the stage, a sign of life. `whole` has its progress bar, too."""
        if _BEGINS.search(line.text):
            self._argued = line.number
            self._given = line.text if "args" in line.text else self._given
        sentences.take(self.facts, line)
        for stage, form in _STAGES:
            if form.search(whole):
                self.stage = stage
        if self.stage == "serve" and sentences.alive(line):
            self.alive_line = line.number
            self.ready_line = self.ready_line or line.number

    def match(self, line: Line, candidates: Iterable[Signature], *, raised: Raised | None) -> None:
        """Try the candidates on a line; remember what matched, or that it is a failure that nothing matched."""
        said = line if raised is not None else spoken(line)
        known = [
            hit
            for signature in candidates
            if (hit := self._try(signature, line if signature.severity == "request" else said, raised=raised))
            is not None
        ]
        if known and raised is not None and raised.asked is not None:
            self._forget(raised.asked)
        for signature, match in known:
            self._see(signature, line, found=match, raised=raised)
        if raised is not None and raised.asked is not None:
            self.unknown = [one for one in self.unknown if one.raised is not raised.asked]
        if not known and self.unknown and _DETAIL.match(line.text):
            self._detail(line)
            return
        if not known and len(self.unknown) < _UNKNOWN_KEPT and _is_failure(line, raised):
            self.unknown = [one for one in self.unknown if not _is_before(one.raised, raised)]
            self.unknown.append(Unknown(line, raised))

    def frame(self, line: Line) -> None:
        """Keep the first frame of the native stack behind a crash's line, as the code that it happened in."""
        seen = self.crashed
        if seen is None or line.number - seen.line.number > _CRASH_LINES:
            self.crashed = None
        elif _FRAME.match(line.text):
            seen.raised = Raised(seen.line, frames=line.text, code=line.text.strip(), code_line=line.number)
            self.crashed = None

    def drop_headline(self, header: Line) -> None:
        """Forget a line of level ERROR that only announces the traceback whose first line follows it."""
        last = self.unknown[-1] if self.unknown else None
        if last is not None and last.raised is None and _announces(last.line, header):
            self.unknown.pop()

    def _forget(self, asked: Raised) -> None:
        """A lookup that failed is no sighting of its own where the exception that it led to is known."""
        for id_ in [id_ for id_, seen in self.sightings.items() if seen.raised is asked and seen.count == 1]:
            del self.sightings[id_]

    def _detail(self, line: Line) -> None:
        """What a validation failed at stands in the line behind the exception's: that one is the one to show."""
        last = self.unknown[-1]
        if last.raised is not None and last.line.process == line.process and "validation error" in last.line.text:
            self.unknown[-1] = Unknown(line, replace(last.raised, line=line))

    def _try(
        self, signature: Signature, line: Line, *, raised: Raised | None
    ) -> tuple[Signature, re.Match[str]] | None:
        if line.level in _QUIET and signature.severity == "fatal" and not signature.any_level:
            return None  # prompts and settings are quoted in such lines
        found = signature.expression.search(line.text)
        if found is None or not (signature.arguments is None or signature.arguments.search(self._given)):
            return None
        if signature.frames is None and not signature.stages:
            return signature, found
        framed = signature.frames is not None and bool(signature.frames.search(_context(line, raised)))
        return (signature, found) if framed or self.stage in signature.stages else None

    def _see(self, signature: Signature, line: Line, *, found: re.Match[str], raised: Raised | None) -> None:
        mild = line.level in ("warning", *_QUIET) and raised is None
        quiet = mild and not signature.any_level
        if signature.role == "wrapper" and signature.severity == "fatal" and self.died_line is None and not quiet:
            self.died_line = line.number
        seen = self.sightings.get(signature.id)
        if seen is None or (seen.mild and not mild) or _is_before(seen.raised, raised):
            groups = {name: text for name, text in found.groupdict().items() if text}
            count = 1 if seen is None else seen.count + 1
            self.sightings[signature.id] = Sighting(
                signature, line, raised, count=count, last_line=line.number, quiet=quiet, mild=mild,
                groups=groups, processes={line.process} | (seen.processes if seen else set()),
            )  # fmt: skip
            self.crashed = self.sightings[signature.id] if _CRASH.search(line.text) else self.crashed
            return
        seen.count += 1
        if self.died_line is None or line.number <= self.died_line:
            seen.last_line = line.number
        if len(seen.processes) < _PROCESSES_KEPT:
            seen.processes.add(line.process)


def _is_before(one: Raised | None, raised: Raised | None) -> bool:
    """Whether one exception stands in the chain that ends with another."""
    while one is not None and raised is not None:
        if one is raised:
            return True
        raised = raised.cause
    return False


def _announces(line: Line, header: Line) -> bool:
    return (line.process, line.where) == (
        header.process,
        header.where,
    ) and header.number - line.number <= _HEADLINE_LINES


def _context(line: Line, raised: Raised | None) -> str:
    frames = []
    while raised is not None:
        frames.append(raised.frames)
        raised = raised.cause
    return "\n".join((*frames, line.text))


def _is_failure(line: Line, raised: Raised | None) -> bool:
    if _BENIGN.match(line.text):
        return False
    if raised is not None:
        return True
    if _NO_HEAD.match(line.text):
        return False
    return line.level in ("error", "critical") or (line.level == "" and bool(_BARE.match(line.text)))
