"""What is not seen is not said to be there, and what is not known is not called well."""

from __future__ import annotations

from dataclasses import replace

import pytest

from casemate.doctor.advice import Install, advise
from casemate.doctor.machine import Machine
from doctor.boxes import AROUND, BOX, around, check, driven, each, second, wheels


def test_802_without_a_switch_names_the_ready_state_of_confidential_computing_and_no_switches() -> None:
    machine = driven(around(each(fabric_state="", nvlinks_active=0), nvswitch=False), cuinit=802)
    found = check("links.fabric", machine)
    assert found.verdict == "fail"
    assert "hang on NVSwitches" not in found.why
    assert "conf-compute -grs 1" in found.remedy
    assert "conf-compute -grs 1" in check("driver.cuinit", machine).remedy


def test_802_with_a_switch_wants_the_fabric_manager() -> None:
    found = check("links.fabric", driven(around(nvswitch=True), cuinit=802))
    assert "hang on NVSwitches" in found.why
    assert "fabricmanager" in found.remedy
    unseen = check("links.fabric", driven(around(each(fabric_state="in progress"), nvswitch=False), cuinit=802))
    assert "not seen here" in unseen.why


def test_a_container_with_the_cards_told_and_no_node_of_theirs_is_not_well() -> None:
    machine = driven(around(container="docker", device_nodes=()), cuinit=100)
    assert check("container.runtime", machine).verdict == "fail"
    assert check("container.device-nodes", machine).verdict == "fail"
    works = around(container="docker", device_nodes=())
    assert check("container.runtime", works).verdict == "ok"


@pytest.mark.parametrize(("cuinit", "verdict"), [(999, "fail"), (None, "warn"), (0, "ok")])
def test_the_node_of_unified_memory_is_missed(cuinit: int | None, verdict: str) -> None:
    nodes = tuple(node for node in AROUND.device_nodes if "uvm" not in node)
    found = check("container.device-nodes", driven(around(device_nodes=nodes), cuinit=cuinit))
    assert found.verdict == verdict
    assert ("/dev/nvidia-uvm" in found.found) == (verdict != "ok")


def test_the_subsystem_for_linux_has_another_node_and_misses_none() -> None:
    machine = driven(around(device_nodes=("/dev/dxg",), wsl=True), cuinit=None)
    assert check("container.device-nodes", machine).verdict == "ok"


@pytest.mark.parametrize("processes", [(), ((1, None), (2, None)), ((1, 1 << 20),)])
def test_memory_in_use_that_is_not_told_is_unknown(processes: tuple[tuple[int, int | None], ...]) -> None:
    found = check("cards.busy", each(memory_used_bytes=None, processes=processes))
    assert found.verdict == "unknown"
    assert "0.0" not in found.found


def test_a_card_that_shares_the_hosts_memory_is_not_said_to_hold_nothing() -> None:
    found = check("cards.busy", each(memory_used_bytes=None, unified=True))
    assert "0.0" not in found.found


def test_cards_that_the_variable_leaves_out_are_counted_by_name() -> None:
    found = check("container.visible-devices", around(variables=(("CUDA_VISIBLE_DEVICES", "1"),)))
    assert found.verdict == "warn"
    assert "hidden: card 0" in found.found
    sliced = replace(BOX, cards=(replace(BOX.cards[0], mig="1g.12gb", uuid="MIG-7"),))
    one = around(sliced, variables=(("CUDA_VISIBLE_DEVICES", "MIG-7"),))
    assert check("container.visible-devices", one).verdict == "ok"


@pytest.mark.parametrize("capability", [(11, 0), (13, 0), (99, 9)])
def test_a_card_newer_than_every_wheel_is_unknown_and_the_advice_says_so(capability: tuple[int, int]) -> None:
    machine = second(compute_capability=capability)
    found = check("cards.capability", machine)
    assert found.verdict == "unknown"
    assert f"{capability[0]}.{capability[1]}" in found.found
    assert any("no wheel is known" in note for note in notes(machine))


def notes(machine: Machine) -> tuple[str, ...]:
    found = advise(machine, wheels())
    assert isinstance(found, Install)
    return found.notes


def test_the_advice_says_what_its_lock_covers_and_what_it_needs() -> None:
    (covered,) = notes(BOX)
    assert "by digest" in covered
    assert "uv must be there" in covered


@pytest.mark.parametrize(("nvcc", "verdict"), [("", "warn"), ("12.8.93", "fail"), ("12.9.86", "ok"), ("13.0.88", "ok")])
def test_flashinfer_compiles_on_the_cards_of_twelve(nvcc: str, verdict: str) -> None:
    found = check("packages.nvcc", around(each(compute_capability=(12, 0)), nvcc=nvcc))
    assert found.verdict == verdict
    assert verdict == "ok" or "FlashInfer" in found.why
    assert "DeepGEMM" not in found.why + found.remedy


def test_the_host_side_of_virtual_cards_is_not_said_to_be_a_virtual_card() -> None:
    assert "hypervisor" in check("cards.virtual", each(virtual="host_vgpu")).why
    assert "licence" in check("cards.virtual", each(virtual="vgpu")).why


def test_cards_that_keep_step_are_not_said_to_have_lower_clocks_set() -> None:
    found = check("health.throttle", each(throttle=("sync_boost",)))
    assert found.verdict == "warn"
    assert "slowest" in found.why
    assert "Somebody" not in found.why
    both = check("health.throttle", each(throttle=("sync_boost", "applications_clocks_setting")))
    assert "Somebody" in both.why
