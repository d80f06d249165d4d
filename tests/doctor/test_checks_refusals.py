"""A driver that is there and does not answer: never "no driver", never "all is well"."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from casemate.doctor import bounded
from casemate.doctor.checks.verdict import judge, overall
from casemate.doctor.machine import Driver, Machine
from casemate.doctor.recorded import recorded
from casemate.doctor.refusals import refused
from doctor.boxes import BARE, around, check, driven, wheels

FAILED = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA "
    "driver is installed and running.\n"
)
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.159\n"
NONE = "No devices were found\n"
LOST = "Unable to determine the device handle for GPU0: 0000:3B:00.0: GPU is lost.  Reboot the system\n"
LISTED = "GPU 0: Made-up card (UUID: GPU-1)\nGPU 1: Made-up card (UUID: GPU-2)\n"
HUNG = "nvmlInit: no end within 8 s"


def comes_to(machine: Machine) -> str:
    return overall(judge(machine, wheels()))


@pytest.mark.parametrize(
    ("text", "id_", "remedy"),
    [
        (FAILED, "driver.nvml", "modprobe"),
        (MISMATCH, "driver.whole", "reboot"),
        (MISMATCH, "driver.nvml", "half-done upgrade"),
        (NONE, "cards.present", "dmesg"),
        (LOST, "driver.nvml", "xid"),
    ],
)
@pytest.mark.parametrize("more", ["", LISTED], ids=["alone", "cards listed before"])
def test_what_nvidia_smi_says_when_it_fails_is_a_driver_that_does_not_answer(
    *, text: str, id_: str, remedy: str, more: str, tmp_path: Path
) -> None:
    (tmp_path / "nvidia-smi-q.xml").write_text(text)
    (tmp_path / "list.txt").write_text(more)
    machine = recorded(tmp_path)
    assert check("driver.present", machine).verdict != "fail"
    if more and text is NONE:  # a list and "none" contradict each other; nothing is claimed
        assert comes_to(machine) == "unknown"
        return
    found = check(id_, machine)
    assert (found.verdict, comes_to(machine)) == ("fail", "fail")
    assert remedy in found.remedy


def test_the_version_of_the_library_is_told_with_the_mismatch() -> None:
    told = refused(MISMATCH)
    assert told is not None
    assert told.driver == Driver(version="580.159", nvml=18)
    assert refused("vllm: nothing of the kind, and no devices were found in this sentence\n") is None


def test_cards_without_any_report_leave_the_driver_unknown(tmp_path: Path) -> None:
    (tmp_path / "topo.txt").write_text(LISTED + "\tGPU0\tGPU1\nGPU0\t X \tSYS\nGPU1\tSYS\t X \n")
    machine = recorded(tmp_path)
    assert check("driver.present", machine).verdict == "unknown"
    assert comes_to(machine) == "unknown"


@pytest.mark.parametrize(
    ("words", "remedy"),
    [("no end within 3 s", "xid"), ("ended with status 9: it did not work", "modprobe")],
    ids=["hangs", "fails"],
)
def test_an_nvidia_smi_that_hangs_or_fails_where_no_library_is_found_is_an_installed_driver_that_fails(
    words: str, remedy: str
) -> None:
    absent = "libcuda.so.1: cannot open shared object file: No such file or directory"
    unknown = (("driver.nvml", absent), ("driver.cuinit", absent), ("nvidia-smi", words), ("cards", absent))
    machine = replace(BARE, driver=Driver(), unknown=unknown)
    found = check("driver.present", machine)
    assert found.verdict == "fail"
    assert "does not answer" in found.found
    assert remedy in found.remedy
    assert check("cards.present", machine).verdict == "unknown"
    without = replace(machine, driver=None, unknown=(*unknown[:2], ("nvidia-smi", "it is not on the PATH")))
    assert comes_to(without) == "ok"


def test_a_driver_that_hangs_fails_with_what_ends_it() -> None:
    unknown = tuple((name, HUNG) for name in ("driver.nvml", "driver.cuinit", "cards"))
    machine = replace(driven(BARE, version="", cuda=None, cuinit=None, nvml=None), cards=(), unknown=unknown)
    for id_ in ("driver.nvml", "driver.cuinit"):
        found = check(id_, machine)
        assert (found.verdict, "reboot" in found.remedy, "xid" in found.remedy) == ("fail", True, True)
    assert "reboot" in check("cards.present", around(machine, pci_cards=(("0000:06:00.0", 0x2335),))).remedy


def test_a_driver_that_counts_no_card_on_a_bus_with_cards_fails() -> None:
    machine = replace(driven(BARE), unknown=(("cards", "the driver lists none"),))
    assert check("cards.present", machine).verdict == "fail"


def test_a_program_that_tells_nothing_new_is_given_up_and_one_that_goes_on_is_not() -> None:
    path = {"PATH": "/usr/bin:/bin"}
    slow = ["/bin/sh", "-c", "for i in 1 2 3 4; do echo $i; sleep 0.3; done"]
    assert bounded.hear(slow, limit_s=9, quiet_s=0.8, environment=path).broken == ""
    hung = bounded.hear(["/bin/sh", "-c", "echo told; sleep 30"], limit_s=9, quiet_s=0.2, environment=path)
    assert (hung.stdout, hung.broken) == ("told\n", "no end within 0.2 s")
