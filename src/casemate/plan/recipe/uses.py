"""The words of a command as the engine's parser groups them: options with their values, and what stands alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from casemate.plan.recipe.flags import Ambiguous, Flag, FlagTable, History, Hit, dashed, is_option
from casemate.plan.recipe.shell import Word

DASHES = "\N{EM DASH}\N{EN DASH}\N{HORIZONTAL BAR}\N{FIGURE DASH}\N{MINUS SIGN}\N{HYPHEN}\N{NON-BREAKING HYPHEN}"
"""What a word processor makes of two dashes, or of one."""
_LONG = 5
"""Letters; options of one dash have fewer."""
TRUTHS = frozenset({"true", "false"})


@dataclass(frozen=True, slots=True)
class Use:
    """One option as it is used, or one word that stands alone (`typed` is empty, `values` holds it).

    Attributes:
        typed: the option as written, without a value that `=` attached.
        meant: what the table says of it; None if this version has no such option.
        flag: the option's definition: of this version, or of the last one that had it; None if none did.
        values: the words behind it, or the one that `=` attached.
        attached: whether `=` attached it.
        position, end: its words among the arguments, the end not included.
    """

    typed: str
    meant: Hit | Ambiguous | None
    flag: Flag | None
    values: tuple[Word, ...]
    attached: bool
    position: int
    end: int

    @property
    def name(self) -> str:
        """The flag's long name without dashes; the typed one where it is not known."""
        return self.flag.name if self.flag else dashed(self.typed).lstrip("-").partition(".")[0]

    @property
    def value(self) -> str:
        """What stands behind it, as one text."""
        return " ".join(word.text for word in self.values)

    @property
    def known(self) -> bool:
        """Whether all of its values are as written, none left to a shell."""
        return all(word.known for word in self.values)

    @property
    def negated(self) -> bool:
        """Whether its opposite was typed."""
        return isinstance(self.meant, Hit) and self.meant.negated


def uses(arguments: Sequence[Word], table: FlagTable, *, history: History | None = None) -> tuple[Use, ...]:
    """Group a command's arguments, left to right, as argparse does."""
    found: list[Use] = []
    at = 0
    while at < len(arguments):
        use = _one(arguments, at, table=table, history=history)
        found.append(use)
        at = use.end
    return tuple(found)


def _one(arguments: Sequence[Word], at: int, *, table: FlagTable, history: History | None) -> Use:
    word = arguments[at]
    if word.text[:1] in DASHES and (fixed := _straight(word.text, table)):
        use = _one([*arguments[:at], replace(word, text=fixed), *arguments[at + 1 :]], at, table=table, history=history)
        return replace(use, typed=word.text.partition("=")[0], meant=None)
    if not is_option(word.text) or word.text == "--":
        return Use("", None, None, (word,), attached=False, position=at, end=at + 1)
    level = _level(arguments[at : at + 2], table)
    if level is not None:
        return Use("-O", level, level.flag, (arguments[at + 1],), attached=False, position=at, end=at + 2)
    whole = table.find(word.text)
    inner = isinstance(whole, Hit) and whole.attached is not None
    typed, equals, value = (word.text, "", "") if inner else word.text.partition("=")
    meant = whole if inner else table.find(typed)
    flag = meant.flag if isinstance(meant, Hit) else None
    if flag is None and meant is None and history and (span := history.last_of(typed)):
        flag = span.flag
    inside = meant.attached if isinstance(meant, Hit) else None
    if equals or inside is not None:
        given = (Word(value if equals else inside or "", word.line, word.known),)
        return Use(typed, meant, flag, given, attached=True, position=at, end=at + 1)
    count = _following(arguments, at, flag=flag, dotted=isinstance(meant, Hit) and bool(meant.path))
    values = tuple(arguments[at + 1 : at + 1 + count])
    return Use(typed, meant, flag, values, attached=False, position=at, end=at + 1 + count)


def _straight(text: str, table: FlagTable) -> str:
    """An option with plain dashes for typographic ones; empty for what would be no option then either."""
    name = text.lstrip(DASHES + "-")
    short = f"-{name}"
    brief = len(name.partition("=")[0]) < _LONG
    if not name or not name[0].isalpha():
        return ""
    return short if brief and isinstance(table.find(short.partition("=")[0]), Hit) else f"-{short}"


def _level(words: Sequence[Word], table: FlagTable) -> Hit | None:
    """What `-O 3` stands for: the parser makes a level of it, except where -O is an option of its own."""
    apart = len(words) > 1 and words[0].text == "-O" and words[1].text in {"0", "1", "2", "3"}
    return Hit(table.levels) if apart and table.levels and "-O" not in table.levels.aliases else None


def _following(arguments: Sequence[Word], at: int, *, flag: Flag | None, dotted: bool) -> int:
    """How many of the next words belong to an option; one that nobody knows takes a word that is no option."""
    free = 0
    while at + 1 + free < len(arguments) and not is_option(arguments[at + 1 + free].text):
        free += 1
    if dotted:
        return min(1, len(arguments) - at - 1)
    if flag is None:
        return min(1, free)
    if not flag.takes_value:  # it takes none; but who writes `--x false` means that
        return min(1, free) if free and arguments[at + 1].text.lower() in TRUTHS else 0
    return free if flag.arity in ("+", "*") else min(1, free)
