from __future__ import annotations

from typing import Any

import pytest

from casemate.doctor import nvml_card, nvml_pairs
from casemate.doctor.machine import Card
from casemate.doctor.nvml import Nvml
from casemate.errors import CasemateError
from fakes.nvidia import LOST, NO_PERMISSION, NOT_SUPPORTED, FakeLibrary, Refuses, h200

GIB = 1 << 30


def cards(*answers: dict[str, Any], **more: Any) -> list[Card]:
    nvml = Nvml(FakeLibrary({"nvmlDeviceGetCount_v2": len(answers)}, answers, **more))
    return [card for card, _ in nvml_card.cards(nvml)]


def only(**changes: Any) -> Card:
    (card,) = cards(h200(**changes))
    return card


def test_a_card_is_told_with_everything_that_the_driver_knows() -> None:
    card = only()
    assert (card.name, card.index, card.bus, card.device_id) == ("NVIDIA H200", 0, "00000000:00:06.0", 0x2335)
    assert (card.memory_total_bytes, card.memory_used_bytes) == (150754820096, 0)
    assert (card.compute_capability, card.memory_clock_hz, card.memory_bus_bits) == ((9, 0), 3_201_000_000, 6144)
    assert (card.sm_clock_hz, card.sm_clock_max_hz) == (345_000_000, 1_980_000_000)
    assert (card.pcie_generation, card.pcie_width) == (card.pcie_generation_max, card.pcie_width_max) == (5, 16)
    assert (card.ecc_enabled, card.ecc_uncorrected, card.remapped_rows_failed) == (True, 0, False)
    assert (card.power_w, card.power_limit_w, card.temperature_c, card.temperature_slowdown_c) == (77.15, 700, 34, 89)
    assert (card.throttle, card.persistence, card.compute_mode) == ((), True, "default")
    assert (card.nvlinks_active, card.nvlink_bytes_per_s) == (18, 18 * 26_562_000_000)
    assert (card.fabric_state, card.passthrough, card.virtual, card.unified) == ("completed", True, "", False)
    assert card.unknown == ()


@pytest.mark.parametrize("function", sorted(set(h200()) - {"nvmlDeviceGetMemoryInfo_v2"}))
@pytest.mark.parametrize("status", [NOT_SUPPORTED, NO_PERMISSION, None])
def test_whatever_one_call_refuses_or_the_library_lacks_costs_that_fact_alone(
    function: str, status: int | None
) -> None:
    answers = h200()
    if status is None:
        del answers[function]
    else:
        answers[function] = Refuses(status)
    (card,) = cards(answers)
    whole = only()
    lost = {name for name, _ in card.unknown}
    assert all(getattr(card, name) in (None, "", (), False) for name in lost)
    changed = {name for name in Card.__slots__ if getattr(card, name) != getattr(whole, name)}
    assert changed <= lost | {"unknown", "nvlink_bytes_per_s"}
    words = {None: "some error", NOT_SUPPORTED: "Not Supported", NO_PERMISSION: "Insufficient Permissions"}[status]
    assert {why for _, why in card.unknown} <= {words}


def test_an_older_driver_is_asked_for_memory_in_the_older_way() -> None:
    answers = h200(nvmlDeviceGetMemoryInfo={"total": 80 * GIB, "used": GIB})
    del answers["nvmlDeviceGetMemoryInfo_v2"]
    (card,) = cards(answers)
    assert (card.memory_total_bytes, card.memory_used_bytes) == (80 * GIB, GIB)


def test_a_library_that_names_no_errors_is_understood_all_the_same() -> None:
    (card,) = cards(h200(nvmlDeviceGetPowerUsage=Refuses(NOT_SUPPORTED)), name_errors=False)
    assert card.unknown == (("power_w", "Not Supported"),)


def test_a_card_that_shares_the_hosts_memory_is_told_by_what_it_refuses_and_how_it_addresses() -> None:
    nothing = dict.fromkeys(("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo"), Refuses(NOT_SUPPORTED))
    shared = only(**nothing, nvmlDeviceGetAddressingMode={"value": 2})
    assert (shared.unified, shared.memory_total_bytes) == (True, None)
    assert ("memory_total_bytes", "Not Supported") in shared.unknown
    assert not only(**nothing).unified
    assert not only(nvmlDeviceGetAddressingMode={"value": 2}).unified, "a GH200 has memory of its own"


