"""What a text calls an identifier: the name beside a mention, if there is one. Pure but for the names it is given."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from casemate.knowledge import words
from casemate.knowledge.gate.mentions import Mention

_REACH = 200
"""How far from a mention its name may end."""
_HAN_REACH = 60
"""The same where the text is not plain ASCII: no Chinese name is longer."""
_AFTER = re.compile(
    r"""(?:[ \t*_`"'“”]|\n(?=[ \t]*[(（]))*
    (?P<mark>[(（\[【:：「《]|[-–—]{1,2}(?=[\s\u3400-\u9fff])|[=＝]|,?[ ]i\.e\.,?[ ]
        |[,，]?[ \t]*(?:即|也就是|亦即|也称|又称|俗称|全称|名为|名叫|叫做?|称为|称作|意为
            |指的?是|是指?|表示|代表|定义为|说的是|讲的是
            |的?(?:官方|正式|中文)?(?:标题|名称|名字|含义|全称)(?:是|为|叫做?))
        |[,，]?[ \t]*(?:that[ ]is(?:[ ]to[ ]say)?|namely
            |(?:better[ ]|also[ ])?known[ ]as|aka|a\.k\.a\.|(?:or[ ])?called|named
            |titled|entitled)[,:]?[ \t]
        |(?:is(?:[ ](?:called|named|titled|entitled|known[ ]as|about|defined[ ]as|short[ ]for))?|means
            |denotes|describes|reads|refers[ ]to|stands[ ]for)[ \t](?:the\s|an?\s)?
        |(?P<comma>,)[ \t]+(?:the\s|an?\s)?
        |(?P<clause>(?:on|about|governs|regulates|concerns|deals[ ]with|grants|is[ ]about|sets[ ]out
            |lays[ ]down)[ ](?:the[ ])?|规定了?的?是?|讲的?是?|涉及的?是|关于|确立了?|赋予了?)|)
    (?P<quote>[ \t*_`"'“”‘’「《]*)(?:(?:also\ known\ as|aka|又称|也称|即|i\.e\.,?|名为|名称[:：]?)\s*)?""",
    re.VERBOSE,
)
"""What ties a name to the identifier before it; `clause` counts for clauses of laws and standards alone."""
_CLAUSES = ("GDPR", "HIPAA", "MLPS", "ASVS", "NIST")
_OPEN = re.compile(
    r"[(（\[【]\s*(?:(?:MITRE|OWASP|NIST|HIPAA|GDPR|ASVS|MLPS|等保(?:2\.0)?|SP\s*800-53|45\s*CFR|GB/?T\s*22239(?:-2019)?|§"
    r"|see|即|编号|对应|ATT&CK|weakness|technique|弱点|技术)\s*(?:Top\s*10\s*)?[:：]?\s*)*\Z"
)
_TIED = re.compile(r"\s*(?:[:：=＝]|\s[-–—]{1,2})\s*\Z")
_SAID = re.compile(
    r"[ \t*_`\"'“”‘’」》]*(?:[,，][ ]?(?:i\.e\.,?|that[ ]is,?|namely)|[,，]?[ ]?(?:(?<!不)即|也就是|亦即)|,(?=[ ])"
    r"|\bis|\bas|的?(?:弱点|漏洞|技术|攻击模式)?编号(?:是|为)|对应(?:的?(?:编号|弱点)?(?:是|为))?|(?<!不)就?是)[ \t]*\Z"
    r"|(?<=[\u3400-\u9fffA-Za-z\"”」)）])[ \t]+\Z"
)
"""What else may stand between a name and its identifier: `SQL injection, CWE-89,`; `点击劫持 CWE-1021`."""
_LIST_MARK = re.compile(r"^[\s>*_`#\"'“”+-]*(?:\d{1,3}[.)、]\s*)?[\s*_`\"'“”]*")
_ENDS = re.compile(
    r"""[\s*_]*[`"'”’」》]|[\s*_]*(?:\Z|[)）\]】」》|;；。.,，、:：?？!！<{}\n"”]|[-–—]+\s
    |(?:vulnerabilit|weakness|flaw|attack|issue|risk|defect|problem|bug|techni|tactic|sub-?techni|exist|occur|allow)\w*\b
    |(?:in|on|at|via|through|from|by|is|was|are|were|has|when|where|because|which|that|found|can
        |after|before|during|within|inside|into|against|across|under|with|without|for|due|as|while|but|if)\b
    |漏洞|攻击|缺陷|弱点|风险|问题|类|导致|造成|引起|技术|战术
    |[的在存会可已也都均并正未仍没将要应由与和被从对按用拿让给以且而有无仅共则就即还又再起后前时中内上下等及两三一多每各]
    |(?<=[\u3400-\u9fff])\s
    |(?:appl|cover|requir|need|remain|appear|affect|still|also|now|first|stay|led|lead|came|come|will|may|should|must
        |could|would|does|did|had)\w*\b)""",
    re.VERBOSE | re.IGNORECASE,
)
_SUFFIX = re.compile(
    r"\s*(?:vulnerabilit(?:y|ies)|weakness(?:es)?|flaws?|attacks?|issues?|bugs?|techniques?|tactics?"
    r"|漏洞|攻击|缺陷|弱点|风险|问题|技术|战术)?[\s*_`\"'“”’]*\Z",
    re.IGNORECASE,
)
_JSON_NAME = re.compile(r'"\s*,\s*"name"\s*:\s*"(?P<name>[^"\\]{2,200})"')
_NAME_ENDS = re.compile(r"[\n)）\].;；,，。|\"“”]|\s[-–—]\s|$")


@dataclass(frozen=True, slots=True)
class Claim:
    """A name given to a mention: its words and their span.

    `marked` if a bracket, colon, comma, dash or word ties the two, `field` if it stands in a name's own column or key,
    and `title` if it only looks like a name.
    """

    name: str
    start: int
    end: int
    marked: bool
    field: bool = False
    title: bool = False


def known(text: str, mention: Mention, *, terms: Mapping[str, tuple[str, ...]]) -> Claim | None:
    """The longest known term that the text gives as the mention's name: behind it, or before it in brackets."""
    return _quoted(text, mention) or _behind(text, mention, terms=terms) or _before(text, mention, terms=terms)


def spoken(text: str, mention: Mention) -> Claim | None:
    """Words behind a mark that look like a title (`CWE-89: Broken Object Access`), known or not."""
    mark = _AFTER.match(text, mention.end)
    if not mark or mark["mark"][:1] not in _TITLE_MARKS:
        return None
    stop = _NAME_ENDS.search(text, mark.end(), mark.end() + _REACH)
    end = stop.start() if stop else min(len(text), mark.end() + _REACH)
    name = text[mark.end() : end].strip(" *_`'")
    if not _is_title(name):
        return None
    return Claim(name, mark.end(), mark.end() + len(name), marked=True, title=True)


def _quoted(text: str, mention: Mention) -> Claim | None:
    """The name in a piece of JSON that is quoted in running text."""
    if text[mention.end : mention.end + 1] != '"' or not (found := _JSON_NAME.match(text, mention.end)):
        return None
    return Claim(found["name"], found.start("name"), found.end("name"), marked=True, field=True)


def _behind(text: str, mention: Mention, *, terms: Mapping[str, tuple[str, ...]]) -> Claim | None:
    mark = _AFTER.match(text, mention.end)
    if not mark or mark.end() == mention.end or (mark["clause"] and not mention.id.startswith(_CLAUSES)):
        start, tie = mention.end, ""
    else:
        start, tie = mark.end(), mark["mark"]
    size = _known_at(text, start, terms=terms)
    if not size or not _ENDS.match(text, start + size):
        return None
    quoted = bool(mark and mark["quote"].strip(" *_"))
    if mark and mark["comma"] and not quoted and not _stands_alone(text, start, end=start + size, terms=terms):
        return None
    return Claim(text[start : start + size], start, start + size, bool(tie) or quoted)


def _known_at(text: str, start: int, *, terms: Mapping[str, tuple[str, ...]]) -> int:
    """The length of the longest known term that begins at a place; 0 if none does."""
    line = text[start : start + _REACH]
    line = line[: cut.start()] if (cut := _CUT.search(line)) else line
    if not line.isascii():
        line = line[:_HAN_REACH] if words.has_han(line[:_HAN_REACH]) else line
    folded, places = folded_with_places(line)
    for end in _word_ends(folded):
        if folded[:end] in terms:
            return places[end - 1] + 1 if places else end
    return 0


def _stands_alone(text: str, start: int, *, end: int, terms: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether a name between commas belongs to what stands before it, and is not the next of a list."""
    if not (closed := _CLOSED.match(text, end)):
        return False
    if closed["and"] and not text[start].isupper():
        return False
    return not (closed["comma"] and (_ID_NEXT.match(text, closed.end()) or _known_at(text, closed.end(), terms=terms)))


def _before(text: str, mention: Mention, *, terms: Mapping[str, tuple[str, ...]]) -> Claim | None:
    from_ = max(0, mention.start - _REACH)
    window = text[from_ : mention.start]
    window = _LAW_BEFORE.sub("", window) if mention.id.startswith(_CLAUSES) else window
    if not window or (window[-1].isalnum() and not words.has_han(window[-1])):
        return None
    line = _TIED.search(window)
    tie = _OPEN.search(window) or line or _SAID.search(window)
    if tie is None:
        return None
    whole = tie is line
    said = tie.group().strip()
    alone = said != "," or _stands_alone(text, mention.start, end=mention.end, terms=terms)
    claim = _ending_at(window, tie.start(), whole=whole, terms=terms) if alone else None
    if claim is None or _is_part(window, claim, mention=mention):
        return None
    is_cut = whole and claim.start == 0 < from_  # its line began before what was looked at
    is_anothers = said in ("", ",") and _ID_BEFORE.search(window, 0, claim.start)
    if is_cut or is_anothers:
        return None
    return replace(claim, start=from_ + claim.start, end=from_ + claim.end, marked=bool(said))


def _ending_at(window: str, last: int, *, whole: bool, terms: Mapping[str, tuple[str, ...]]) -> Claim | None:
    """The longest known term that ends at a place; with `whole`, only one that fills its line."""
    shift = 0
    if words.has_han(window[-_HAN_REACH:]):
        shift = max(0, len(window) - _HAN_REACH)
        window, last = window[shift:], last - shift
    first = max(window.rfind("\n", 0, last), window.rfind("|", 0, last)) + 1
    first += marks.end() if (marks := _LIST_MARK.match(window[first:last])) else 0
    suffix = _SUFFIX.search(window, first, last)
    stop = suffix.start() if suffix else last
    folded, places = folded_with_places(window[first:last].rstrip(_MARKS))
    bare = len(folded_with_places(window[first:stop])[0])
    for start in (0,) if whole else _word_starts(folded):
        end = next((end for end in (len(folded), bare) if folded[start:end] in terms), 0)
        if end > start:
            at = first + (places[start] if places else start)
            name = window[at : first + (places[end - 1] + 1 if places else end)]
            return Claim(name, shift + at, shift + at + len(name), marked=True)
    return None


def _is_part(window: str, claim: Claim, *, mention: Mention) -> bool:
    """Whether a name only ends a longer title: that of an enhancement, `Access Enforcement | Dual Authorization`."""
    titled = _TITLE_BEFORE.search(window, 0, claim.start)
    return bool(titled) and (mention.id.startswith("NIST") or claim.name.isalpha()) and claim.name.isascii()


_TITLE_BEFORE = re.compile(r"\b(?!The|An?\b|This)[A-Z][A-Za-z/-]*[ ](?:(?:to|of|for|and|in|with|on|the)[ ]){0,2}\Z")
_LAW_BEFORE = re.compile(r"(?<=[\s(（,，:：])(?:(?:NIST|SP|800-53|HIPAA|45\s*CFR|MLPS|ASVS|§)\s*)+\Z")
_TITLE_MARKS = frozenset("(（[【:：「《-–—=＝")
_CLOSED = re.compile(
    r"[\s*_`\"'”’]*(?:(?P<comma>[,，、])\s*(?P<and>(?:and|or)\b|和|与|及|或)?\s*(?:(?:an?|the)\s)?|[.;:)）。；：\n]|\Z)"
)
_ID_NEXT = re.compile(r"(?:CWE|CAPEC|CVE|T\d|TA\d|M\d|A\d\d?:|D3-|GDPR|HIPAA|NIST)")
_ID_BEFORE = re.compile(r"\d['’s)）\]]*[\s:：(（,，\-–—\"“*_`]{0,6}\Z")
"""An identifier that already has the name that follows it."""
_CUT = re.compile(r"[\n\t|]")
_MARKS = " \t*_`\"'“”’"


def folded_with_places(text: str) -> tuple[str, list[int]]:
    """A text as `words.fold` gives it, and for each character the place that it came from; none if none moved."""
    if text.isascii() and "  " not in text and not _WHITE.search(text):
        shorter = text.rstrip(" ")
        return (shorter.lower(), []) if not shorter.startswith(" ") else _moved(text)
    return _moved(text)


_WHITE = re.compile(r"[\t\n\r\x0b\x0c\x1c-\x1f]")


def _moved(text: str) -> tuple[str, list[int]]:
    characters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        for folded in _folded(character):
            before = characters[-1] if characters else " "
            if folded == " " and (before == " " or _is_han(before)):
                continue
            if before == " " and characters and _is_han(folded):
                characters.pop()
                places.pop()
            characters.append(folded)
            places.append(place)
    if characters and characters[-1] == " ":
        characters.pop()
        places.pop()
    return "".join(characters), places


@lru_cache(8192)
def _folded(character: str) -> str:
    plain = unicodedata.normalize("NFKC", character).casefold()
    return "".join(" " if part.isspace() else part for part in plain)


def _is_han(character: str) -> bool:
    return "\u3400" <= character <= "\u9fff"


def _word_ends(folded: str) -> list[int]:
    """Where a word of a folded text may end, the last first."""
    return [match.start() for match in _BOUNDARY.finditer(folded, 1)][::-1]


def _word_starts(folded: str) -> list[int]:
    return [match.start() for match in _BOUNDARY.finditer(folded)]


_BOUNDARY = re.compile(r"(?<![A-Za-z0-9_])|(?![A-Za-z0-9_])")
"""As `words.boundary`: anywhere but between two letters or digits of an alphabet."""


def _is_title(name: str) -> bool:
    """Two to fourteen words, most of them capitalised."""
    parts = [word for word in re.findall(r"[A-Za-z][\w'-]*", name) if len(word) > 3]
    return 2 <= len(parts) <= 14 and sum(word[0].isupper() for word in parts) > 0.7 * len(parts)
