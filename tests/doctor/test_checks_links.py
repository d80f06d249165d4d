from __future__ import annotations

from dataclasses import replace

import pytest

from casemate.doctor.machine import Machine, Pair
from doctor.boxes import BARE, BOX, CARD, around, check, driven, each, ids, second


def linked(link: str, *, peer: bool | None, machine: Machine = BOX) -> Machine:
    """The box with its two cards joined by this."""
    return replace(machine, pairs=(Pair(0, 1, link, peer_access=peer),))


def test_cards_that_reach_each_other_are_well_over_nvlink_and_over_a_quiet_bus() -> None:
    for link in ("NV18", "PIX", "NODE", "SYS"):
        assert check("links.peer-access", linked(link, peer=True)).verdict == "ok"


def test_cards_without_peer_access_are_slow_and_no_failure() -> None:
    machine = replace(BOX, pairs=(Pair(0, 1, "PHB", peer_access=False, why="CNS"),))
    found = check("links.peer-access", machine)
    assert found.verdict == "warn"
    assert "0 and 1 (CNS)" in found.found
    assert "host's memory" in found.why


@pytest.mark.parametrize("pairs", [(), (Pair(0, 1, "PHB"),), (Pair(0, 0, "X", peer_access=True),)])
def test_peer_access_that_is_not_told_of_every_pair_is_unknown(pairs: tuple[Pair, ...]) -> None:
    assert check("links.peer-access", replace(BOX, pairs=pairs)).verdict == "unknown"


def test_one_pair_of_three_that_is_missing_leaves_the_whole_unknown() -> None:
    three = replace(BOX, cards=(*BOX.cards, replace(CARD, index=2)))
    some = replace(three, pairs=(Pair(0, 1, "NV18", peer_access=True), Pair(1, 2, "NV18", peer_access=True)))
    assert check("links.peer-access", some).verdict == "unknown"
    both_ways = (*some.pairs, Pair(2, 0, "NV18", peer_access=True), Pair(1, 0, "NV18", peer_access=True))
    assert check("links.peer-access", replace(three, pairs=both_ways)).verdict == "ok"


@pytest.mark.parametrize(
    ("iommu", "acs", "verdict"),
    [(True, None, "warn"), (None, True, "warn"), (False, True, "warn"), (False, False, "ok"), (False, None, "unknown")],
)
def test_peer_traffic_that_may_be_redirected_can_hang_two_cards(
    *, iommu: bool | None, acs: bool | None, verdict: str
) -> None:
    machine = around(linked("NODE", peer=True), iommu=iommu, acs_redirect=acs)
    found = check("links.redirection", machine)
    assert found.verdict == verdict
    if verdict == "warn":
        assert "hang" in found.why
        assert "NCCL_P2P_DISABLE=1" in found.remedy
        assert "--disable-custom-all-reduce" in found.remedy


def test_what_has_no_peer_access_or_goes_over_nvlink_cannot_be_redirected() -> None:
    assert check("links.redirection", around(linked("SYS", peer=False), iommu=True)).verdict == "ok"
    assert "links.redirection" not in ids(around(linked("NV18", peer=True), iommu=True))


def test_links_between_cards_are_no_question_of_one_card() -> None:
    alone = ids(replace(BOX, cards=(CARD,), pairs=()))
    assert not {"links.peer-access", "links.redirection"} & alone
    assert "links.pcie" in alone
    assert not [item for item in ids(BARE) if item.startswith("links.")]


def test_a_link_that_is_down_shows_in_unlike_counts_and_in_none_where_the_topology_has_some() -> None:
    assert check("links.nvlink", second(nvlinks_active=17)).verdict == "warn"
    assert check("links.nvlink", each(nvlinks_active=0)).verdict == "warn"
    assert check("links.nvlink", second(nvlinks_active=None)).verdict == "unknown"
    assert "links.nvlink" not in ids(each(linked("PHB", peer=True), nvlinks_active=0))


@pytest.mark.parametrize(
    ("switch", "manager", "state", "cuinit", "verdict"),
    [
        (True, True, "completed", 0, "ok"),
        (True, None, "Completed", 0, "ok"),
        (None, None, "completed", 0, "ok"),
        (True, True, "", 0, "ok"),
        (True, False, "", 0, "fail"),
        (True, True, "in progress", 0, "fail"),
        (None, None, "not started", 0, "fail"),
        (None, None, "failed: Unknown Error", 0, "fail"),
        (None, None, "", 802, "fail"),
        (True, None, "", 0, "unknown"),
    ],
)
def test_switched_boards_compute_only_once_the_fabric_manager_has_set_them_up(
    *, switch: bool | None, manager: bool | None, state: str, cuinit: int, verdict: str
) -> None:
    machine = driven(around(each(fabric_state=state), nvswitch=switch, fabric_manager=manager), cuinit=cuinit)
    assert check("links.fabric", machine).verdict == verdict


@pytest.mark.parametrize("state", ["", "not supported", "N/A"])
def test_a_box_without_switches_needs_no_fabric_manager(state: str) -> None:
    assert "links.fabric" not in ids(around(each(fabric_state=state), nvswitch=False, fabric_manager=False))


def test_a_narrow_link_is_a_fault_and_a_slow_one_only_perhaps() -> None:
    narrow = check("links.pcie", second(pcie_width=4))
    assert narrow.verdict == "warn"
    assert "card 1" in narrow.found
    assert "idle" not in narrow.why
    slow = check("links.pcie", each(pcie_generation=1))
    assert slow.verdict == "warn"
    assert "idle card lowers its link" in slow.why
    assert "while the card computes" in slow.remedy


def test_a_link_of_which_one_side_is_not_told_is_unknown() -> None:
    assert check("links.pcie", each(pcie_generation_max=None)).verdict == "unknown"
    assert check("links.pcie", each(pcie_width=None)).verdict == "unknown"
