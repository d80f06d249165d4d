from __future__ import annotations

from dataclasses import replace

import pytest

from casemate.doctor.machine import Card, Driver, Machine
from doctor.boxes import BARE, BOX, CARD, GIB, around, check, each, ids, second


def test_a_host_without_a_card_is_told_that_the_cpu_engine_runs() -> None:
    found = check("cards.present", BARE)
    assert (found.verdict, found.found) == ("ok", "none")
    assert "CPU engine" in found.why
    assert "casemate up" in found.why


@pytest.mark.parametrize(
    ("machine", "sign"),
    [
        (replace(BARE, driver=Driver(version="580.1", cuinit=100, nvml=0)), "driver 580.1"),
        (around(BARE, device_nodes=("/dev/nvidiactl",)), "/dev/nvidiactl"),
        (around(BARE, pci_cards=(("0000:06:00.0", 0x2335), ("0000:07:00.0", 0x2335))), "2 on the PCI bus"),
    ],
    ids=["driver", "node", "bus"],
)
def test_a_card_of_which_there_are_signs_and_which_the_driver_does_not_show_is_no_host_without_cards(
    machine: Machine, sign: str
) -> None:
    found = check("cards.present", machine)
    assert found.verdict == "fail"
    assert sign in found.found


def test_a_driver_whose_libraries_are_not_there_shows_no_card_and_hides_none() -> None:
    why = "libnvidia-ml.so.1: cannot open shared object file: No such file or directory"
    told = (("driver.nvml", why), ("driver.cuinit", why.replace("nvidia-ml", "cuda")), ("driver", why), ("cards", why))
    assert check("cards.present", replace(BARE, unknown=told)).verdict == "ok"
    hung = (("driver.nvml", "nvmlInit: no end within 20 s"), *told[1:])
    assert check("cards.present", replace(BARE, unknown=hung)).verdict == "unknown"
    recorded = (("driver", "no text in the recording names its version"), ("cards", "no text lists any"))
    assert check("cards.present", replace(BARE, unknown=recorded)).verdict == "unknown"
    on_the_bus = around(BARE, pci_cards=(("0000:06:00.0", 0x2335),))
    assert check("cards.present", replace(on_the_bus, unknown=told)).verdict == "fail"


def test_cards_that_could_not_be_counted_are_unknown_with_the_drivers_words() -> None:
    found = check("cards.present", replace(BARE, unknown=(("cards", "Insufficient Permissions"),)))
    assert found.verdict == "unknown"
    assert "Insufficient Permissions" in found.found


def test_rows_of_which_the_driver_tells_no_numbers_stay_cards_with_the_reason() -> None:
    told = (("memory_total_bytes", "[Insufficient Permissions]"),)
    machine = second(memory_total_bytes=None, memory_used_bytes=None, unknown=told)
    found = check("cards.memory", machine)
    assert found.verdict == "unknown"
    assert "card 1: [Insufficient Permissions]" in found.found
    assert "MIG parent, or permissions" in found.found


def test_a_card_that_shares_the_hosts_memory_is_said_to() -> None:
    gb10 = replace(CARD, name="NVIDIA GB10", unified=True, memory_total_bytes=None, memory_used_bytes=None)
    found = check("cards.memory", replace(BOX, cards=(gb10,), pairs=()))
    assert found.verdict == "warn"
    assert "unified memory" in found.found
    assert "host's memory" in found.remedy


@pytest.mark.parametrize(
    ("capability", "verdict"),
    [((6, 1), "fail"), ((7, 0), "fail"), ((7, 5), "warn"), ((8, 0), "ok"), ((9, 0), "ok"), ((12, 0), "ok")],
)
def test_the_engine_has_code_from_seven_five_on_and_bfloat16_from_eight(
    capability: tuple[int, int], verdict: str
) -> None:
    assert check("cards.capability", each(compute_capability=capability)).verdict == verdict


def test_one_card_that_is_too_old_is_left_out_and_the_cpu_engine_is_for_when_all_are() -> None:
    assert "CUDA_VISIBLE_DEVICES" in check("cards.capability", second(compute_capability=(6, 1))).remedy
    assert "CPU engine" in check("cards.capability", each(compute_capability=(6, 1))).remedy


@pytest.mark.parametrize(
    ("capability", "verdict"),
    [((8, 0), "warn"), ((8, 9), "warn"), ((9, 0), "ok"), ((10, 0), "ok"), ((10, 3), "ok"), ((12, 0), "warn")],
)
def test_deepseek_v4_has_kernels_for_nine_and_ten_and_another_path_for_twelve(
    capability: tuple[int, int], verdict: str
) -> None:
    found = check("cards.deepseek-v4", each(compute_capability=capability))
    assert found.verdict == verdict
    assert ("FlashInfer" in found.why) == (capability[0] == 12)


