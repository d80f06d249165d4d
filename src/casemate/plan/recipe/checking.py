"""Whether the engine's parser takes a command: no option that it does not know, no value that it refuses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypedDict, Unpack

from rapidfuzz import fuzz, process

from casemate.finding import Severity
from casemate.plan.recipe.flags import Ambiguous, Flag, FlagTable, History, Hit, Span, dashed, numbers, refused
from casemate.plan.recipe.problem import Kind, Problem, is_secret_option
from casemate.plan.recipe.shell import Word
from casemate.plan.recipe.uses import Use, uses

_NEAR = 0.72
_A_TYPO = 0.86
_MOST_SHOWN = 60
_LONGEST = 80


class _More(TypedDict, total=False):
    value: str
    severity: Severity
    mend: tuple[str, ...] | None
    source: str


def check(argv: Sequence[str], table: FlagTable, *, history: History | None = None) -> tuple[Problem, ...]:
    """What the parser of `vllm serve` would refuse of these arguments, or warn of; empty if it takes them all.

    Args:
        argv: what stands behind `vllm serve`, the model first or as `--model`.
        table: the flags of the version that will run.
        history: where given, a flag that the version lacks is told as removed, not yet there, or never there.
    """
    return judged(uses([Word(word, 1) for word in argv], table, history=history), table, history=history)


def judged(used: Sequence[Use], table: FlagTable, *, history: History | None) -> tuple[Problem, ...]:
    """The same for arguments that are grouped already; values that only a shell could tell are not judged."""
    problems: list[Problem] = []
    model_named = any(use.name == "model" for use in used)
    for use in used:
        if not use.typed:
            problems.extend(_alone(use, table, taken=model_named))
            model_named = True
        elif (span := _taken_over(use, history)) is not None:
            problems.append(_reused(use, span, table=table))
        elif isinstance(use.meant, Ambiguous):
            problems.append(_ambiguous(use, use.meant, source=table.origin))
        elif use.meant is None:
            problems.append(_missing(use, table, history=history))
        else:
            problems.extend(_known(use, use.meant, table=table))
    return tuple(problems)


def shown(use: Use) -> str:
    """A use's value for people: short, and no secret."""
    if is_secret_option(use.name) and use.values:
        return "…"
    return use.value if len(use.value) <= _MOST_SHOWN else use.value[: _MOST_SHOWN - 1] + "…"


def nearest(name: str, table: FlagTable) -> tuple[str, float]:
    """The flag of this version that is spelled most alike, and how alike (0 to 1); an empty name if none is."""
    names = [flag.name for flag in table.flags]
    close = process.extractOne(name[:_LONGEST], names, scorer=fuzz.ratio, score_cutoff=100 * _NEAR)
    return (close[0], close[1] / 100) if close else ("", 0.0)


def _alone(use: Use, table: FlagTable, *, taken: bool) -> Iterator[Problem]:
    word = use.values[0]
    if taken and word.known and word.text != "--":
        says = "The server takes one model and no other word that stands alone; it stops with: unrecognized arguments."
        yield _problem(use, Kind.UNKNOWN, says=says, value=word.text[:_MOST_SHOWN], source=table.origin)


def _ambiguous(use: Use, meant: Ambiguous, *, source: str) -> Problem:
    says = f"It is short for several options ({', '.join(meant.names[:4])}), so the parser refuses it."
    return _problem(use, Kind.AMBIGUOUS, says=says, source=source)


def _taken_over(use: Use, history: History | None) -> Span | None:
    """The removed flag of exactly this name, where the parser now takes the word as short for others."""
    short = isinstance(use.meant, Ambiguous) or (isinstance(use.meant, Hit) and use.meant.shortened)
    spans = history.spans_of(dashed(use.typed).removeprefix("--")) if short and history else ()
    return spans[-1] if spans else None


def _reused(use: Use, span: Span, *, table: FlagTable) -> Problem:
    version = table.version or "this engine"
    says = f"It was removed: {span.last} is the last recorded version that has it;"
    if isinstance(use.meant, Hit):
        says += f" {version} takes it as short for --{use.meant.flag.name}, which means something else."
    elif isinstance(use.meant, Ambiguous):
        says += f" {version} stops at it, for it could be short for {' or '.join(use.meant.names[:3])}."
    return _problem(use, Kind.REMOVED, says=says, source=f"vllm {span.last} wheel, vllm/engine/arg_utils.py")


