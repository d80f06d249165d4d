"""Secrets in a log's lines, masked wherever a line is shown: keys given as arguments, headers, tokens, URLs. Pure.

What is masked is the whole value, whatever its length: every element of a list, a quoted value to its closing quote,
a header to its end. Of a value of eight characters or more the first two stay, so that two keys can be told apart.
Where a form leaves it open how far a value goes, more is hidden, not less.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_MASK = "…(masked)"
_TELLING_LENGTH = 8

_STRONG = (
    r"(?:[\w.-]{0,60}?(?:api[_ -]?keys?|access[_-]?key(?:[_-]?id)?s?|secrets?|passw(?:or)?ds?|passphrase|credentials?"
    r"|(?:secret|private|account|signing|encryption|master|auth|session|license|subscription|shared)[_-]?keys?"
    r"|connection[_-]string|(?<![A-Za-z])pwd(?!=/)|session[_-]?id|x-amz-(?:signature|credential)"
    r"|(?<=[?&])(?:sig|signature|key))|(?-i:\b[A-Z][A-Z0-9_]{0,60}_KEY))"
)
_WEAK = (
    r"[\w.-]{0,60}?(?<!eos_)(?<!bos_)(?<!pad_)(?<!unk_)(?<!per_)(?<!per-)(?<!sep_)(?<!cls_)(?<!mask_)(?<!stop_)tokens?"
)
_QUOTE = r"\\{0,3}[\"']"
_QUOTED = (
    r"\\{0,3}\"(?:[^\"\\]|\\(?!\")[\s\S]|\\\"(?=\w)){0,4000}(?:\\{0,3}\"|$)"
    r"|\\{0,3}'(?:[^'\\]|\\(?!')[\s\S]|\\'(?=\w)){0,4000}(?:\\{0,3}'|$)"
)
_BARE = r"(?:[^\s'\"\\]|[\\'\"](?![\s,;:)\]}\\'\"]|$)){1,4000}"
_LIST = rf"[\[({{](?:{_QUOTED}|[^\[\](){{}}'\"\\]){{0,4000}}(?:[\])}}]|$)"
_SEPARATOR = r"(?:\s{1,2}provided)?\s{0,3}(?::=|=>|[:=]|%3[dDaA])\s{0,3}"
_HELD = rf"(?P<quoted>[bru]{{0,2}}(?:{_QUOTED}))|(?P<list>{_LIST})"
_STOP = (
    r"(?!(?:or|and|is|was|are|were|to|in|the|must|option|argument|flag|for|with|from|not|has|does|requires?|given)\b)"
)
_WORD = rf"(?![-;|&]){_STOP}(?:{_QUOTED}|{_BARE})"
_ITEM = r"[\"'](?!-)[^\"']{0,400}[\"']"
_FLAG_NAME = r"--[\w-]{0,40}(?:api-key|token|password|passwd|secret|access-key|secret-key|passphrase|credentials?)"
_PAIRS = r"(?:;\s?[^\s;,'\"=]{1,200}=[^\s;'\"]{0,4000}){0,40}"

_ISSUED = re.compile(
    r"(?:\b|(?<=_))(?:hf_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_-]{8,}|gh[pousr]_[A-Za-z0-9]{8,}|github_pat_\w{8,}"
    r"|gl(?:pat|dt|rt|cbt|ptt|soat|ft)-[\w-]{8,}|(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{12,}|nvapi-[\w-]{8,}|xox[a-z]-[\w-]{8,}"
    r"|xapp-[\w-]{8,}|AIza[\w-]{20,}|ya29\.[\w-]{8,}|[sr]k_(?:live|test)_\w{8,}|npm_[A-Za-z0-9]{16,}|pypi-[\w-]{16,}"
    r"|gsk_[A-Za-z0-9]{16,}|r8_[A-Za-z0-9]{16,}|dckr_pat_[\w-]{8,}|SG\.[\w-]{16,}\.[\w-]{8,}"
    r"|eyJ[\w-]{6,}\.[\w-]{4,}(?:\.[\w-]*)?)"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^\"']{0,8000}"
)
_HEADER = re.compile(
    rf"(?P<before>\b(?:proxy-)?authorization(?:{_QUOTE})?\s{{0,3}}[:=,]\s{{0,3}})"
    rf"(?:{_HELD}|(?P<bare>(?:digest\b.{{0,4000}}|[\w-]{{1,30}}(?:\s{{1,3}}|%20|\+))?{_BARE}))",
    re.IGNORECASE,
)
_HEADER_VALUE = re.compile(
    r"(?P<open>[bu]?\\{0,3}[\"']?)(?P<scheme>[\w-]{1,30}(?:\s{1,3}|%20|\+))?(?P<value>[\s\S]*?)(?P<shut>\\{0,3}[\"']?)$"
)
_COOKIE = re.compile(
    rf"(?P<before>\b(?:set-)?cookies?(?:{_QUOTE})?\s{{0,3}}[:=]\s{{0,3}})"
    rf"(?:{_HELD}|(?P<bare>[^\s;,'\"]{{1,4000}}{_PAIRS}))",
    re.IGNORECASE,
)
_SCHEME = re.compile(
    r"(?P<before>\bbearer(?:\s|%20|\+|:){1,3})"
    r"(?P<bare>(?!(?:tokens?|auth\w{0,20}|realm|scheme|header|error|is|was|not|or|and)\b)[^\s'\",;]{3,})"
    r"|(?P<basic>\bbasic(?:\s|%20){1,3})(?P<coded>[A-Za-z0-9+/_-]{6,}={0,2})",
    re.IGNORECASE,
)
_WORD_OF_PROSE = re.compile(r"[A-Za-z]?[a-z/_-]+$")
_URL = re.compile(
    r"(?P<before>://[^\s:/@'\"<>]{0,200}:)(?P<bare>[^\s/'\"<>]{1,400})(?=@[\w.\[-])"
    r"|(?P<user>://)(?P<alone>[^\s:/@'\"<>]{16,400})(?=@)"
)
_NAMED = re.compile(
    rf"(?P<before>(?:{_STRONG}|(?P<weak>{_WEAK}))(?:{_QUOTE})?(?:\]|\))?{_SEPARATOR})(?:{_HELD}|(?P<bare>{_BARE}))",
    re.IGNORECASE,
)
_FLAG = re.compile(
    rf"(?P<before>{_FLAG_NAME}(?:=|\s{{1,3}}))(?P<words>{_WORD}(?:[ \t]{{1,3}}{_WORD}){{0,20}})", re.IGNORECASE
)
_FLAG_ITEM = re.compile(
    rf"(?P<before>[\"']{_FLAG_NAME}[\"'],\s{{0,3}})(?P<words>{_ITEM}(?:,\s{{0,3}}{_ITEM}){{0,20}})", re.IGNORECASE
)
_ELEMENT = re.compile(rf"{_QUOTED}|[^\s,\[\](){{}}'\"]+")
_FLAG_ELEMENT = re.compile(rf"{_QUOTED}|[^\s'\"]+")
_INSIDE = re.compile(r"([bru]{0,2}\\{0,3}([\"']))([\s\S]*?)(\\{0,3}\2)?$", re.IGNORECASE)
_NO_SECRET = re.compile(
    r"(?:None|null|True|False|undefined|<[^<>]{1,60}>|\*+|\$\{?\w{1,80}\}?|\.{3})?[,;)\]}>]*$", re.IGNORECASE
)
_HIDDEN = re.compile(r".{0,2}…\(masked\)[,;)\]}>]*$")
_COUNT = re.compile(r"-?\d{1,9}(?:[.,]\d{1,9})*\s?(?:[a-zA-Z%/]{1,8})?[,;)\]}]*$")
_STRONG_NAME = re.compile(rf"(?:{_STRONG}|(?:proxy[_-])?authorization|cookies?)$", re.IGNORECASE)
_WEAK_NAME = re.compile(rf"{_WEAK}$", re.IGNORECASE)
_ENDS = ",;)]}>"


def masked(text: str) -> str:
    """The text without the values of keys, tokens and passwords; their names stay."""
    for form, hide in _RULES:
        text = form.sub(hide, text)
    return text


def masked_value(value: Any, name: str = "") -> Any:
    """A value read from a log, every secret in it masked: whatever stands under a secret's name, at any depth."""
    if isinstance(value, Mapping):
        return {
            masked(str(key)): masked_value(held, name if _secret(name) else str(key)) for key, held in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return type(value)(masked_value(held, name) for held in value)
    if value is None or isinstance(value, bool):
        return value
    if _STRONG_NAME.match(name) or (_WEAK_NAME.match(name) and not _COUNT.match(str(value))):
        return _cut(str(value))
    return masked(value) if isinstance(value, str) else value


def _secret(name: str) -> bool:
    return bool(_STRONG_NAME.match(name) or _WEAK_NAME.match(name))


def _cut(value: str) -> str:
    """What is shown of a value."""
    if _NO_SECRET.match(value) or _HIDDEN.match(value):
        return value
    return (value[:2] if len(value) >= _TELLING_LENGTH else "") + _MASK


def _inside(quoted: str) -> str:
    """A quoted value, its quotes kept."""
    found = _INSIDE.match(quoted)
    return _cut(quoted) if found is None else found[1] + _cut(found[3]) + (found[4] or "")


def _each(listed: str, *, counts: bool = False, element: re.Pattern[str] = _ELEMENT) -> str:
    def hide(one: re.Match[str]) -> str:
        if one[0].lstrip("\\")[:1] in "\"'":
            return _inside(one[0])
        return one[0] if counts and _COUNT.match(one[0]) else _cut(one[0])

    return element.sub(hide, listed)


def _bare(value: str) -> str:
    if _HIDDEN.match(value):
        return value
    kept = len(value.rstrip(_ENDS))
    return _cut(value[:kept]) + value[kept:] if kept else value


def _hide(found: re.Match[str]) -> str:
    """One of the forms with a name: quoted, a list, or bare."""
    groups = found.groupdict()
    if groups.get("quoted"):
        return found["before"] + _inside(found["quoted"])
    if groups.get("list"):
        return found["before"] + _each(found["list"], counts=bool(groups.get("weak")))
    value = found["bare"]
    if groups.get("weak") and _COUNT.match(value):
        return found[0]
    return found["before"] + _bare(value)


def _hide_header(found: re.Match[str]) -> str:
    """The scheme's name stays."""
    whole = found["quoted"] or found["list"] or found["bare"]
    if found["list"]:
        return found["before"] + _each(whole)
    form = _HEADER_VALUE.match(whole)
    if form is None:
        return found["before"] + _MASK
    return found["before"] + form["open"] + (form["scheme"] or "") + _bare(form["value"]) + form["shut"]


def _hide_scheme(found: re.Match[str]) -> str:
    if found["bare"]:
        return found["before"] + _bare(found["bare"])
    return found[0] if _WORD_OF_PROSE.match(found["coded"]) else found["basic"] + _cut(found["coded"])


def _hide_url(found: re.Match[str]) -> str:
    return found["before"] + _cut(found["bare"]) if found["bare"] else found["user"] + _cut(found["alone"])


def _hide_words(found: re.Match[str]) -> str:
    return found["before"] + _each(found["words"], element=_FLAG_ELEMENT)


_RULES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (_ISSUED, lambda found: _cut(found[0])),
    (_HEADER, _hide_header),
    (_COOKIE, _hide),
    (_SCHEME, _hide_scheme),
    (_URL, _hide_url),
    (_FLAG_ITEM, _hide_words),
    (_FLAG, _hide_words),
    (_NAMED, _hide),
)
