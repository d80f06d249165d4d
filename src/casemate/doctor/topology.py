"""How cards reach each other, from what tools print and libraries answer. Pure: texts and numbers in, Pairs out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from casemate.doctor.machine import Card, Pair

Names = Mapping[frozenset[int], str]
"""A word for two cards, by their numbers."""

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_ROW = re.compile(r"^\s*GPU(\d{1,4})\s+(\S.*)$")
_COLUMN = re.compile(r"\bGPU(\d{1,4})\b")
_LINK = re.compile(r"X|NV\d{1,4}|PIX|PXB|PHB|NODE|SYS|SOC")
_PEER = re.compile(r"X|OK|CNS|GNS|TNS|NS|DR|U|N/A")
_OF_A_MATRIX = re.compile(f"(?:{_LINK.pattern}|{_PEER.pattern})")
_CARD = re.compile(r"^\s*GPU (\d{1,4}):")
_SPEED = re.compile(r"^\s*Link (\d+):\s*(?:(\d{1,6}(?:\.\d{1,6})?) GB/s|<?inactive>?)", re.IGNORECASE)

_ANCESTORS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
_PEER_STATUS = {0: "OK", 1: "CNS", 2: "GNS", 3: "TNS", 4: "DR", 5: "NS", 6: "U"}
_NO_ANSWER = ("U", "N/A")


def links(text: str) -> Names:
    """What `nvidia-smi topo -m` says between cards; colours, NICs and the affinity columns are passed over."""
    return _matrix(text, _LINK)


def peers(text: str) -> Names:
    """What `nvidia-smi topo -p2p r` says between cards: `OK`, or short for why not."""
    return _matrix(text, _PEER, must=("OK", "CNS", "GNS", "TNS", "NS", "DR", "U"))


def nvlinks(text: str) -> dict[int, tuple[int, int]]:
    """For each card that `nvidia-smi nvlink -s` lists: how many links are active, and their bytes a second together."""
    found: dict[int, tuple[int, int]] = {}
    card: int | None = None
    for line in _plain(text):
        if heading := _CARD.match(line):
            card = int(heading[1])
        elif card is not None and (link := _SPEED.match(line)):
            active, speed = found.get(card, (0, 0))
            found[card] = (active + 1, speed + round(float(link[2]) * 1e9)) if link[2] else (active, speed)
        elif line.strip():
            card = None
    return found


def pairs(cards: Sequence[int], *, links: Names, peers: Names) -> tuple[Pair, ...]:
    """Every two cards of which either is known."""
    found = []
    for first, second in combinations(cards, 2):
        both = frozenset((first, second))
        link, peer = links.get(both, ""), peers.get(both, "")
        if link or peer:
            found.append(with_peer(Pair(first, second, link), peer))
    return tuple(found)


def with_peer(pair: Pair, peer: str) -> Pair:
    """The pair with what nvidia-smi's short word says of reading each other's memory."""
    if not peer or peer in _NO_ANSWER:
        return pair
    return replace(pair, peer_access=peer == "OK", why="" if peer == "OK" else peer)


def ancestor(level: int) -> str:
    """What nvidia-smi calls NVML's number of a common ancestor; empty for one that it has no word for."""
    return _ANCESTORS.get(level, "")


def peer_word(status: int) -> str:
    """What nvidia-smi calls NVML's number of a peer-to-peer status."""
    return _PEER_STATUS.get(status, "U")


def bonded(first: Card, second: Card, *, direct: int, through_switch: bool) -> str:
    """`NV18` for two cards with links between them, or to one switch; empty without.

    Args:
        first: one card.
        second: the other.
        direct: active links of the first that end at the second.
        through_switch: whether both have links that end at a switch: then the weaker card's links are the bond's.
    """
    if direct:
        return f"NV{direct}"
    least = min(first.nvlinks_active or 0, second.nvlinks_active or 0)
    return f"NV{least}" if through_switch and least else ""


def _matrix(text: str, word: re.Pattern[str], *, must: Sequence[str] = ()) -> Names:
    """The first matrix of cards whose cells are all such words, and hold one of `must` if any is named."""
    columns: list[int] = []
    found: dict[frozenset[int], str] = {}
    for line in [*_plain(text), ""]:
        row = _ROW.match(line)
        cells = row[2].split()[: max(len(columns), 1)] if row else []
        if row and len(cells) == len(columns) and all(map(word.fullmatch, cells)):
            here = int(row[1])
            beside = zip(columns, cells, strict=True)
            found |= {frozenset((here, column)): cell for column, cell in beside if column != here and cell != "X"}
        elif found and (not must or set(must) & set(found.values())):
            return found
        elif not row or not _OF_A_MATRIX.fullmatch(cells[0]):
            found, columns = {}, [int(number) for number in _COLUMN.findall(line)]
    return {}


def _plain(text: str) -> list[str]:
    return [_ANSI.sub("", line) for line in text.splitlines()]