def test_cards_of_unlike_memory_or_capability_are_bounded_by_the_smallest() -> None:
    for machine in (second(memory_total_bytes=48 * GIB), second(compute_capability=(8, 9))):
        found = check("cards.alike", machine)
        assert found.verdict == "warn"
        assert "smallest" in found.why


def test_a_few_mebibytes_between_two_cards_of_one_model_make_them_no_less_alike() -> None:
    assert check("cards.alike", second(memory_total_bytes=96 * GIB - (3 << 20))).verdict == "ok"


def test_one_card_has_none_to_be_like() -> None:
    assert "cards.alike" not in ids(replace(BOX, cards=(CARD,), pairs=()))


def sliced() -> Machine:
    """One card in MIG mode with two slices, as `nvidia-smi -L` lists them."""
    parent = replace(CARD, mig_parent=True, memory_total_bytes=None, memory_used_bytes=None)
    cut = replace(CARD, mig="3g.20gb", memory_total_bytes=20 * GIB, nvlinks_active=None)
    return replace(BOX, cards=(parent, replace(cut, uuid="MIG-1"), replace(cut, uuid="MIG-2")), pairs=())


def test_slices_are_usable_one_by_one_and_their_parent_is_not() -> None:
    found = check("cards.mig", sliced())
    assert found.verdict == "warn"
    assert found.found == "card 0 (3g.20gb); card 0 (3g.20gb)"
    assert "no peer-to-peer" in found.why
    assert "tensor parallel 1" in found.why
    assert "MIG UUID" in found.remedy
    assert check("cards.memory", sliced()).found == "all 2: 20.0 GiB"


def test_health_and_links_are_a_boards_matter_not_a_slices() -> None:
    assert check("health.temperature", sliced()).found == "card 0: 40 °C, slows at 87 °C"
    assert not {"links.peer-access", "cards.compute-mode"} & ids(sliced())


def test_a_card_in_mig_mode_without_a_slice_computes_nothing() -> None:
    assert check("cards.mig", each(mig_parent=True)).verdict == "fail"
    assert "cards.memory" not in ids(each(mig_parent=True))


def test_a_virtual_card_is_said_to_be_one_and_a_passed_through_one_is_not() -> None:
    assert check("cards.virtual", each(virtual="vgpu")).verdict == "warn"
    assert "cards.virtual" not in ids(each(passthrough=True))


@pytest.mark.parametrize(
    ("used", "processes", "verdict"),
    [
        (600 << 20, (), "ok"),
        (40 * GIB, (), "warn"),
        (0, ((4711, 30 * GIB),), "warn"),
        (0, ((4711, 300 << 20),), "ok"),
        (40 * GIB, ((4711, None),), "warn"),
        (None, (), "unknown"),
    ],
)
def test_memory_that_others_hold_is_warned_of_before_the_engine_refuses_to_start(
    used: int | None, processes: tuple[tuple[int, int | None], ...], verdict: str
) -> None:
    assert check("cards.busy", each(memory_used_bytes=used, processes=processes)).verdict == verdict


@pytest.mark.parametrize(
    ("mode", "verdict"),
    [
        ("default", "ok"),
        ("Default", "ok"),
        ("exclusive_process", "warn"),
        ("Exclusive_Process", "warn"),
        ("Prohibited", "fail"),
        ("", "unknown"),
    ],
)
def test_a_compute_mode_that_shuts_processes_out_is_seen(mode: str, verdict: str) -> None:
    assert check("cards.compute-mode", each(compute_mode=mode)).verdict == verdict


@pytest.mark.parametrize(("on", "verdict"), [(True, "ok"), (False, "warn"), (None, "unknown")])
def test_a_driver_that_lets_go_of_idle_cards_is_warned_of(*, on: bool | None, verdict: str) -> None:
    assert check("cards.persistence", each(persistence=on)).verdict == verdict


def test_a_cards_name_decides_nothing() -> None:
    renamed = each(name="Quadro FX 380")
    verdicts = {item: check(item, renamed).verdict for item in ids(renamed)}
    assert set(verdicts.values()) == {"ok"}


def test_a_card_that_could_not_even_be_opened_is_unknown_not_zero() -> None:
    lost = Card(1, "", unknown=(("card", "GPU is lost"),))
    assert check("cards.memory", replace(BOX, cards=(CARD, lost))).verdict == "unknown"
