"""Which kinds of sink a call makes its arguments harmless for, under its conditions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.vocabulary.cleaners import NUMBER, RESTORERS, SANITIZERS, STATEMENTS
from casemate.agents.audit.vocabulary.lexicon import EVERYTHING

_ELSEWHERE = (
    *("//evil.example", "//e", "///e", "/\\e", "/\\evil.example/", "\\\\e", "http://e", "https://evil.example/"),
    *("javascript:e", "e.example", "//e/e", "//E-e", "//1", "/\t/e", "http:e", "https:/e"),
)
"""Texts that lead a browser to another site if it is sent there, in the writings of the usual checks' holes."""
_Kinds = frozenset[str]
_NONE: _Kinds = frozenset()
_QUOTED = frozenset({"html", "header", "log", "command"})
_CHOICES = ("Enum", "IntEnum", "StrEnum", "TextChoices", "IntegerChoices")
_LONGEST_PATTERN = 200
_NEEDED: Mapping[str, str] = {
    "log": "\r\n",
    "header": "\r\n",
    "html": "<>\"'",
    "path": "/\\",
    "command": ";&|$`<>(){}[]*?!~#\n\r \t'\"\\",
    "sql": "'\"`;()=<>,*-/ \t\r\n\\",
    "ldap": "*()\\\0",
    "dn": ',+"\\<>;=#',
    "xpath": "'\"[]()/|=@ ",
    "code": "()[]{}'\".,;:=+*/\\ \n",
    "template": "{}%<$#",
    "regex": "\\^$.|?*+()[]{}",
    "nosql": "${}",
}
"""Characters without which data of a kind is only data."""


def cleaned(call: Invocation, *, ours: bool) -> _Kinds | None:
    """Kinds for which the result is harmless; None for a call that cleans nothing.

    Args:
        call: what is called, with its values.
        ours: whether it may be the project's own code, whose methods mean what they do and not what they are called.
    """
    conditional = _CONDITIONAL.get(call.name)
    if conditional is not None:
        return conditional(call)
    kinds = SANITIZERS.get(call.name)
    if kinds is not None:
        return kinds
    found = _by_owner(call)
    return found if found is not None or ours else _by_method(call)


def restored(call: Invocation) -> _Kinds:
    """Kinds for which the result is as harmful as before an escape that this call takes off."""
    return RESTORERS.get(call.name, _NONE)


def _by_owner(call: Invocation) -> _Kinds | None:
    """By what the call belongs to: makers of statements, enumerations, templates, sets of the program's own."""
    if call.name.partition("(")[0] in STATEMENTS:
        return frozenset({"sql"})
    if call.name.startswith("math."):
        return NUMBER
    if call.name.startswith("django.template") and call.name.endswith((".render", ".render_to_string")):
        return frozenset(
            {"html"}
        )  # Django's templates escape unless they are told otherwise, and that is flagged there
    of_set = call.name.endswith(".intersection") and not call.receiver.everything()
    # A value that is not among the members of an enumeration raises.
    chosen = of_set or any(base.rpartition(".")[2] in _CHOICES for base in call.bases)
    return frozenset({EVERYTHING}) if chosen else None


def _by_method(call: Invocation) -> _Kinds | None:
    owner, dot, last = call.name.rpartition(".")
    if not dot:
        return None
    if last == "split" and not call.args and not call.keywords:
        return frozenset({"log", "header"})  # no white space is left in any word
    found = SANITIZERS.get(f".{last}")
    return found or SANITIZERS.get(f".{owner.rpartition('.')[2]}.{last}")


def _percent_encoded(call: Invocation) -> _Kinds:
    """`quote` leaves slashes alone unless it is told otherwise."""
    safe = call.argument(1, "safe")
    return _QUOTED | {"path"} if safe.constant == "" else _QUOTED


def _substituted(call: Invocation) -> _Kinds:
    """`re.sub` with a constant pattern: kinds for which it takes out every character that matters."""
    pattern, replacement = call.argument(0, "pattern").constant, call.argument(1, "repl").constant
    return without(pattern, replacement)


def lacking(text: str) -> _Kinds:
    """Kinds for which no part of a constant text is dangerous."""
    return frozenset(kind for kind, harmful in _NEEDED.items() if not set(text) & set(harmful))


def stays_here(pattern: str) -> bool:
    """Whether what matches a pattern as a whole is a path of this site and begins with one slash."""
    if len(pattern) > _LONGEST_PATTERN:
        return False
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return not any(compiled.fullmatch(text) for text in _ELSEWHERE)


def without(pattern: object, replacement: object) -> _Kinds:
    """Kinds for which no text is dangerous after every match of the pattern was replaced."""
    if not isinstance(pattern, str) or not isinstance(replacement, str) or len(pattern) > _LONGEST_PATTERN:
        return _NONE
    try:
        compiled = re.compile(pattern)
        return frozenset(kind for kind, harmful in _NEEDED.items() if _all_gone(compiled, replacement, harmful=harmful))
    except (re.error, IndexError, OverflowError, RecursionError):
        return _NONE


def _all_gone(pattern: re.Pattern[str], replacement: str, *, harmful: str) -> bool:
    """Each dangerous character alone, between others and doubled; a pattern that needs its neighbours fails here."""
    left = (pattern.sub(replacement, text) for char in harmful for text in (char, f"a{char}a", char * 2))
    return not any(set(text) & set(harmful) for text in left)


_CONDITIONAL: Mapping[str, Callable[[Invocation], _Kinds]] = {
    "urllib.parse.quote": _percent_encoded,
    "urllib.quote": _percent_encoded,
    "django.utils.http.urlquote": _percent_encoded,
    "re.sub": _substituted,
    "re.subn": _substituted,
}
