"""A node as a Passage: what a small model can read quickly, with the names and clauses that it may cite."""

from __future__ import annotations

import re
from dataclasses import dataclass

from casemate.chat.wire import Passage
from casemate.knowledge import words
from casemate.knowledge.curated import tables
from casemate.knowledge.curated.dossiers import Dossier, dossier
from casemate.knowledge.graph import Graph
from casemate.knowledge.node import EdgeKind, Kind, Node, State

MAX_WORDS = 90

_HAN = re.compile(r"[\u3400-\u9fff]")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*(?!\Z)")
_PIECE = re.compile(r"[\u3400-\u9fff]\S?|[^\s\u3400-\u9fff]+|\s+")
_FULL_STOPS = ("。", "！", "？")
_OPENING_WORDS = 45
_ADVICE_WORDS = 24
_NEIGHBOURS = 3


@dataclass(frozen=True, slots=True)
class _Labels:
    """How each part is introduced; `{}` is the part."""

    aliases: str
    prevention: str
    enables: str
    touches: str
    tactic: str
    mitigations: str
    weaknesses: str


_ENGLISH = _Labels(
    "Also called: {}", "Prevent: {}", "Enables: {}", "Touches: {}", "Tactic: {}", "Mitigations: {}", "Weaknesses: {}"
)
_CHINESE = _Labels("又称：{}", "预防：{}", "可导致：{}", "涉及：{}", "战术：{}", "缓解措施：{}", "弱点：{}")


def passage(node: Node, graph: Graph, *, score: float, chinese: bool = False) -> Passage:
    """The node in at most MAX_WORDS words; two Chinese characters count as a word. Its name is the title.

    What our dossier says of a weakness comes in the language asked for, everything else as its source has it.
    """
    say = _CHINESE if chinese else _ENGLISH
    curated = dossier(node.id)
    half = (curated.zh if chinese else curated.en) if curated else None
    told = half.description if half else node.text or _saying(node, graph, chinese=chinese)
    parts = [_status(node, graph), _opening(told, _OPENING_WORDS)]
    parts.append(_aliases(node, graph, say=say))
    match node.kind:
        case Kind.WEAKNESS:
            parts += [_prevention(node, curated, say=say), _enables(node, graph, say=say), _touches(node, say=say)]
        case Kind.TECHNIQUE:
            parts += [
                _labelled(say.tactic, _named(_around(node, graph, relation="achieves", kind=Kind.TACTIC))),
                _labelled(say.mitigations, _named(_around(node, graph, relation="mitigates", kind=Kind.MITIGATION))),
            ]
        case Kind.RISK:
            members = _around(node, graph, relation="has-member", kind=Kind.WEAKNESS)
            members.sort(key=lambda member: not tables.technique(member.id))  # those that we know best first
            parts.append(_labelled(say.weaknesses, _named(members)))
        case _:
            pass
    text = _clip(" ".join(filter(None, parts)), MAX_WORDS)
    return Passage(node.id, node.name, text, node.source, node.version, score)


def count(text: str) -> int:
    """How many words a text has; two Chinese characters count as one."""
    rest, chinese = _HAN.subn(" ", text)
    return len(rest.split()) + (chinese + 1) // 2


def first_sentence(text: str) -> str:
    """The text up to its first full stop."""
    return _SENTENCE_END.split(text, maxsplit=1)[0]


def _status(node: Node, graph: Graph) -> str:
    if node.state is State.LIVE:
        return ""
    successors = [edge.end for edge in graph.around(node.id, "replaced-by") if edge.start == node.id]
    return node.state.capitalize() + (f"; replaced by {', '.join(successors)}." if successors else ".")


def _opening(text: str, limit: int) -> str:
    """Whole sentences within a limit of words; the first one clipped if it alone is longer."""
    sentences = _SENTENCE_END.split(text)
    kept = _clip(sentences[0], limit)
    for sentence in sentences[1:]:
        if count(kept) + count(sentence) > limit:
            break
        kept += sentence if kept.endswith(_FULL_STOPS) else f" {sentence}"
    return kept


def _saying(node: Node, graph: Graph, *, chinese: bool) -> str:
    """What stands in where no text is at hand: a sentence that people say of it, in the language if there is one."""
    said = graph.phrases(node.id)
    return next((text for text in said if words.has_han(text) == chinese), said[0] if said else "")


def _aliases(node: Node, graph: Graph, *, say: _Labels) -> str:
    known = graph.aliases(node.id)
    chosen = [*(term for term in known if words.has_han(term))][:2] + [*(t for t in known if not words.has_han(t))][:1]
    return _labelled(say.aliases, ", ".join(chosen))


def _prevention(node: Node, curated: Dossier | None, *, say: _Labels) -> str:
    """What the first example of the dossier changes, else the catalogue's advice."""
    if curated is None:
        return _labelled(say.prevention, _opening(node.advice, _ADVICE_WORDS))
    first = curated.examples[0]
    return _labelled(say.prevention, _opening(first.fix_zh if say is _CHINESE else first.fix_en, _ADVICE_WORDS))


def _enables(node: Node, graph: Graph, *, say: _Labels) -> str:
    """The technique that we map it to, with the number of exploited vulnerabilities that show it."""
    technique = graph.node(tables.technique(node.id))
    if technique is None:
        return ""
    shown = sum(
        len(edge.support)
        for edge in graph.around(node.id, "enables")
        if edge.end == technique.id and edge.kind is EdgeKind.EVIDENCE
    )
    return _labelled(say.enables, f"{technique.id} {technique.name}" + (f" ({shown} CVEs)" if shown else ""))


def _touches(node: Node, *, say: _Labels) -> str:
    first: dict[str, str] = {}
    for clause in tables.clauses(node.id):
        first.setdefault(clause.framework, clause.id)
    return _labelled(say.touches, "; ".join(f"{framework} {id_}" for framework, id_ in first.items()))


def _around(node: Node, graph: Graph, *, relation: str, kind: Kind) -> list[Node]:
    ends = (edge.end if edge.start == node.id else edge.start for edge in graph.around(node.id, relation))
    return [found for end in ends if (found := graph.node(end)) and found.kind is kind]


def _named(nodes: list[Node]) -> str:
    return "; ".join(f"{node.id} {node.name}" for node in nodes[:_NEIGHBOURS])


def _labelled(label: str, text: str) -> str:
    if not text:
        return ""
    stop = "" if text.endswith((*_FULL_STOPS, ".", "…")) else "。" if words.has_han(label) else "."
    return label.format(text) + stop


def _clip(text: str, limit: int) -> str:
    if count(text) <= limit:
        return text
    end, room = 0, limit - 1
    for piece in _PIECE.finditer(text):
        room -= count(piece.group())
        if room < 0:
            break
        end = piece.end()
    return text[:end].rstrip() + " …"
