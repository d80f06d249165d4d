"""What a regular expression of JavaScript lets through, tried with what attackers send. Pure.

An expression that no known attack of a kind passes is taken as a guard of that kind; so a list of characters counts for
what it lists, and a lax one for nothing.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Mapping

from casemate.agents.audit.checks.backtracking import Cost, worst_case
from casemate.agents.audit.javascript.lexicon import ALL

ATTACKS: Mapping[str, tuple[str, ...]] = {
    "sql": ("1' OR '1'='1", "1 OR 1=1", "a;drop table t", "1 or 1", 'a" or "', "a' or 'b", "sleep(1)"),
    "nosql": ("'||'1", "a;b", "a'b", "$ne"),
    "command": ("a;id", "a|id", "$(id)", "`id`", "a&b", "a\nid", "a id", "a -o x"),
    "code": ("a()", "a;b", "a=1", "a[0]", "a+b", "a.b", "process.env", "`a`"),
    "template": ("{{7*7}}", "${7*7}", "<%= a %>", "#{7}"),
    "html": ("<img src=x onerror=alert(1)>", "<a", '" onx=', "' onx=", "<script>"),
    "path": ("../../etc/passwd", "..", "/etc/passwd", "..\\a", "a/../b"),
    "ssrf": ("http://evil.example/", "//evil.example", "evil.example", "https://a@evil.example", "127.0.0.1"),
    "redirect": (
        "http://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "https://evil.example",
    ),
    "xpath": ("' or '1'='1", "a | b", "a']"),
    "ldap": ("*", "a)(b=*", "*)(uid=*"),
    "regex": ("(a+)+$", ".*", "a|b", "[a-z]+"),
    "xml": ("<!DOCTYPE a [", "<!ENTITY"),
    "object": ('{"rce":"_$$ND_FUNC$$_"}', "!!js/function a"),
    "header": ("a\r\nb", "a\nb"),
    "log": ("a\r\nb", "a\nb"),
}
"""For each kind of sink telling texts; each alone says little, all together say what an expression forbids."""
_SITE = re.compile(r"^\^https\??:\\?/\\?/(?:[\w-]|\\\.)+(?:\\/|/|\$)")
"""A pattern that pins an address to a host from its beginning to the slash behind it."""


def shown(literal: str) -> frozenset[str]:
    """Kinds for which a text is harmless that matches `/pattern/flags`; all of them where no attack passes."""
    pattern, flags = split(literal)
    if not pattern:
        return frozenset()
    if _SITE.match(pattern):
        return frozenset({"ssrf", "redirect"})
    anchored = pattern.startswith("^") and pattern.endswith("$") and not pattern.endswith("\\$") and "m" not in flags
    compiled = _compiled(pattern, flags) if anchored else None
    outside = re.sub(r"\\.|\[(?:\\.|[^\]])*\]", "", pattern)  # what stands neither in a class nor behind a backslash
    if compiled is None or "." in outside or "|" in re.sub(r"\(.*\)", "", outside):
        return frozenset()
    kinds = frozenset(
        kind
        for kind, attacks in ATTACKS.items()
        if not any(compiled.fullmatch(filled) for attack in attacks for filled in _filled(attack))
    )
    return ALL if kinds == frozenset(ATTACKS) else kinds


def left_by_removal(literal: str) -> frozenset[str]:
    """Kinds for which a text is harmless from which all that `/pattern/g` matches is cut."""
    pattern, flags = split(literal)
    compiled = _compiled(pattern, flags) if "g" in flags else None
    if compiled is None:
        return frozenset()
    kinds = frozenset(
        kind for kind, attacks in ATTACKS.items() if not any(compiled.sub("", attack) == attack for attack in attacks)
    )
    # What cuts single characters by naming those that stay is complete; any other cut tells of what it was made for.
    if pattern.startswith("[^") and pattern.rstrip("+*").endswith("]"):
        return ALL if kinds == frozenset(ATTACKS) else kinds
    if pattern.startswith(("\\D", "\\W")):
        return ALL
    cut = re.fullmatch(r"\[[^\]]*\][+*]?|\\?.(?:\|\\?.)*", pattern) is not None
    return kinds & {"html", "header", "log", "ldap"} if cut or "<" in pattern else frozenset()


def escaped_by(literal: str) -> frozenset[str]:
    """Kinds that a replacement of what `/pattern/g` matches by something harmless is meant for."""
    pattern, flags = split(literal)
    compiled = _compiled(pattern, flags) if "g" in flags else None
    if compiled is None:
        return frozenset()
    kinds = set()
    if compiled.search("<"):
        kinds.add("html")
    if all(compiled.search(mark) for mark in "*+?.()[]{}^$|\\"):
        kinds.add("regex")
    if compiled.search("\n"):
        kinds |= {"log", "header"}
    if all(compiled.search(mark) for mark in "*()\\"):
        kinds.add("ldap")
    return frozenset(kinds)


def split(literal: str) -> tuple[str, str]:
    """The pattern and the flags of a literal."""
    body, _, flags = literal.rpartition("/")
    return (body[1:], flags) if body.startswith("/") else ("", "")


def _filled(attack: str) -> tuple[str, ...]:
    """An attack alone, and at lengths that an expression may ask for."""
    return attack, attack + "a" * (8 - len(attack) % 8), attack * 3


@functools.lru_cache(maxsize=512)
def _compiled(pattern: str, flags: str) -> re.Pattern[str] | None:
    """The same expression in Python's dialect; None where the dialects differ too much, or it may take long."""
    translated = re.sub(r"\(\?<(?![=!])", "(?P<", pattern).replace("\\/", "/").replace("\\p{L}", "a-zA-Z")
    if len(translated) > 300 or worst_case(translated) is Cost.EXPONENTIAL:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is odd in audited code is not ours to warn of
            return re.compile(translated, re.IGNORECASE if "i" in flags else re.NOFLAG)
    except (re.error, OverflowError, RecursionError):
        return None


def is_harmless(text: str) -> bool:
    """Whether what is put in a cut's place can itself do no harm."""
    return all(character.isalnum() or character in "_- " for character in text)
