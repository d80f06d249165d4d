"""Checks what a text quotes from its material: E1, a quotation that is not there; E2, a place that is wrong. Pure.

Only what is plainly a quotation counts: words in backticks or quotation marks of a sentence that does not advise, and
code fences that name their place. A single word is a name, not a quotation.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from casemate.knowledge.gate.mentions import Mention, find

_FILE = r"(?:[\w@+-][\w@.+-]*/)*[\w@+-][\w@.+-]*\.[A-Za-z][A-Za-z0-9]{0,9}"
_WHOLE_FILE = re.compile(_FILE)
_PLACE = re.compile(
    rf"""
    (?<![\w/.\\@+-])(?P<file>{_FILE})
    (?: :(?P<colon>\d{{1,7}})(?:-(?P<until>\d{{1,7}}))?(?::\d+)?
      | \#L(?P<anchor>\d{{1,7}})
      | `?[,，]?\s*\(?(?:at\s+)?lines?\s+(?P<line>\d{{1,7}})
      | `?\s*的?第\s*(?P<zh>\d{{1,7}})\s*行)(?![\w.]\d)
  | \b[Ll]ines?\s+(?P<line2>\d{{1,7}})(?:\s*[-–]\s*(?P<until2>\d{{1,7}}))?\s+(?:of|in)\s+`?(?P<file2>{_FILE})
  | \b(?:[Ee]vents?|[Rr]ecords?|[Ee]ntry)\s*(?:\#|no\.?\s*|number\s+)\s*(?P<event>\d{{1,9}})\b
  | (?:EventRecordID|RecordNumber|record_id)\s*[:=]?\s*(?P<record>\d{{1,9}})\b
  | 第\s*(?P<event_zh>\d{{1,9}})\s*(?:条|个)(?:事件|记录|日志)
    """,
    re.VERBOSE,
)
_RECORD = re.compile(r"(?:EventRecordID|RecordNumber|record_id|recordId)\W{1,4}(\d{1,9})")
_QUOTE = re.compile(
    r"`(?P<tick>[^`\n]{2,400})`|“(?P<curly>[^”\n]{2,400})”|\"(?P<plain>[^\"\n]{2,400})\"|「(?P<corner>[^」\n]{2,400})」"
    r"|『(?P<inner>[^』\n]{2,400})』|‘(?P<single>[^’\n]{2,400})’|(?<![\w'])'(?P<straight>[^'\n]{2,400})'(?!\w)"
)
_KINDS = ("tick", "curly", "plain", "corner", "inner", "single", "straight")
_QUOTES = re.compile(
    r"\b(?:quot\w*|reads?|says?|states?|shows?|contains?|logs?|logged|recorded|line|event|entry|input|source|code)\b"
    r"|原文|引用|写道|显示|记录|日志|代码|写着|内容为|输入",
    re.IGNORECASE,
)
_ADVISES = re.compile(
    r"\b(?:use|using|replace\w*|should|must|instead|prefer|recommend\w*|rewrite)\b"
    r"|(?:^|[,;:]|\b(?:to|please|and|then|or))\s*(?:run|call|set|add|fix|change|try|install|write|pass|make)\b"
    r"|\b(?:for\s+example|e\.g\.|such\s+as|example|fix(?:ed|es)?|safer?)\b"
    r"|应|改为|改用|改成|建议|替换|例如|比如|推荐|修复|示例|运行|执行命令|(?:请|可|须|需|要|宜|会|能)(?:以|要)?使用|^\s*使用",
    re.IGNORECASE,
)
_STOP = re.compile(r"(?<=[.!?])\s|[。！？\n]")
_ADVISES_BEHIND = re.compile(r"\s*(?:instead|is\s+safe|would|avoids?|代替|才安全)")
_NAME = re.compile(r"\S*[\w.]\(\)|[^\s(){}\[\]=;<>%$\\]*")
"""A single word, or a call with empty brackets: it names a thing, and quotes nothing."""
_CODE = re.compile(r"[(){}\[\]=;<>%$\\]|\w: ?\S|\s/\w")
_AFTERWARDS = re.compile(r"\b(?:after|before|since|once|following|behind)\s+\Z|(?:在|自从)\s*\Z", re.IGNORECASE)
"""Before words that stand elsewhere than at the place that the sentence names."""
_REACH = 40
_HOSTS = (".com", ".org", ".net", ".io", ".cn", ".gov", ".edu", ".local", ".dev", ".example", ".test")
"""`host.com:443` is no line of a file."""
_LINE_JSON = re.compile(r"\A\s*\{")


NOT_THERE = "not in the material"


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A quotation or a place, its grade (H0, E1, E2) and the reason."""

    mention: Mention
    grade: str
    reason: str = ""

    def at(self, start: int, end: int) -> Exhibit:
        """The same at its span."""
        return replace(self, mention=Mention(self.mention.id, start, end))


class Material:
    """What a text was written about: files by their path relative to the folder, `/` between the parts."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._lines = {path: text.splitlines() for path, text in files.items()}
        self._folded = {path: _folded(text) for path, text in files.items()}
        self._records = {found for text in files.values() for found in _RECORD.findall(text)}

    def holds(self, quotation: str) -> bool:
        """Whether the words stand anywhere; white space and an ellipsis in the middle do not count."""
        return any(_stands(quotation, text) for text in self._folded.values())

    def lines(self, name: str) -> list[list[str]]:
        """The lines of every file that a name may mean: the path itself, or any path that ends with it."""
        if name in self._lines:
            return [self._lines[name]]
        return [lines for path, lines in self._lines.items() if path.endswith(f"/{name}") or name.endswith(f"/{path}")]

    def has_record(self, number: str) -> bool:
        """Whether an event has this number, as its own or as its place in a log of one record a line."""
        logs = [lines for lines in self._lines.values() if lines and _LINE_JSON.match(lines[0])]
        logs = logs or list(self._lines.values())
        return number in self._records or any(0 < int(number) <= len(lines) for lines in logs)


def examine(text: str, material: Material) -> Iterator[Exhibit]:
    """Every quotation and place of running text, judged."""
    places = [place for place in _PLACE.finditer(text) if not (place["file"] or "").endswith(_HOSTS)]
    quotes = [quote for quote in _QUOTE.finditer(text) if _may_quote(_words(quote))]
    held = {quote.start(): material.holds(_words(quote)) for quote in quotes}
    there = [quote for quote in quotes if not _AFTERWARDS.search(text, max(0, quote.start() - _REACH), quote.start())]
    said = _paired(text, places, quotes=there)
    for place in places:
        quote = said.get(place.start())
        words = [_words(quote)] if quote and held[quote.start()] else []
        yield _place(place, material, said=words)
    at_places = {quote.start() for quote in said.values()}
    for quote in quotes:
        if _is_quotation(text, quote, at_place=quote.start() in at_places):
            right = held[quote.start()]
            mention = Mention(quoted(_words(quote)), quote.start(), quote.end())
            yield Exhibit(mention, "H0" if right else "E1", "" if right else NOT_THERE)


def _paired(text: str, places: Sequence[re.Match[str]], *, quotes: Sequence[re.Match[str]]) -> dict[int, re.Match[str]]:
    """For where a place begins, the quotation of its sentence that stands there: in turn, or else the nearest."""
    sentences = [0, *(stop.end() for stop in _STOP.finditer(text))]
    groups: dict[int, tuple[list[re.Match[str]], list[re.Match[str]]]] = {}
    for kind, matches in enumerate((places, quotes)):
        for match in matches:
            groups.setdefault(bisect_right(sentences, match.start()), ([], []))[kind].append(match)
    found: dict[int, re.Match[str]] = {}
    for here, said in groups.values():
        if len(here) == len(said) or (len(here) == 1 and said):
            found.update(_in_turn(here, said))
    return found


def _in_turn(places: list[re.Match[str]], quotes: list[re.Match[str]]) -> Iterator[tuple[int, re.Match[str]]]:
    """Places and quotations that take turns; a single place has the nearest."""
    if len(places) == 1:
        (place,) = places
        yield place.start(), min(quotes, key=lambda one: max(one.start() - place.end(), place.start() - one.end()))
        return
    order = sorted((*places, *quotes), key=lambda match: match.start())
    firsts = order[::2]
    if firsts in (places, quotes):
        yield from ((place.start(), quote) for place, quote in zip(places, quotes, strict=True))


def judged(name: str, lines: tuple[int, int], *, said: list[str], material: Material) -> Exhibit:
    """A place in a file, first and last line, at which words are said to stand; its span is still to be given."""
    first, last = lines
    mention = Mention(f"{_plain(name)}:{first}", 0, 0)
    files = material.lines(_plain(name))
    if not files:
        return Exhibit(mention, "E2", "no such file in the material")
    if not any(1 <= first <= last <= len(found) for found in files):
        return Exhibit(mention, "E2", f"the file has {max(map(len, files))} lines")
    for words in said:
        height = words.count("\n")  # a quotation of several lines begins where it is said to stand
        if not any(_stands(words, _folded("\n".join(found[first - 1 : last + height]))) for found in files):
            every = (at for found in files for at, line in enumerate(found, 1) if _stands(words, _folded(line)))
            where = next(every, 0)
            return Exhibit(mention, "E2", f"{words[:40]!r} stands " + (f"on line {where}" if where else "elsewhere"))
    return Exhibit(mention, "H0")


def is_file(name: str) -> bool:
    """Whether a name reads as that of a file."""
    return bool(_WHOLE_FILE.fullmatch(_plain(name)))


def quoted(words: str) -> str:
    """How a quotation is named in a verdict."""
    return f'"{" ".join(words.split())[:60]}"'


def _place(place: re.Match[str], material: Material, *, said: list[str]) -> Exhibit:
    number = place["event"] or place["record"] or place["event_zh"]
    if number:
        mention = Mention(f"event {number}", place.start(), place.end())
        return Exhibit(mention, "H0") if material.has_record(number) else Exhibit(mention, "E2", "no such event")
    first = int(place["colon"] or place["anchor"] or place["line"] or place["zh"] or place["line2"])
    last = int(place["until"] or place["until2"] or first)
    found = judged(place["file"] or place["file2"], (first, last), said=said, material=material)
    return found.at(place.start(), place.end())


def _plain(name: str) -> str:
    return name.removeprefix("file://").lstrip("/").removeprefix("./").replace("\\", "/")


def _may_quote(words: str) -> bool:
    """Whether quoted words may be of the material: not a name, a place or an identifier."""
    return not (_NAME.fullmatch(words) or _PLACE.fullmatch(words) or find(words))


def _is_quotation(text: str, quote: re.Match[str], *, at_place: bool) -> bool:
    """Whether quoted words are told of the material: at a place, code in backticks, or what the sentence calls said."""
    stops = [stop.end() for stop in _STOP.finditer(text, max(0, quote.start() - 200), quote.start())]
    before = text[stops[-1] if stops else max(0, quote.start() - 200) : quote.start()]
    if _ADVISES.search(before) or _ADVISES_BEHIND.match(text, quote.end()):
        return False
    code = not quote["straight"] and _CODE.search(_words(quote))
    return bool(code or at_place or (not quote["straight"] and _QUOTES.search(before)))


def _words(quote: re.Match[str]) -> str:
    return next(quote[kind] for kind in _KINDS if quote[kind]).strip()


def _stands(words: str, folded: str) -> bool:
    parts = [part for part in re.split(r"\s*(?:\.\.\.|…+)\s*", _folded(words)) if part]
    at = 0
    for part in parts:
        call = part.removesuffix("()") + "("
        found = folded.find(part, at)
        found = folded.find(call, at) if found < 0 and part.endswith("()") else found
        if found < 0:
            return False
        at = found + len(part)
    return True


def _folded(text: str) -> str:
    return " ".join(text.split())
