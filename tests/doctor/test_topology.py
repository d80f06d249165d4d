from __future__ import annotations

import pytest

from casemate.doctor import topology
from casemate.doctor.machine import Pair

FOUR = """\
\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV4\tSYS\tSYS\tPIX\t0-31\t0\t\tN/A
GPU1\tNV4\t X \tSYS\tSYS\tPXB\t0-31\t0\t\tN/A
GPU2\tSYS\tSYS\t X \tPHB\tSYS\t32-63\t1\t\tN/A
GPU3\tSYS\tSYS\tPHB\t X \tSYS\t32-63\t1\t\tN/A
NIC0\tPIX\tPXB\tSYS\tSYS\t X

Legend:

  X    = Self
  NV#  = Connection traversing a bonded set of # NVLinks

NIC Legend:

  NIC0: mlx5_0
"""
PEERS = """\
 \t\x1b[4mGPU0\tGPU1\tGPU2\t\x1b[0m
 GPU0\tX\tOK\tCNS\t
 GPU1\tOK\tX\tTNS\t
 GPU2\tCNS\tTNS\tX\t

Legend:

  X    = Self
  OK   = Status Ok
"""
LINKS = """\
GPU 0: Made up (UUID: GPU-1)
\t Link 0: 26.562 GB/s
\t Link 1: 26.562 GB/s
\t Link 2: <inactive>
GPU 1: Made up (UUID: GPU-2)
\t Link 0: <inactive>
"""


def words(found: topology.Names) -> dict[tuple[int, ...], str]:
    return {tuple(sorted(both)): word for both, word in found.items()}


def test_a_matrix_of_links_is_read_through_colours_and_between_other_columns() -> None:
    assert words(topology.links(FOUR)) == {
        (0, 1): "NV4", (0, 2): "SYS", (0, 3): "SYS", (1, 2): "SYS", (1, 3): "SYS", (2, 3): "PHB",
    }  # fmt: skip


def test_a_matrix_of_peers_is_not_taken_for_one_of_links_nor_the_other_way_round() -> None:
    assert words(topology.peers(PEERS)) == {(0, 1): "OK", (0, 2): "CNS", (1, 2): "TNS"}
    assert topology.links(PEERS) == topology.peers(FOUR) == {}
    assert words(topology.links(FOUR + PEERS)) == words(topology.links(FOUR))
    assert words(topology.peers(FOUR + PEERS)) == words(topology.peers(PEERS))
    assert words(topology.peers(PEERS + FOUR)) == words(topology.peers(PEERS))


@pytest.mark.parametrize(
    "text", ["", "GPU0\n", "\tGPU0\nGPU0\t X \n", "\tGPU0\tGPU1\nGPU0\t X \n", "Unable to determine"]
)
def test_a_single_card_or_a_torn_matrix_tells_of_no_pair(text: str) -> None:
    assert topology.links(text) == topology.peers(text) == {}


def test_active_links_and_their_speed_are_added_up_for_each_card() -> None:
    assert topology.nvlinks(LINKS) == {0: (2, 53_124_000_000), 1: (0, 0)}
    assert topology.nvlinks("GPU 0: Made up (UUID: GPU-1)\nunrelated\n\t Link 0: 26.562 GB/s\n") == {}


def test_pairs_are_made_of_both_matrices_and_only_of_cards_that_stand_in_one() -> None:
    pairs = topology.pairs([0, 1, 2, 7], links=topology.links(FOUR), peers=topology.peers(PEERS))
    assert pairs == (
        Pair(0, 1, "NV4", peer_access=True),
        Pair(0, 2, "SYS", peer_access=False, why="CNS"),
        Pair(1, 2, "SYS", peer_access=False, why="TNS"),
    )


@pytest.mark.parametrize("word", ["U", "N/A", ""])
def test_a_peer_status_that_nobody_knows_is_neither_yes_nor_no(word: str) -> None:
    assert topology.with_peer(Pair(0, 1, "PIX"), word) == Pair(0, 1, "PIX")
