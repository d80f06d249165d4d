"""Gates for a model's prose: what it quotes must be in the material, and it may not overrule a finding.

A sentence that fails is dropped whole; half a claim would be a new one. Identifiers are checked by the citation gate
that the roof hands in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

from casemate.chat.wire import Citation
from casemate.knowledge.gate import mentions

_SENTENCE = re.compile(r"(?:`[^`]*`|[^`.!?。！？\n]|[.!?](?=\S)|`)+(?:[.!?。！？]+|(?=\n)|$)|[.!?。！？]+")
_QUOTED = re.compile(r"`([^`]*)`")
_ACQUITTAL = re.compile(
    r"""\b(?:not\ (?:a\ )?(?:real\ )?vulnerab\w*
    | no\ (?:security\ )?(?:risk|issue|vulnerab\w*|problem|finding|weakness(?:e)?|flaw)s?\b
    | (?:code|function|query|line|snippet)\ is\ (?:already\ )?(?:safe|secure) | false\ positive | harmless)
    | (?:没有|不存在|不构成|无)(?:任何)?(?:安全)?(?:漏洞|风险|问题|发现|缺陷|弱点) | 误报
    | (?:代码|函数|查询|写法)[^，。]{0,12}(?:是|已经)安全""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words by which a model, or an instruction planted in the code, would declare a finding void."""


_CODE_BLOCK = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_LIST_MARK = re.compile(r"^\s*(?:#+|[-*+]|\d+\.)\s+", re.MULTILINE)
_ENDS = (".", "!", "?", "。", "！", "？")
_SOURCE = re.compile(r"\[[^\[\]]+]\Z")


class Gate(Protocol):
    """The citation gate: a text in which every identifier is right, and what was checked.

    Wired by the roof to `knowledge.citations.repair` with its graph.
    """

    def __call__(self, text: str) -> tuple[str, tuple[Citation, ...]]:
        """Repair or drop what the graph does not know."""
        ...


def sentences(text: str) -> list[str]:
    """The sentences of a text in either language; a full stop inside backticks or a dotted name ends none."""
    return [match.group().strip() for match in _SENTENCE.finditer(text) if match.group().strip()]


def prose(text: str) -> str:
    """The complete sentences of an answer, each once: no code blocks, list marks, or copies of a prompt's fences."""
    text = _CODE_BLOCK.sub(" ", text)
    text = _LIST_MARK.sub("", text).replace("**", "")
    complete = (part for part in sentences(text) if (part.endswith(_ENDS) or _SOURCE.search(part)) and "[[" not in part)
    return joined(dict.fromkeys(complete))


def joined(parts: Iterable[str]) -> str:
    """Sentences as one paragraph: no space after Chinese punctuation, one after any other."""
    text = ""
    for part in parts:
        text += part if not text or text.endswith(_ENDS[3:]) else f" {part}"
    return text


def supported(text: str, *, material: Iterable[str]) -> str:
    """The evidence gate: the text without the sentences that quote, in backticks, code absent from the material.

    White space is folded; a call may be named with empty brackets (`execute()`); an unpaired backtick fails.
    """
    known = [_folded(piece) for piece in material]
    return joined(sentence for sentence in sentences(text) if _quotes_only(sentence, known))


def unacquitted(text: str) -> str:
    """The text without the sentences that declare a finding void: the rules decided, the model only explains."""
    return joined(sentence for sentence in sentences(text) if not _ACQUITTAL.search(sentence))


def offered_only(text: str, *, offered: Iterable[str]) -> str:
    """The text without the sentences that name an identifier absent from the offered texts, however real it is."""
    known = {mention.id for piece in offered for mention in mentions.find(piece)}
    return joined(part for part in sentences(text) if all(found.id in known for found in mentions.find(part)))


def _quotes_only(sentence: str, known: list[str]) -> bool:
    if sentence.count("`") % 2:
        return False
    return all(_is_in(_folded(quote), known) for quote in _QUOTED.findall(sentence))


def _is_in(quote: str, known: list[str]) -> bool:
    call = quote.removesuffix("()")
    return any(quote in piece or (call != quote and f"{call}(" in piece) for piece in known)


def _folded(text: str) -> str:
    return " ".join(text.split())
