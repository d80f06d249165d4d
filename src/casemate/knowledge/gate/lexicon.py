"""What the nodes of a graph are called: who owns a name, which names fit a node, and how near two names are.

Built once per graph from its names, aliases and editions, then only memory: no look-up here touches the file.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import chain
from operator import itemgetter
from typing import Final
from weakref import WeakKeyDictionary

from casemate.knowledge import words
from casemate.knowledge.gate.chinese import MITIGATIONS
from casemate.knowledge.graph import Graph
from casemate.knowledge.node import Kind, State

_NODES = (
    "SELECT id, kind, name, name_zh, state FROM node WHERE kind NOT IN ('vulnerability', 'detection') ORDER BY rowid"
)
_ALIASES = "SELECT term, id FROM alias ORDER BY source = 'CWE', rowid"
_EDITIONS = """
    SELECT edition.id, edition.name, edition.version FROM edition JOIN node USING (id, source)
    WHERE edition.name != node.name AND edition.name != '' AND node.kind != 'vulnerability'
"""
_PAST_RISK = re.compile(r"OWASP Top Ten (?P<year>\d{4}) Category A(?P<risk>\d+)(?::\d{4})? - (?P<name>.+)")
_TAIL = re.compile(r"\s*[(（](?P<inner>[^()（）]+)[)）]\s*\Z")
_GENERIC = re.compile(
    r"\s*(?:vulnerabilit(?:y|ies)|weakness(?:es)?|flaws?|attacks?|issues?|defects?|risks?|techniques?|tactics?|bugs?"
    r"|漏洞|攻击|缺陷|弱点|风险|问题|技术|战术|类漏洞)\Z"
)
_POINT = re.compile(r"[\d, a-zA-Z]{1,8}|at rest|in transit|静态")
"""What stands in the brackets of a clause's name and is no name: its paragraph, or which of two it is."""
_BRACKETED = (Kind.WEAKNESS, Kind.RISK, Kind.PATTERN, Kind.CLAUSE)
_PARTS = re.compile(r"\s*[(（/／]\s*|\s*[)）]\s*")
_COMMON_POSTING = 200
"""A word of more names than this says nothing about which one is meant."""
_RATED = 8
_KEPT = 20_000


