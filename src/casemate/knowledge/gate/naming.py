"""Whether what a text calls a node is its name, another's, or none's."""

from __future__ import annotations

from functools import lru_cache

from casemate.knowledge import words
from casemate.knowledge.gate.claims import Claim
from casemate.knowledge.gate.kinship import Kinship
from casemate.knowledge.gate.lexicon import Lexicon, catalogue, stems
from casemate.knowledge.gate.proving import Fault, Prover
from casemate.knowledge.graph import Graph
from casemate.knowledge.node import Kind, Node

_LONG = 4
"""From how many words on a name is an official title, which only its owner may bear."""
_TELLING = 2
"""How many telling words a name has at least that can be told to be none of the node's."""
_VERY_LIKE = 0.8
_UNLIKE = 0.45
_KEPT = 8192


class Namer:
    """Judges names against one graph; remembers what it found."""

    def __init__(self, graph: Graph, lexicon: Lexicon, *, prover: Prover, kin: Kinship) -> None:
        self._graph = graph
        self._lexicon = lexicon
        self._prover = prover
        self._kin = kin
        self._judged = lru_cache(_KEPT)(self._judge)
        self._told = lru_cache(_KEPT)(self._words_around)

    def fault(self, node: Node, claim: Claim, *, listed: tuple[str, ...] = ()) -> Fault | None:
        """What is wrong with a name; None if it fits, or may be a paraphrase.

        Args:
            node: what is named.
            claim: the name.
            listed: ids that stand in one list with the node; a name may be meant for any of them.
        """
        if listed and any(self._lexicon.fits(other, words.fold(claim.name)) for other in listed):
            return None
        return self._judged(node, claim.name, marked=claim.marked, field=claim.field, title=claim.title)

    def name(self, id_: str, *, like: str) -> str:
        """The name of a node, in the language of what it replaces."""
        node = self._graph.node(id_)
        if node is None:
            return id_
        if not words.has_han(like):
            return node.name
        chinese = [term for term in self._graph.aliases(id_) if words.has_han(term)]
        return chinese[0] if chinese else node.name_zh or node.name

    def tactic_fault(self, node: Node, claim: Claim) -> Fault | None:
        """What is wrong with the tactic that a technique is put under by name."""
        named = self._lexicon.tactics.get(words.fold(claim.name))
        right = self._prover.tactics(node.id)
        if not named or not right or named in right:
            return None
        return Fault("H7", f"it is not a technique of {claim.name!r}", right)

    def _judge(self, node: Node, name: str, *, marked: bool, field: bool, title: bool) -> Fault | None:
        folded = words.fold(name)
        until = self._lexicon.former.get(node.id, {}).get(folded)
        if until and folded != words.fold(node.name):
            return Fault("H4", f"called {name!r} until {until}", (node.id,))
        if self._lexicon.fits(node.id, folded):
            return None
        named = self._lexicon.owners(folded)
        if not named:
            parts = self._lexicon.parts(folded)
            if any(self._lexicon.fits(node.id, part) for part in parts):
                return None
            named = next((found for part in parts if (found := self._lexicon.owners(part))), ())
        if named:
            claim = Claim(name, 0, 0, marked, field)
            return self._foreign(node, claim, named=named, folded=folded)
        return self._unknown(node, name) if field or title else None

    def _foreign(self, node: Node, claim: Claim, *, named: tuple[str, ...], folded: str) -> Fault | None:
        """A name that others bear."""
        same = tuple(id_ for id_ in named if catalogue(id_) == catalogue(node.id))
        tactic = next((id_ for id_ in named if id_.startswith("TA")), "")
        if node.kind is Kind.TECHNIQUE and tactic and not same:
            spoken = claim.field or words.has_han(claim.name) or claim.name[0].isupper()
            return self.tactic_fault(node, claim) if spoken and claim.marked else None
        if not same:
            unlike = not set(stems(claim.name)) & self._lexicon.stems(node.id)
            foreign = unlike and (claim.field or self._is_unattacked(node, claim, named=named))
            return Fault("H4", f"{claim.name!r} is {named[0]}", (node.id,)) if foreign else None
        if not claim.marked and len(folded) < 2 * _LONG and " " not in folded and not words.has_han(folded):
            return None
        if self._may_stand_for(node, same, folded=folded, field=claim.field):
            return None
        grade = "H7" if node.kind is Kind.CLAUSE else "H4"
        return Fault(grade, f"{claim.name!r} is {same[0]}", (node.id,))

    def _is_unattacked(self, node: Node, claim: Claim, *, named: tuple[str, ...]) -> bool:
        """Whether a pattern is called by the Chinese name of what it has nothing to do with; it has none of its own."""
        if node.kind is not Kind.PATTERN or not claim.marked or not words.has_han(claim.name):
            return False
        around = (node.id, *self._kin.ancestors(node.id), *self._kin.children(node.id))
        touched = {end for one in around for edge in self._graph.around(one) for end in (edge.start, edge.end)}
        near = {up for one in touched for up in (one, *self._kin.parents(one), *self._kin.children(one))}
        return all(id_[0] in "CT" and id_ not in near and self._is_full_name(id_, claim.name) for id_ in named)

    def _is_full_name(self, id_: str, name: str) -> bool:
        other = self._graph.node(id_)
        return other is not None and words.fold(name) in self._lexicon.parts(words.fold(other.name_zh) + "()")

    def _may_stand_for(self, node: Node, owners: tuple[str, ...], *, folded: str, field: bool) -> bool:
        """Whether another's name may be used for a node: a word for its family may, the title of a sibling may not."""
        above = self._kin.ancestors(node.id)
        if node.kind is Kind.TECHNIQUE and above & set(owners):
            return True
        if (catalogue(node.id), folded) not in self._lexicon.official or node.kind is Kind.CLAUSE:
            return self._kin.related(node.id, owners) or set(stems(folded)) <= self._lexicon.stems(node.id)
        if field or len(folded.split()) >= _LONG:
            return False
        return any(owner in above or node.id in self._kin.ancestors(owner) for owner in owners)

    def _unknown(self, node: Node, name: str) -> Fault | None:
        """A name that nobody bears: wrong if it is all but another's, or has nothing to do with the node."""
        given = set(stems(name))
        ours = self._lexicon.stems(node.id) or frozenset(stems(node.name))
        if not given or words.has_han(name) or node.kind is Kind.VULNERABILITY:
            return None
        if given & ours:
            other = self._mistaken_for(node, name)
            return Fault("H4", f"{name!r} is close to {other}", (node.id,)) if other else None
        known = node.kind is Kind.DETECTION or self._lexicon.in_vocabulary(node.id, name)
        telling = known and len(given) >= _TELLING and not given & self._told(node.id)
        return Fault("H4", f"it is not called {name!r}", (node.id,)) if telling else None

    def _mistaken_for(self, node: Node, name: str) -> str:
        """The node that a name is all but the name of; empty if it is nearer to the node's own, or to none."""
        if self._lexicon.likeness(node.id, name) > _UNLIKE:
            return ""
        best, likeness = self._lexicon.nearest(node.id, name)
        mistaken = likeness >= _VERY_LIKE and best != node.id and not self._kin.related(node.id, (best,))
        return best if mistaken else ""

    def _words_around(self, id_: str) -> frozenset[str]:
        """The telling words of what is said of a node and of what its neighbours are called."""
        node = self._graph.node(id_)
        found = set(stems(node.text)) if node else set()
        for other in (*self._kin.parents(id_), *self._kin.children(id_)):
            found |= self._lexicon.stems(other)
        return frozenset(found)
