"""A node as a Passage: what a small model can read quickly, with the names and clauses that it may cite."""

from __future__ import annotations

import re

from casemate.chat.wire import Passage
from casemate.knowledge import words
from casemate.knowledge.curated import tables
from casemate.knowledge.graph import Graph
from casemate.knowledge.node import EdgeKind, Kind, Node, State

MAX_WORDS = 90

_HAN = re.compile(r"[\u3400-\u9fff]")
_OPENING_WORDS = 45
_ADVICE_WORDS = 24


def passage(node: Node, graph: Graph, *, score: float) -> Passage:
    """The node in at most MAX_WORDS words; two Chinese characters count as a word. Its name is the title."""
    parts = [_status(node, graph), _opening(node.text, _OPENING_WORDS), _aliases(node, graph)]
    if node.kind is Kind.WEAKNESS:
        parts += [_labelled("Prevent", _opening(node.advice, _ADVICE_WORDS)), _enables(node, graph), _touches(node)]
    if node.kind is Kind.TECHNIQUE:
        parts += [
            _neighbours(node, graph, relation="achieves", label="Tactic"),
            _neighbours(node, graph, relation="mitigates", label="Mitigations"),
        ]
    if node.kind is Kind.RISK:
        parts.append(_neighbours(node, graph, relation="has-member", label="Weaknesses"))
    text = _clip(" ".join(filter(None, parts)), MAX_WORDS)
    return Passage(node.id, node.name, text, node.source, node.version, score)


def count(text: str) -> int:
    """How many words a text has; two Chinese characters count as one."""
    rest, chinese = _HAN.subn(" ", text)
    return len(rest.split()) + (chinese + 1) // 2


def first_sentence(text: str) -> str:
    """The text up to its first full stop."""
    return re.split(r"(?<=[.!?。])\s+", text, maxsplit=1)[0]


def _status(node: Node, graph: Graph) -> str:
    if node.state is State.LIVE:
        return ""
    successors = [edge.end for edge in graph.around(node.id, "replaced-by") if edge.start == node.id]
    return node.state.capitalize() + (f"; replaced by {', '.join(successors)}." if successors else ".")


def _opening(text: str, limit: int) -> str:
    """Whole sentences within a limit of words; the first one clipped if it alone is longer."""
    sentences = re.split(r"(?<=[.!?。])\s+", text)
    kept = _clip(sentences[0], limit)
    for sentence in sentences[1:]:
        if count(kept) + count(sentence) > limit:
            break
        kept = f"{kept} {sentence}"
    return kept


def _aliases(node: Node, graph: Graph) -> str:
    known = graph.aliases(node.id)
    chosen = [*(term for term in known if words.has_han(term))][:2] + [*(t for t in known if not words.has_han(t))][:1]
    return _labelled("Also called", ", ".join(chosen), stop=".")


def _enables(node: Node, graph: Graph) -> str:
    """The technique that we map it to, with the number of exploited vulnerabilities that show it."""
    technique = graph.node(tables.technique(node.id))
    if technique is None:
        return ""
    shown = sum(
        len(edge.support)
        for edge in graph.around(node.id, "enables")
        if edge.end == technique.id and edge.kind is EdgeKind.EVIDENCE
    )
    return f"Enables {technique.id} {technique.name}" + (f" ({shown} exploited CVEs)." if shown else ".")


def _touches(node: Node) -> str:
    first: dict[str, str] = {}
    for clause in tables.clauses(node.id):
        first.setdefault(clause.framework, clause.id)
    return _labelled("Touches", "; ".join(f"{framework} {id_}" for framework, id_ in first.items()), stop=".")


def _neighbours(node: Node, graph: Graph, *, relation: str, label: str) -> str:
    ends = [edge.end if edge.start == node.id else edge.start for edge in graph.around(node.id, relation)]
    ends.sort(key=lambda end: not tables.technique(end))  # the weaknesses that we know best first
    found = [neighbour for end in ends[:3] if (neighbour := graph.node(end))]
    return _labelled(label, "; ".join(f"{neighbour.id} {neighbour.name}" for neighbour in found), stop=".")


def _labelled(label: str, text: str, *, stop: str = "") -> str:
    return f"{label}: {text}{stop}" if text else ""


def _clip(text: str, limit: int) -> str:
    if count(text) <= limit:
        return text
    kept, room = [], limit - 1
    for word in text.split():
        room -= count(word)
        if room < 0:
            break
        kept.append(word)
    return " ".join(kept) + " …"