class Lexicon:
    """The names of one graph.

    `names` is what a text may call a node: folded names and aliases → the live ids. `official` are full names with
    their catalogues, `former` the names that older editions gave, `past_risks` the Top 10 classes that the graph
    lacks, `tactics` every name of a tactic → its id, `risk_years` the years of the lists it holds, newest first.
    """

    def __init__(self, graph: Graph) -> None:
        self.names: dict[str, tuple[str, ...]] = {}
        self.official: set[tuple[str, str]] = set()
        self.former: dict[str, dict[str, str]] = defaultdict(dict)
        self.past_risks: dict[str, str] = {}
        self.tactics: dict[str, str] = {}
        self.risk_years: tuple[str, ...] = ()
        self._right: dict[str, set[str]] = defaultdict(set)
        self._titles: list[tuple[str, str]] = []
        self._fill(graph)
        self.longest: Final = max(map(len, self.names), default=0)
        self.stems = lru_cache(_KEPT)(self._stems_of)
        self._weights = lru_cache(_KEPT)(self._weights_of)

    def fits(self, id_: str, folded: str) -> bool:
        """Whether a folded name is one of the node's own."""
        return folded in self._right.get(id_, ()) or _GENERIC.sub("", folded) in self._right.get(id_, ())

    def owners(self, folded: str) -> tuple[str, ...]:
        """Who is called so; a generic last word (`… vulnerability`) does not count."""
        return self.names.get(folded) or self.names.get(_GENERIC.sub("", folded), ())

    def parts(self, folded: str) -> list[str]:
        """A name given twice, `SQL注入 (SQL Injection)`, as its two names; else none."""
        found = [part for part in _PARTS.split(folded) if part]
        return found if len(found) > 1 else []

    def in_vocabulary(self, id_: str, name: str) -> bool:
        """Whether every telling word of a name occurs in some name of the node's catalogue."""
        known = self._index[0].get(catalogue(id_), {})
        return all(stem in known for stem in stems(name))

    def likeness(self, id_: str, name: str) -> float:
        """How like a name is to those of a node, 0 to 1: the share of their telling words, rare ones counting more."""
        return self._likeness(id_, self._weighed(id_, name))

    def nearest(self, id_: str, name: str) -> tuple[str, float]:
        """The node of the same catalogue whose names are most like a name, and how like; the id is empty if none is."""
        given = self._weighed(id_, name)
        postings, _ = self._postings_of(id_)
        scores: dict[str, float] = defaultdict(float)
        for stem, weight in given.items():
            owners = postings.get(stem, ())
            if len(owners) <= _COMMON_POSTING:
                for owner in owners:
                    scores[owner] += weight
        best = sorted(scores, key=lambda owner: -scores[owner])[:_RATED]
        return max(((owner, self._likeness(owner, given)) for owner in best), key=itemgetter(1), default=("", 0.0))

    def _likeness(self, id_: str, given: Mapping[str, float]) -> float:
        total = sum(given.values())
        best = 0.0
        for ours in self._weights(id_):
            shared = sum(weight for stem, weight in given.items() if stem in ours)
            best = max(best, shared / math.sqrt((total or 1.0) * (sum(ours.values()) or 1.0)))
        return best

    def _weights_of(self, id_: str) -> tuple[dict[str, float], ...]:
        return tuple(self._weighed(id_, name) for name in sorted(self._right.get(id_, ())))

    def _weighed(self, id_: str, name: str) -> dict[str, float]:
        """The telling words of a name, each with how rare it is in the catalogue of an id."""
        postings, size = self._postings_of(id_)
        return {stem: math.log(1 + size / (1 + len(postings.get(stem, ())))) for stem in stems(name)}

    def _stems_of(self, id_: str) -> frozenset[str]:
        return frozenset(stem for name in self._right.get(id_, ()) for stem in stems(name))

    def _fill(self, graph: Graph) -> None:
        owned: dict[str, dict[str, None]] = defaultdict(dict)
        rows = graph.rows(_NODES)
        for id_, kind, name, name_zh, state in rows:
            for term in _right_names(kind, name, name_zh=name_zh):
                self._right[id_].add(words.fold(term))
            if state == State.LIVE and name:
                for term in _names(kind, name, name_zh=name_zh):
                    owned[words.fold(term)][id_] = None
                self.official.add((catalogue(id_), words.fold(name)))
                self._titles.append((id_, name))
        live = {id_ for id_, *_, state in rows if state == State.LIVE}
        ours = ((term, id_) for id_, terms in MITIGATIONS.items() for term in terms if id_ in live)
        for term, id_ in chain(graph.rows(_ALIASES), ours):
            self._right[id_].add(words.fold(term))
            if id_ in live:
                owned[words.fold(term)][id_] = None
        for id_, name, version in graph.rows(_EDITIONS):
            self.former[id_][words.fold(name)] = version
            owned[words.fold(name)].setdefault(id_)
        self._lend(rows, owned)
        self.names = {term: tuple(ids) for term, ids in owned.items() if term}
        self.tactics = {term: id_ for term, ids in self.names.items() for id_ in ids if id_.startswith("TA")}
        self._fill_risks(rows)

    def _lend(self, rows: Iterable[tuple[str, str, str, str, str]], owned: Mapping[str, dict[str, None]]) -> None:
        """The Chinese names of weaknesses and techniques for patterns that have the same English name."""
        lenders: dict[str, set[str]] = defaultdict(set)
        for id_, kind, *_ in rows:
            for term in self._right[id_] if kind in (Kind.WEAKNESS, Kind.TECHNIQUE) else ():
                lenders[_plain(term)].add(id_)
        full = {id_: set(map(_plain, map(words.fold, _names(kind, name, name_zh="")))) for id_, kind, name, *_ in rows}
        for id_, kind, name, _, state in rows:
            if kind != Kind.PATTERN or state != State.LIVE:
                continue
            for lender in sorted(lenders[_plain(words.fold(name))]):
                terms = [term for term in sorted(self._right[lender]) if words.has_han(term)]
                self._right[id_].update(terms)
                for term in terms if full[id_] & full[lender] else ():
                    owned[term][id_] = None

    def _fill_risks(self, rows: Iterable[tuple[str, str, str, str, str]]) -> None:
        """Classes of the Top 10: those of lists that only CWE tells of, and Chinese names that hold for every year."""
        years: set[str] = set()
        chinese: dict[str, set[str]] = defaultdict(set)
        risks = []
        for id_, kind, name, name_zh, _ in rows:
            if kind == Kind.CATEGORY and (past := _PAST_RISK.fullmatch(name)):
                self.past_risks[f"A{int(past['risk']):02}:{past['year']}"] = past["name"]
            elif kind == Kind.RISK:
                years.add(id_.rpartition(":")[2])
                risks.append((id_, words.fold(name)))
                chinese[words.fold(name)].add(words.fold(name_zh or name))
        for id_, folded in risks:
            self._right[id_] |= chinese[folded]
        self.risk_years = tuple(sorted(years, reverse=True))

    def _postings_of(self, id_: str) -> tuple[Mapping[str, list[str]], int]:
        postings, sizes = self._index
        return postings.get(catalogue(id_), {}), sizes[catalogue(id_)]

    @cached_property
    def _index(self) -> tuple[dict[str, dict[str, list[str]]], Counter[str]]:
        """Per catalogue: which nodes have a word in their name, and how many nodes there are."""
        postings: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for id_, name in self._titles:
            for stem in stems(name):
                postings[catalogue(id_)][stem].append(id_)
        return postings, Counter(catalogue(id_) for id_, _ in self._titles)


