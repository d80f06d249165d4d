"""Whether the engine's parser takes a command: no option that it does not know, no value that it refuses."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TypedDict, Unpack

from rapidfuzz import fuzz, process

from casemate.finding import Severity
from casemate.plan.recipe.flags import Ambiguous, Flag, FlagTable, History, Hit, Span, dashed, numbers
from casemate.plan.recipe.masking import hidden, is_secret, masked
from casemate.plan.recipe.problem import Kind, Problem
from casemate.plan.recipe.shell import Word
from casemate.plan.recipe.uses import DASHES, TRUTHS, Use, uses
from casemate.plan.recipe.values import refused

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
        elif use.typed[0] in DASHES:
            problems.append(_typographic(use, table))
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
    typed = use.typed.lstrip("-")
    value = hidden(typed if is_secret(typed) else use.name, use.value)
    return value if len(value) <= _MOST_SHOWN else value[: _MOST_SHOWN - 1] + "…"


def nearest(name: str, table: FlagTable) -> tuple[str, float]:
    """The flag of this version that is spelled most alike, and how alike (0 to 1); an empty name if none is."""
    names = [flag.name for flag in table.flags]
    close = process.extractOne(name[:_LONGEST], names, scorer=fuzz.ratio, score_cutoff=100 * _NEAR)
    return (close[0], close[1] / 100) if close else ("", 0.0)


def _alone(use: Use, table: FlagTable, *, taken: bool) -> Iterator[Problem]:
    word = use.values[0]
    if taken and word.known and word.text != "--":
        says = "The server takes one model and no other word that stands alone; it stops with: unrecognized arguments."
        yield _problem(use, Kind.UNKNOWN, says=says, value=masked(word.text)[:_MOST_SHOWN], source=table.origin)


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
    if (known := _turned(use, table, history=history) or _joined(use, table)) is not None:
        return known
    near, alike = nearest(use.name, table)
    mend = (f"--{near}", *(word.text for word in use.values)) if alike >= _A_TYPO else ()
    if mend and (_polarity(near) != _polarity(use.name) or not _would_pass(table.get(near), use)):
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


def _turned(use: Use, table: FlagTable, *, history: History | None) -> Problem | None:
    """A `--disable-x` where the version has `--enable-x`, or the other way round: what says the same there."""
    if history and history.spans_of(use.name):
        return None  # an option of its own, once
    prefix, other = next(((one, two) for one, two in _OPPOSITES if use.name.startswith(one)), ("", ""))
    flag = table.get(other + use.name.removeprefix(prefix)) if prefix else None
    if flag is None or flag.takes_value:
        return None
    no = use.value.lower() in _NO if use.known else False
    mend = (f"--{flag.name}",) if no else flag.opposites[:1]
    newest = history.table(history.versions[-1]) if history else None
    later = newest.find(use.typed) if newest else None
    kind = Kind.NOT_YET if isinstance(later, Hit) and not later.shortened else Kind.NEVER if history else Kind.UNKNOWN
    same = f"{flag.opposites[0]} says the same" if flag.opposites else f"leave --{flag.name} out to say the same"
    says = f"{table.version or 'This engine'} has no such option and stops; {same}."
    taken = () if not use.values or use.value.lower() in _NO | _YES else tuple(word.text for word in use.values)
    return _problem(use, kind, says=says, mend=(*mend, *taken), source=table.origin)


def _joined(use: Use, table: FlagTable) -> Problem | None:
    """A short option of two letters or more with its value attached (`-tp4`), and keys behind `-O` (`-O.mode`)."""
    if use.typed.startswith("--"):
        return None
    if use.typed.startswith("-O.") and (owner := table.get("compilation-config")):
        short = next(iter(owner.aliases), f"--{owner.name}")
        mend = (f"{short}{use.typed[2:]}", *(word.text for word in use.values))
        says = f"-O sets the optimization level here, and this is none; keys of the compilation go behind {short}."
        return _problem(use, Kind.INVALID, says=says, mend=mend, source=table.origin)
    match = re.fullmatch(r"(-[a-z]{2,4}?)(\d+)", use.typed)
    hit = table.find(match[1]) if match else None
    if match is None or not isinstance(hit, Hit) or not hit.flag.takes_value:
        return None
    says = f"The value of {match[1]} needs a space before it; only options of one letter may have it attached."
    rest = tuple(word.text for word in use.values)
    mend = (f"--{hit.flag.name}", match[2], *rest)
    return _problem(use, Kind.INVALID, says=says, mend=mend, source="https://docs.python.org/3/library/argparse.html")


_OPPOSITES = (("disable-", "enable-"), ("enable-", "disable-"), ("no-", ""))


def _polarity(name: str) -> bool:
    return name.startswith(("disable-", "no-"))


def _known(use: Use, meant: Hit, *, table: FlagTable) -> Iterator[Problem]:
    flag = meant.flag
    source = table.origin
    if flag.deprecated:
        says = "It still parses, and the engine warns that it will go."
        yield _problem(use, Kind.DEPRECATED, says=says, severity=Severity.LOW, mend=None, source=source)
    if meant.path:
        yield from _dotted(use, flag, source=source)
    elif not flag.takes_value and use.values:
        yield _switched(use, meant, source=source)
    elif flag.takes_value and not use.values and flag.arity not in ("?", "*"):
        yield _problem(use, Kind.INVALID, says="It needs a value and none stands behind it.", source=source)
    else:
        yield from _values(use, flag, source=source)


def _switched(use: Use, meant: Hit, *, source: str) -> Problem:
    """A switch with a value: what was meant is the switch itself or its opposite, never the other way round."""
    flag, word = meant.flag, use.value.strip().lower()
    stops = "ignored explicit argument" if use.attached else "unrecognized arguments"
    says = f"It is a switch and takes no value; the parser stops with: {stops}."
    if word in _NO or word in _YES:
        off = (word in _NO) != meant.negated
        mend = flag.opposites[:1] if off else (f"--{flag.name}",)
        says += f" To say no it is {flag.opposites[0]}." if off and flag.opposites else ""
        says += " To say no, leave it out." if off and not flag.opposites else ""
    elif use.known:
        mend = (use.typed,)
    else:
        mend, says = (), f"{says} What the shell puts there is not known here."
    return _problem(use, Kind.INVALID, says=says, mend=mend, source=source)


_NO = frozenset({"false", "0", "no", "off"})
_YES = TRUTHS - {"false"} | {"1", "yes", "on"}


def _dotted(use: Use, flag: Flag, *, source: str) -> Iterator[Problem]:
    if flag.form not in ("json", "pairs", "str") or not flag.takes_value:
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
        if value not in flag.values and value.lower() not in ("", "none") and "." not in value:
            says = f"No built-in one has this name ({plugin})."
            yield _problem(use, Kind.INVALID, says=says, mend=_closest(flag, value), source=source)


_REGISTERED = {
    "tool-call-parser": "unless --tool-parser-plugin brings it",
    "reasoning-parser": "unless --reasoning-parser-plugin brings it",
    "distributed-executor-backend": "a class is named with its module",
    "kv-cache-dtype": "unless a plugin registers it",
    "tokenizer-mode": "unless a plugin registers it",
    "quantization": "unless a plugin registers it",
}


def _typographic(use: Use, table: FlagTable) -> Problem:
    names = sorted({unicodedata.name(letter).lower() for letter in use.typed if letter in DASHES})
    says = (
        f"It begins with a typographic dash ({', '.join(names)}), so the parser takes it for a word that stands alone."
    )
    plain = f"--{use.flag.name}" if use.flag else "--" + use.typed.lstrip(DASHES + "-")
    mend = (plain, *(word.text for word in use.values))
    return _problem(use, Kind.INVALID, says=says, mend=mend, source=table.origin)


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