def _missing(use: Use, table: FlagTable, *, history: History | None) -> Problem:
    near, alike = nearest(use.name, table)
    mend = (f"--{near}", *(word.text for word in use.values)) if alike >= _A_TYPO else ()
    if mend and not _would_pass(table.get(near), use):
        mend = ()
    nearby = f" The nearest one is --{near}." if near else ""
    version = table.version or "this engine"
    if history is None:
        return _problem(
            use, Kind.UNKNOWN, says=f"{version} has no such option.{nearby}", mend=mend, source=table.origin
        )
    if use.flag and table.get(use.flag.name):
        says = f"{version} has --{use.flag.name} as a plain switch, without an opposite; leave it out to say no."
        return _problem(use, Kind.NOT_YET, says=says, source=table.origin)
    spans = history.spans_of(use.flag.name) if use.flag else ()
    if not spans:
        recorded = f"{history.versions[0]} to {history.versions[-1]}"
        says = f"No recorded version ({recorded}) has such an option; the parser stops at it.{nearby}"
        return _problem(use, Kind.NEVER, says=says, mend=mend, source=_recorded(history))
    if table.version and numbers(spans[0].first) > numbers(table.version):
        says = f"It came with {spans[0].first} or shortly before; {table.version} does not know it and stops.{nearby}"
        return _problem(use, Kind.NOT_YET, says=says, mend=(), source=f"vllm {spans[0].first} wheel")
    last = max((span.last for span in spans), key=numbers)
    says = f"It was removed: {last} is the last recorded version that has it; {version} stops at it.{nearby}"
    return _problem(use, Kind.REMOVED, says=says, mend=(), source=f"vllm {last} wheel, vllm/engine/arg_utils.py")


def _known(use: Use, meant: Hit, *, table: FlagTable) -> Iterator[Problem]:
    flag = meant.flag
    source = table.origin
    if flag.deprecated:
        says = "It still parses, and the engine warns that it will go."
        yield _problem(use, Kind.DEPRECATED, says=says, severity=Severity.LOW, source=source)
    if meant.path:
        yield from _dotted(use, flag, source=source)
    elif not flag.takes_value and use.attached:
        says = "It is a switch and takes no value; the parser stops with: ignored explicit argument."
        yield _problem(use, Kind.INVALID, says=says, mend=(use.typed,), source=source)
    elif flag.takes_value and not use.values and flag.arity not in ("?", "*"):
        yield _problem(use, Kind.INVALID, says="It needs a value and none stands behind it.", source=source)
    else:
        yield from _values(use, flag, source=source)


def _dotted(use: Use, flag: Flag, *, source: str) -> Iterator[Problem]:
    if flag.form not in ("json", "str") or not flag.takes_value:
        yield _problem(use, Kind.INVALID, says=f"--{flag.name} is no JSON option: it has no keys.", source=source)
    elif not use.values:
        yield _problem(use, Kind.INVALID, says="It needs a value and none stands behind it.", source=source)


def _values(use: Use, flag: Flag, *, source: str) -> Iterator[Problem]:
    for word in use.values:
        why = refused(flag, word.text) if word.known else ""
        if why:
            yield _problem(use, Kind.INVALID, says=f"The value {why}.", mend=_closest(flag, word.text), source=source)
            return
    if flag.values and not flag.closed and use.known and use.values and flag.name in _REGISTERED:
        plugin, value = _REGISTERED[flag.name], use.value
        if value not in flag.values and value.lower() not in ("", "none"):
            says = f"No built-in one has this name ({plugin})."
            yield _problem(use, Kind.INVALID, says=says, mend=_closest(flag, value), source=source)


_REGISTERED = {
    "tool-call-parser": "unless --tool-parser-plugin brings it",
    "reasoning-parser": "unless --reasoning-parser-plugin brings it",
    "quantization": "unless a plugin registers it",
}


def _closest(flag: Flag, value: str) -> tuple[str, ...]:
    """The option with the nearest allowed value; nothing (so that the default counts) where none is near."""
    wanted = value[:_LONGEST].lower().replace("-", "_")
    close = process.extractOne(wanted, flag.values, scorer=fuzz.ratio, score_cutoff=100 * _NEAR)
    return (f"--{flag.name}", close[0]) if close else ()


def _would_pass(flag: Flag | None, use: Use) -> bool:
    if flag is None or flag.takes_value != bool(use.values):
        return False
    return not any(refused(flag, word.text) for word in use.values if word.known)


def _recorded(history: History) -> str:
    return f"flags of {len(history.versions)} vLLM wheels, {history.versions[0]} to {history.versions[-1]}"


def _problem(use: Use, kind: Kind, *, says: str, **more: Unpack[_More]) -> Problem:
    value = more.get("value", shown(use))
    severity = more.get("severity", Severity.HIGH)
    mend, source = more.get("mend", ()), more.get("source", "")
    return Problem(kind, severity, says, source, mend, flag=use.typed, value=value, position=use.position)
