"""The command-line flags of one engine version as values, how a word is looked up in them, and what a value must be.

The rules are those of vLLM's parser: argparse with underscores for dashes, unambiguous prefixes, `--no-` pairs, and
JSON flags whose keys may be given one by one (`--compilation-config.mode 3`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

Form = Literal["switch", "pair", "twin", "int", "float", "size", "length", "bool", "json", "pairs", "word", "str"]
"""What a flag takes: nothing (`switch`; `pair` also as `--no-…`, `twin` also with enable and disable exchanged, which
vLLM pairs since 0.33.0), a number (`size`: 2k, 8M; `length`: also -1 and
auto), true or false, JSON (`pairs`: also image=4,video=1), one of its values in any spelling (`word`), or text."""
Arity = Literal["", "?", "+", "*"]
"""How many values: one (empty), none or one, one or more, any number."""

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


_HELP = Flag("help", arity="?", aliases=("-h",))
"""What argparse itself adds; vLLM takes --help=GROUP and --help=all besides."""


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

    @property
    def levels(self) -> Flag | None:
        """What `-O` followed by a level sets."""
        return self.get("optimization-level") or self.get("compilation-config")

    def find(self, typed: str) -> Hit | Ambiguous | None:
        """What a typed option means, as the engine's parser would take it; no value may be attached by `=`."""
        word, *path = dashed(typed).split(".") if typed.startswith("-") else [typed]
        if word in self._spelled:
            flag, negated = self._spelled[word]
            return Hit(flag, negated, tuple(path))
        if level := _LEVEL.fullmatch(word):
            return Hit(self.levels, attached=level["level"]) if self.levels else None
        if word in ("-h", "--help"):
            return Hit(_HELP)
        if word[:1] == "-" and word[1:2] != "-" and word[:2] in self._spelled:  # -qfp8; two letters do not do so: -tp4
            return Hit(self._spelled[word[:2]][0], attached=typed[2:])
        return self._shortened(word, tuple(path))

    def _shortened(self, word: str, path: tuple[str, ...]) -> Hit | Ambiguous | None:
        long = word.startswith("--")
        if not word.startswith("-") or len(word) < (4 if long else 2):
            return None
        candidates = sorted(one for one in self._spelled if one.startswith(word) and one.startswith("--") == long)
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
    """Whether the parser takes a word for an option and not for a value: a dash in front, and not a negative number.

    A word with a space is none, unless the space is in a value that `=` attaches.
    """
    return len(word) > 1 and word.startswith("-") and not _NUMBER.fullmatch(word) and " " not in word.partition("=")[0]
