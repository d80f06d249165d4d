"""The command-line flags of one engine version as values, how a word is looked up in them, and what a value must be.

The rules are those of vLLM's parser: argparse with underscores for dashes, unambiguous prefixes, `--no-` pairs, and
JSON flags whose keys may be given one by one (`--compilation-config.mode 3`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Form = Literal["switch", "pair", "twin", "int", "float", "size", "length", "bool", "json", "word", "str"]
"""What a flag takes: nothing (`switch`; `pair` also as `--no-…`, `twin` also with enable and disable exchanged, which
vLLM pairs since 0.33.0), a number (`size`: 2k, 8M; `length`: also -1 and
auto), true or false, JSON, one of its values in any spelling (`word`), or text."""
Arity = Literal["", "?", "+", "*"]
"""How many values: one (empty), none or one, one or more, any number."""

_SIZE = re.compile(r"\d+(?:\.\d+)?[kmgtKMGT]?")
_HUMAN = re.compile(r'("(?:[^"\\]|\\.)*")|\b(\d+(?:\.\d+)?)[kmgtKMGT]\b')
_NUMBER = re.compile(r"-\d+|-\d*\.\d+")
_LEVEL = re.compile(r"-O=?(?P<level>\w+)")


@dataclass(frozen=True, slots=True)
class Flag:
    """One option. `name` is its long name without dashes in front, as the engine's help shows it.

    Attributes:
        aliases: other spellings as they are typed (`-tp`, `--device-memory-utilization`).
        values: what may stand behind it; with `closed` false these are the built-in ones and a plugin may bring more.
        default: as text; empty where it is not static.
    """

    name: str
    form: Form = "str"
    arity: Arity = ""
    aliases: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    closed: bool = False
    default: str = ""
    deprecated: bool = False

    @property
    def takes_value(self) -> bool:
        """Whether a value may follow."""
        return self.form not in ("switch", "pair", "twin")

    @property
    def opposites(self) -> tuple[str, ...]:
        """The spellings that say no, as they are typed."""
        if self.form not in ("pair", "twin"):
            return ()
        plain = f"--no-{self.name}"
        for one, other in (("enable-", "disable-"), ("disable-", "enable-")):
            if self.form == "twin" and self.name.startswith(one):
                return (plain, f"--{other}{self.name.removeprefix(one)}")
        return (plain,)


@dataclass(frozen=True, slots=True)
class Hit:
    """What a typed word stands for: the flag, whether its `--no-` twin was meant, and the JSON keys behind a dot."""

    flag: Flag
    negated: bool = False
    path: tuple[str, ...] = ()
    shortened: bool = False
    attached: str | None = None
    """A value inside the word itself, as in `-O3`."""


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """A prefix of several flags; the parser refuses it."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FlagTable:
    """The flags of one engine version.

    `modules` are its programs that start a server (`vllm.entrypoints.openai.api_server`), `variables` the environment
    variables that it reads; both empty where they are not known. `origin` tells where the table comes from.
    """

    version: str
    flags: tuple[Flag, ...]
    modules: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    origin: str = ""
    _spelled: dict[str, tuple[Flag, bool]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for flag in self.flags:
            self._spelled.update(dict.fromkeys(flag.opposites, (flag, True)))
        for flag in self.flags:
            self._spelled.update(dict.fromkeys((*flag.aliases, f"--{flag.name}"), (flag, False)))

    def get(self, name: str) -> Flag | None:
        """The flag of that long name (no dashes in front), None where this version has none."""
        spelled = self._spelled.get(f"--{name}")
        return spelled[0] if spelled and not spelled[1] else None

    def find(self, typed: str) -> Hit | Ambiguous | None:
        """What a typed option means, as the engine's parser would take it; no value may be attached by `=`."""
        word, *path = dashed(typed).split(".") if typed.startswith("-") else [typed]
        if word in self._spelled:
            flag, negated = self._spelled[word]
            return Hit(flag, negated, tuple(path))
        if level := _LEVEL.fullmatch(word):
            owner = self.get("optimization-level") or self.get("compilation-config")
            return Hit(owner, attached=level["level"]) if owner else None
        return self._shortened(word, tuple(path))

    def _shortened(self, word: str, path: tuple[str, ...]) -> Hit | Ambiguous | None:
        if not word.startswith("--") or len(word) < 4:
            return None
        candidates = sorted(spelled for spelled in self._spelled if spelled.startswith(word))
        if len(candidates) > 1:
            return Ambiguous(tuple(candidates))
        if not candidates:
            return None
        flag, negated = self._spelled[candidates[0]]
        return Hit(flag, negated, path, shortened=True)


@dataclass(frozen=True, slots=True)
class Span:
    """A flag as it was from one recorded version to another, both included."""

    flag: Flag
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class History:
    """What is recorded of every version: oldest first. It can say what became of a flag."""

    versions: tuple[str, ...]
    spans: tuple[Span, ...]
    modules: tuple[tuple[str, str, str], ...] = ()
    variables: tuple[tuple[str, str, str], ...] = ()

    def table(self, version: str) -> FlagTable:
        """The flags of one recorded version.

        Raises:
            KeyError: the version is not recorded; `nearest` names one that is.
        """
        if version not in self.versions:
            raise KeyError(version)
        held = tuple(span.flag for span in self.spans if self._within(version, span.first, last=span.last))
        modules = tuple(name for name, first, last in self.modules if self._within(version, first, last=last))
        variables = tuple(name for name, first, last in self.variables if self._within(version, first, last=last))
        return FlagTable(version, held, modules, variables, origin=f"vllm {version} wheel")

    def nearest(self, version: str) -> str:
        """The newest recorded version that is not newer than this one; the oldest where all are."""
        wanted = numbers(version)
        return max(
            (known for known in self.versions if numbers(known) <= wanted), key=numbers, default=self.versions[0]
        )

    def spans_of(self, name: str) -> tuple[Span, ...]:
        """Every recorded form of a flag, oldest first; `name` is its long name or an alias as it is typed."""
        found = (span for span in self.spans if span.flag.name == name or name in span.flag.aliases)
        return tuple(sorted(found, key=lambda span: numbers(span.first)))

    def last_of(self, typed: str) -> Span | None:
        """The latest form of the flag that a typed word names in any recorded version; None: there never was one."""
        word = dashed(typed).partition(".")[0]
        found = self.spans_of(word) or self.spans_of(word.removeprefix("--"))
        if not found and word.startswith("--no-"):
            found = tuple(span for span in self.spans_of(word.removeprefix("--no-")) if span.flag.opposites)
        return found[-1] if found else None

    def _within(self, version: str, first: str, *, last: str) -> bool:
        return numbers(first) <= numbers(version) <= numbers(last)


def numbers(version: str) -> tuple[int, ...]:
    """A version as numbers that compare; what is no number (`rc1`, `+cu129`) is left out."""
    head = re.match(r"v?(\d+(?:\.\d+)*)", version)
    return tuple(int(part) for part in head[1].split(".")) if head else ()


def dashed(typed: str) -> str:
    """An option with dashes for underscores, up to the first dot: keys of JSON keep theirs."""
    if not typed.startswith("--"):
        return typed
    name, dot, path = typed.partition(".")
    return name.replace("_", "-") + dot + path


def is_option(word: str) -> bool:
    """Whether the parser takes a word for an option and not for a value: a dash in front, and not a negative number."""
    return len(word) > 1 and word.startswith("-") and not _NUMBER.fullmatch(word) and " " not in word


def refused(flag: Flag, value: str) -> str:
    """Why the parser would refuse this value, as the end of a sentence; empty if it takes it."""
    if flag.closed and flag.form != "word":
        return "" if value in flag.values or value == "None" else f"must be one of {_listed(flag.values)}"
    return "".join(_REFUSALS[flag.form](flag, value)) if flag.form in _REFUSALS else ""


def _integer(flag: Flag, value: str) -> Iterator[str]:
    if value not in ("", "None") and not re.fullmatch(r"\s*[-+]?\d+(?:_\d+)*\s*", value):
        yield f"must be a whole number{_range(flag)}"


def _decimal(flag: Flag, value: str) -> Iterator[str]:
    del flag
    if value not in ("", "None") and not re.fullmatch(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*", value):
        yield "must be a number"


def _size(flag: Flag, value: str) -> Iterator[str]:
    if flag.form == "length" and value in ("-1", "auto"):
        return
    if value in ("", "None"):
        return
    if not _SIZE.fullmatch(value):
        yield "must be a whole number, with k, m, g (thousands) or K, M, G (binary) behind it if you like"
    elif "." in value and value[-1] not in "kmgt":
        yield "takes a fraction with a decimal suffix (k, m, g) only"


def _json(flag: Flag, value: str) -> Iterator[str]:
    if value in ("", "None") or value in flag.values:
        return
    try:
        json.loads(_HUMAN.sub(lambda match: match[1] or "0", value))
    except (ValueError, RecursionError):
        yield "must be JSON (in a shell, in single quotes)"


def _truth(flag: Flag, value: str) -> Iterator[str]:
    del flag
    if value.lower() not in ("true", "false"):
        yield "must be true or false"


def _word(flag: Flag, value: str) -> Iterator[str]:
    if flag.closed and value.lower().replace("-", "_") not in flag.values:
        yield f"must be one of {_listed(flag.values)}"


_REFUSALS = {
    "int": _integer,
    "float": _decimal,
    "size": _size,
    "length": _size,
    "json": _json,
    "bool": _truth,
    "word": _word,
}


def _range(flag: Flag) -> str:
    return f", one of {_listed(flag.values)}" if flag.values else ""


def _listed(values: tuple[str, ...]) -> str:
    return ", ".join(values)