def test_no_memory_for_want_of_permission_is_not_taken_for_shared_memory() -> None:
    denied = dict.fromkeys(("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo"), Refuses(NO_PERMISSION))
    card = only(**denied, nvmlDeviceGetAddressingMode={"value": 2})
    assert (card.unified, card.memory_total_bytes) == (False, None)
    assert ("memory_total_bytes", "Insufficient Permissions") in card.unknown


def test_a_card_that_is_cut_into_slices_is_followed_by_them() -> None:
    def part(number: int) -> dict[str, Any]:
        return {
            "nvmlDeviceGetName": "NVIDIA A100-SXM4-40GB MIG 3g.20gb",
            "nvmlDeviceGetUUID": f"MIG-0000000{number}-1111-2222-3333-444444444444",
            "nvmlDeviceGetAttributes_v2": {
                "multiprocessors": 42,
                "memory_mib": 19968,
                "gpu_slices": 3,
                "compute_slices": 3,
            },
            "nvmlDeviceGetMemoryInfo_v2": {"total": 19968 << 20, "used": 11 << 20},
        }

    parent = h200(nvmlDeviceGetMigMode=(1, 1), nvmlDeviceGetMaxMigDeviceCount=7)
    whole, first, second, other = cards(parent, h200(1), slices={0: [part(0), part(1)]})
    assert (whole.mig_parent, whole.mig, other.mig_parent) == (True, "", False)
    assert [one.mig for one in (first, second)] == ["3g.20gb", "3g.20gb"]
    assert [one.uuid[:12] for one in (first, second)] == ["MIG-00000000", "MIG-00000001"]
    assert (first.index, first.mig_parent, first.multiprocessors) == (0, False, 42)
    assert (first.memory_total_bytes, first.compute_capability) == (19968 << 20, (9, 0))
    assert (first.nvlinks_active, first.processes) == (None, ())


def test_a_slice_whose_name_holds_no_profile_is_named_by_its_parts() -> None:
    parent = h200(nvmlDeviceGetMigMode=(1, 1), nvmlDeviceGetMaxMigDeviceCount=7)
    attributes = {"multiprocessors": 16, "memory_mib": 17920, "gpu_slices": 2, "compute_slices": 1}
    _, part = cards(parent, slices={0: [{"nvmlDeviceGetAttributes_v2": attributes}]})
    assert part.mig == "1c.2g.18gb"
    assert part.memory_total_bytes == 17920 << 20
    assert "memory_total_bytes" not in dict(part.unknown)


@pytest.mark.parametrize(
    ("mode", "told"), [(0, ("", False)), (1, ("", True)), (2, ("vgpu", False)), (3, ("host_vgpu", False))]
)
def test_a_share_of_a_card_is_told_from_a_whole_one(mode: int, told: tuple[str, bool]) -> None:
    card = only(nvmlDeviceGetVirtualizationMode=mode)
    assert (card.virtual, card.passthrough) == told


def test_reasons_to_slow_down_are_named_and_idleness_is_none() -> None:
    assert only(nvmlDeviceGetCurrentClocksEventReasons=0x1 | 0x4 | 0x40).throttle == (
        "sw_power_cap", "hw_thermal_slowdown",
    )  # fmt: skip
    older = h200(nvmlDeviceGetCurrentClocksThrottleReasons=0x8)
    del older["nvmlDeviceGetCurrentClocksEventReasons"]
    assert cards(older)[0].throttle == ("hw_slowdown",)


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ({"state": 3, "status": 0}, "completed"),
        ({"state": 2, "status": 0}, "in progress"),
        ({"state": 1, "status": 0}, "not started"),
        ({"state": 0, "status": 0}, "not supported"),
        ({"state": 3, "status": NO_PERMISSION}, "failed: Insufficient Permissions"),
    ],
)
def test_the_fabric_is_up_only_when_it_is_completed_without_error(told: dict[str, int], state: str) -> None:
    assert only(nvmlDeviceGetGpuFabricInfoV=told).fabric_state == state


def test_processes_are_listed_and_a_memory_that_is_not_told_is_none() -> None:
    running = [{"pid": 41, "used": 5 * GIB}, {"pid": 42, "used": (1 << 64) - 1}]
    assert only(nvmlDeviceGetComputeRunningProcesses_v3=running).processes == ((41, 5 * GIB), (42, None))


