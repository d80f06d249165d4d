"""Splits shell text into commands and words as sh would, without running or expanding anything.

Quotes, escapes, comments, continued lines and operators are understood; a variable or a substitution stays as written
and makes its word one of unknown value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from casemate.errors import UsageError

_MOST_WORDS = 100_000
_TOKENS = re.compile(
    r"""(?P<join>\\\r?\n)
    | (?P<space>[ \t\r]+)
    | (?P<end>\n | &&? | \|\|? | ;;? | [()])
    | (?P<comment>\#[^\n]*)
    | (?P<redirect>\d*(?:<<<?|>>|<>|>&|<&|&>>?|[<>]))
    """,
    re.VERBOSE,
)
_PIECES = re.compile(
    r"""(?P<join>\\\r?\n)
    | '(?P<single>[^']*)'
    | "(?P<double>(?:[^"\\]|\\.)*)"
    | (?P<parameter>\$\{[^}\n]{0,400}\} | \$\([^)\n]{0,400}\) | `[^`\n]{0,400}` | \$[A-Za-z_@*#?$!0-9-][A-Za-z0-9_]*)
    | \\(?P<escaped>[^\n])
    | (?P<plain>[^\s'"\\$`&|;()<>]+ | \$)
    """,
    re.VERBOSE | re.DOTALL,
)
_EXPANDS = re.compile(r"(?<!\\)(?:\$[A-Za-z_{(@*#?!0-9]|`)")
_ARRAY = re.compile(r"[A-Za-z_]\w*\+?=")
_UNESCAPED = re.compile(r"""\\(?:\r?\n|(["\\$`]))""")


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command. `known` is false where it holds something that only the shell could expand."""

    text: str
    line: int
    known: bool = True
    raw: str = ""
    """What was written, quotes and all, where only the shell knows what it becomes."""
    items: tuple[Word, ...] | None = None
    """The items of an array that is assigned: `NAME=(…)`."""


def commands(text: str) -> Iterator[tuple[Word, ...]]:
    """The simple commands of a script, each as its words; redirections and comments left out.

    Raises:
        UsageError: a quotation does not end, or there are more words than any recipe has.
    """
    words: list[Word] = []
    at, line, count, skip = 0, 1, 0, False
    while at < len(text):
        if token := _TOKENS.match(text, at):
            if token["end"] and words:
                yield tuple(words)
                words = []
            skip = bool(token["redirect"]) or (skip and not token["end"])
            at, line = token.end(), line + token[0].count("\n")
            continue
        word, end = _word(text, at, line=line)
        if text[end : end + 1] == "(" and _ARRAY.fullmatch(word.text):
            items, end = _items(text, end + 1, line=line)
            word = replace(word, items=items)
        if not skip:
            words.append(word)
        at, line, count, skip = end, line + text.count("\n", at, end), count + 1, False
        if count > _MOST_WORDS:
            raise UsageError(
                "this is no recipe: it has more words than a script would", remedy="give the command alone"
            )
    if words:
        yield tuple(words)


def _items(text: str, at: int, *, line: int) -> tuple[tuple[Word, ...], int]:
    """The words up to the closing bracket of an array, and where it ends."""
    items: list[Word] = []
    while at < len(text):
        if token := _TOKENS.match(text, at):
            at, line = token.end(), line + token[0].count("\n")
            if token["end"] == ")":
                break
            continue
        word, at = _word(text, at, line=line)
        items.append(word)
    return tuple(items), at


def quoted(word: str) -> str:
    """A word as it can be pasted into a shell; one that needs no quotes stays bare."""
    if re.fullmatch(r"[\w@%+=:,./-]+", word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def _word(text: str, at: int, *, line: int) -> tuple[Word, int]:
    pieces: list[str] = []
    known, start = True, at
    while piece := _PIECES.match(text, at):
        kind = piece.lastgroup or ""
        known = known and kind != "parameter" and not (kind == "double" and _EXPANDS.search(piece["double"]))
        pieces.append(_meant(piece, kind))
        at = piece.end()
    if not pieces:
        raise UsageError(f"a quotation does not end (line {line})", remedy="close its quotation mark")
    raw = "" if known else re.sub(r"\\\r?\n", "", text[start:at])
    return Word("".join(pieces), line, known, raw), at


def _meant(piece: re.Match[str], kind: str) -> str:
    if kind == "join":
        return ""
    if kind == "double":
        return _UNESCAPED.sub(lambda match: match[1] or "", piece["double"])
    return str(piece[kind])