_BUILT: WeakKeyDictionary[Graph, Lexicon] = WeakKeyDictionary()


def lexicon(graph: Graph) -> Lexicon:
    """The names of a graph; read at the first call and kept as long as the graph is."""
    found = _BUILT.get(graph)
    if found is None:
        found = _BUILT[graph] = Lexicon(graph)
    return found


@lru_cache(_KEPT)
def catalogue(id_: str) -> str:
    """The list that an id belongs to, such as `CWE`, `T`, `TA`, `A` or `GDPR`."""
    return re.split(r"[-\d\s:]", id_, maxsplit=1)[0]


@lru_cache(_KEPT)
def stems(name: str) -> tuple[str, ...]:
    """The beginnings of the telling words of a name, and its pairs of Chinese characters."""
    return tuple(dict.fromkeys(word[:5] for word in (*words.latin(name), *words.pairs(name))))


def _plain(folded: str) -> str:
    """An English name without its brackets and hyphens."""
    return _TAIL.sub("", folded).replace("-", " ").strip()


def _names(kind: str, name: str, *, name_zh: str) -> Iterator[str]:
    """What only this node is called, near enough."""
    yield name
    if name_zh:
        yield name_zh
    for given in (name, name_zh) if kind == Kind.CLAUSE else (name,):
        tail = _TAIL.search(given) if kind in _BRACKETED else None
        if tail and tail.start() > 0 and not (kind == Kind.CLAUSE and _POINT.fullmatch(tail["inner"])):
            yield tail["inner"].strip("'\"‘’“” ")
            yield given[: tail.start()]


def _right_names(kind: str, name: str, *, name_zh: str) -> Iterable[str]:
    """What this node may be called, and what stands in its name."""
    found = [*_names(kind, name, name_zh=name_zh)]
    for given in (name, name_zh):
        if kind in (Kind.CLAUSE, Kind.REQUIREMENT, Kind.CONTROL):
            parts = re.split(r"\s*[:：|]\s*|, level \d", given)
            found += [*parts, " ".join(parts), _TAIL.sub("", given)]
    return filter(None, found)