def test_where_a_card_slows_down_is_worked_out_from_its_margin() -> None:
    def field(_card: object, _count: int) -> dict[str, int]:
        return {"value": 0xFFFFFFFE, "status": 0}  # -2 in the lower half

    margin = {"nvmlDeviceGetMarginTemperature": {"celsius": 53}, "nvmlDeviceGetFieldValues": field}
    newer = {"nvmlDeviceGetTemperatureV": {"celsius": 36}, "nvmlDeviceGetTemperature": Refuses(26)}
    assert only(**margin).temperature_slowdown_c == 34 + 53 + 2
    card = only(**margin, **newer)
    assert (card.temperature_c, card.temperature_slowdown_c) == (36, 36 + 53 + 2)


def test_cards_are_bonded_where_the_driver_hides_what_their_links_end_at() -> None:
    hidden: dict[str, Any] = {"nvmlDeviceGetNvLinkRemoteDeviceType": Refuses(NOT_SUPPORTED)}

    def nvlink_alone(*numbers: int) -> int:
        return 0 if numbers[-1] == 2 else 3

    assert between(h200(**hidden), h200(1, **hidden))[0] == "NV18"
    assert between(h200(**hidden, nvmlDeviceGetP2PStatus=nvlink_alone), h200(1, **hidden)) == ("NV18", False, "TNS")
    assert between(h200(**hidden, nvmlDeviceGetP2PStatus=5), h200(1, **hidden)) == ("PHB", False, "NS")


def test_a_lost_card_keeps_its_place() -> None:
    lost, fine = cards(h200(lost=True), h200(1))
    assert (lost.index, lost.name, lost.unknown) == (0, "", (("card", "GPU is lost"),))
    assert (fine.index, fine.memory_total_bytes) == (1, 150754820096)
    assert LOST == 15


def test_a_driver_that_does_not_count_its_cards_says_why() -> None:
    nvml = Nvml(FakeLibrary({"nvmlDeviceGetCount_v2": Refuses(NO_PERMISSION)}))
    with pytest.raises(CasemateError, match="Insufficient Permissions"):
        list(nvml_card.cards(nvml))


def between(one: dict[str, Any], other: dict[str, Any]) -> tuple[str, bool | None, str]:
    nvml = Nvml(FakeLibrary({"nvmlDeviceGetCount_v2": 2}, [one, other]))
    found = [(card, handle) for card, handle in nvml_card.cards(nvml) if handle]
    (pair,) = nvml_pairs.pairs(nvml, found)
    return pair.link, pair.peer_access, pair.why


def test_cards_on_one_switch_are_bonded_by_the_links_of_the_weaker_one() -> None:
    def twelve(_: object, place: int) -> Any:
        return 1 if place < 12 else 0 if place < 18 else Refuses(2)

    assert between(h200(), h200(1)) == ("NV18", True, "")
    assert between(h200(), h200(1, nvmlDeviceGetNvLinkState=twelve))[0] == "NV12"


def test_cards_that_are_linked_directly_are_bonded_by_the_links_that_end_at_each_other() -> None:
    def to_the_other(bus: bytes) -> Any:
        return lambda _, place: {"name": bus if place < 4 else b"00000000:99:00.0"}

    one = h200(
        nvmlDeviceGetNvLinkRemoteDeviceType=0, nvmlDeviceGetNvLinkRemotePciInfo_v2=to_the_other(b"00000000:00:07.0")
    )
    other = h200(1, nvmlDeviceGetNvLinkRemoteDeviceType=0, nvmlDeviceGetNvLinkRemotePciInfo_v2=to_the_other(b"x"))
    assert between(one, other)[0] == "NV4"


@pytest.mark.parametrize(("level", "word"), [(10, "PIX"), (20, "PXB"), (30, "PHB"), (40, "NODE"), (50, "SYS")])
def test_cards_without_links_are_told_by_what_lies_between_them(level: int, word: str) -> None:
    bare: dict[str, Any] = {
        "nvmlDeviceGetNvLinkState": Refuses(NOT_SUPPORTED),
        "nvmlDeviceGetTopologyCommonAncestor": level,
    }
    assert between(h200(**bare, nvmlDeviceGetP2PStatus=1), h200(1, **bare)) == (word, False, "CNS")


def test_a_status_that_the_driver_does_not_know_is_no_refusal() -> None:
    assert between(h200(nvmlDeviceGetP2PStatus=6), h200(1)) == ("NV18", None, "")
