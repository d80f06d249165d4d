"""Reads the text of `vllm serve --help=all`: the flags of an installed engine, whatever its version.

The text is argparse's: an option line two columns in, its help below. It is foreign and may be cut or wrapped by a
terminal; what cannot be understood is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from casemate.errors import UsageError
from casemate.plan.recipe.flags import Arity, Flag, FlagTable, Form, History

_MOST_BYTES = 4 << 20
_FEWEST = 20
"""A real help has hundreds; fewer options are another program's, or one section's."""
_MOST_JOINED = 200
_OPTION = re.compile(r"  (-{1,2}[A-Za-z].*)")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_DEFAULT = re.compile(r"\(default: (?P<value>[^()]*)\)\s*$")
_DEPRECATED = re.compile(r"^\W*deprecated|is deprecated and will be removed", re.IGNORECASE)
_SPELLED = re.compile(r"(?:^|, )(-{1,2}[A-Za-z][\w-]*)")
_MODEL = Flag("model")


def from_help(text: str, history: History) -> FlagTable:
    """The flags that a help text lists. What kind of value one takes is said by `history` where it knows the flag.

    Raises:
        UsageError: it is no full help of `vllm serve`.
    """
    if len(text) > _MOST_BYTES or "\x00" in text:
        raise UsageError("this is no help text", remedy="save it with: vllm serve --help=all > help.txt")
    flags = {flag.name: _completed(flag, history) for flag in _flags(_ANSI.sub("", text).expandtabs().splitlines())}
    if len(flags) < _FEWEST:
        why = "it lists no more than the groups" if "Config Groups" in text else f"it lists {len(flags)} options"
        raise UsageError(f"this is no full help of vllm serve: {why}", remedy="save it with: vllm serve --help=all")
    flags.setdefault("model", _MODEL)  # the help leaves it out, the parser takes it
    return FlagTable("", tuple(flags.values()), origin="its --help")


def _flags(lines: list[str]) -> Iterator[Flag]:
    at = 0
    while at < len(lines):
        if not _OPTION.fullmatch(lines[at]):
            at += 1
            continue
        shown, at = _joined(lines, at)
        below = at
        while at < len(lines) and not _OPTION.fullmatch(lines[at]) and (lines[at].startswith("   ") or not lines[at]):
            at += 1
        invocation, _, beside = shown.partition("  ")
        said = " ".join([beside.strip(), *(line.strip() for line in lines[below:at])]).strip()
        yield from _flag(invocation, said)


def _joined(lines: list[str], at: int) -> tuple[str, int]:
    """An option's line, with the lines that a terminal broke off while a brace was open; and the next position."""
    shown = lines[at].strip()
    for after in range(at + 1, min(at + _MOST_JOINED, len(lines))):
        if not _open(shown.partition("  ")[0]):
            return shown, after
        shown += lines[after].strip() if shown.endswith(("{", ",", "_")) else lines[after].lstrip()
    return shown, at + 1


def _open(text: str) -> bool:
    return text.count("{") > text.count("}") or text.count("[") > text.count("]")


def _flag(invocation: str, said: str) -> Iterator[Flag]:
    spelled = _SPELLED.findall(re.sub(r"\{[^}]*\}|\[[^\]]*\]", "", invocation))
    long = [word for word in spelled if word.startswith("--")]
    if not long or long[0] == "--help":
        return
    name = long[0].removeprefix("--")
    form, others = _pairing(name, spelled)
    default = _DEFAULT.search(said)
    value = "" if form else _behind(invocation)
    arity, values, closed = _metavar(value)
    yield Flag(
        name=name,
        form=form or ("str" if value else "switch"),
        arity=arity if value else "",
        aliases=tuple(word for word in dict.fromkeys(spelled) if word != long[0] and word not in others),
        values=values,
        closed=closed,
        default=default["value"].strip() if default and default["value"] != "None" else "",
        deprecated=bool(_DEPRECATED.search(said[:400])),
    )


def _pairing(name: str, spelled: list[str]) -> tuple[Form | None, set[str]]:
    """Whether it is a pair of switches, and which of its spellings say no."""
    forms: tuple[Form, ...] = ("twin", "pair")
    for form in forms:
        opposites = set(Flag(name, form).opposites)
        if opposites & set(spelled) and (form == "pair" or f"--no-{name}" not in spelled):
            return form, opposites
    return None, set()


def _behind(invocation: str) -> str:
    """What stands behind an option's last spelling: how its value is shown."""
    shown = invocation.rsplit(", -", maxsplit=1)[-1]
    return shown.lstrip("-").partition(" ")[2].strip()


def _metavar(value: str) -> tuple[Arity, tuple[str, ...], bool]:
    if listed := re.match(r"\[('[^\]]*')\]", value):  # a Python list: built-in values, others allowed
        return "", tuple(re.findall(r"'([^']*)'", listed[1])), False
    braces = re.search(r"\{([^}]*)\}", value)
    values = tuple(part.strip() for part in braces[1].split(",") if part.strip() not in ("", "None")) if braces else ()
    arity = "?" if value.startswith("[") else ""
    if "..." in value:
        arity = "*" if value.startswith("[") else "+"
    return cast("Arity", arity), values, bool(values) and " or " not in value


def _completed(flag: Flag, history: History) -> Flag:
    known = history.spans_of(flag.name)
    if not known or flag.form != "str" or not known[-1].flag.takes_value or known[-1].flag.arity != flag.arity:
        return flag
    ever_closed = any(span.flag.closed for span in known)  # one list of choices in the help is not the parser's
    return replace(flag, form=known[-1].flag.form, closed=flag.closed and (ever_closed or not known[-1].flag.values))
