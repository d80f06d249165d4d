"""Puts in what a script plainly assigned: `ARGS="…"` and bash arrays; what is set under a condition stays unknown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from casemate.plan.recipe.shell import Word

_ASSIGNED = re.compile(r"(?P<name>[A-Za-z_]\w*)(?P<more>\+?)=(?P<value>.*)", re.DOTALL)
_ALONE = re.compile(
    r"(?P<quote>\"?)\$(?:(?P<plain>[A-Za-z_]\w*)|\{(?P<braced>[A-Za-z_]\w*)(?P<all>\[[@*]\])?\})(?P=quote)"
)
_INSIDE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
_OPEN = frozenset({"if", "for", "while", "until", "case"})
_CLOSED = frozenset({"fi", "done", "esac"})
_MOST_TEXT = 1 << 14


@dataclass(slots=True)
class Variables:
    """What a script has assigned so far. `environment` is what a start would see, as it was written."""

    environment: list[tuple[str, Word]] = field(default_factory=list)
    _values: dict[str, tuple[Word, ...] | None] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)
    _exported: set[str] = field(default_factory=set)
    _depth: int = 0

    def nest(self, word: str) -> None:
        """Note a word that opens or closes a condition or loop."""
        self._depth += (word in _OPEN) - (word in _CLOSED)

    def take(self, words: Sequence[Word], *, exported: bool) -> None:
        """Note assignments."""
        for word in words:
            match = _ASSIGNED.fullmatch(word.text)
            if match is None:
                continue
            name, before = match["name"], self._values.get(match["name"], ())
            given = self._given(word, match["value"])
            if self._depth > 0 or given is None or before is None:
                self._values[name] = None
            elif match["more"]:
                self._values[name] = (*before, *given) if word.items is not None else _joined(before, given)
            else:
                self._values[name] = given
            if word.items is None and not match["more"]:
                self.environment.append((name, Word(match["value"], word.line, word.known)))
            if exported:
                self._exported.add(name)

    def seen(self) -> tuple[tuple[str, Word], ...]:
        """The variables of a start; one that was only put into its words is none."""
        return tuple(pair for pair in self.environment if pair[0] not in self._used - self._exported)

    def expanded(self, words: Sequence[Word]) -> Iterator[Word]:
        """The words of a command with everything put in that is plainly known."""
        for word in words:
            yield from [word] if word.known or not word.raw else self._expanded(word)

    def _expanded(self, word: Word) -> Iterator[Word]:
        match = _ALONE.fullmatch(word.raw)
        if match is None:
            yield self._filled(word)
            return
        name = match["plain"] or match["braced"]
        held = self._values.get(name)
        if held is None:
            yield word
            return
        self._used.add(name)
        if match["all"]:
            yield from (replace(item, line=word.line) for item in held)
        elif match["quote"]:
            yield Word(held[0].text if held else "", word.line)
        else:
            yield from (Word(part, word.line) for item in held[:1] for part in item.text.split())

    def _filled(self, word: Word) -> Word:
        names = {one or two for one, two in _INSIDE.findall(word.raw)}
        held = {name: items[0].text for name in names if (items := self._values.get(name))}
        text = _INSIDE.sub(lambda match: held.get(match[1] or match[2], match[0]), word.text)
        split = '"' not in word.raw and any(re.search(r"\s", value) for value in held.values())
        if len(held) < len(names) or not names or split or re.search(r"['\\`$]", _INSIDE.sub("", word.raw)):
            return word
        self._used.update(names)
        return Word(text, word.line) if len(text) < _MOST_TEXT else word

    def _given(self, word: Word, value: str) -> tuple[Word, ...] | None:
        if word.items is not None:
            items = tuple(self.expanded(word.items))
            return items if all(item.known for item in items) else None
        filled = word if word.known else self._filled(word)
        match = _ASSIGNED.fullmatch(filled.text)
        return (Word(match["value"] if match else value, word.line),) if filled.known else None


def _joined(before: tuple[Word, ...], given: tuple[Word, ...]) -> tuple[Word, ...]:
    return (Word("".join(word.text for word in (*before[:1], *given)), given[0].line),)
