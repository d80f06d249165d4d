from __future__ import annotations

from dataclasses import replace

import pytest

from casemate.doctor.checks.check import Check
from casemate.doctor.checks.driver import cuda
from casemate.doctor.engines import flavour, runs
from casemate.doctor.machine import Driver, Machine
from doctor.boxes import BARE, BOX, DRIVER, TORCH, around, check, driven, holding, ids, wheels

NOT_FOUND = "libcuda.so.1: cannot open shared object file: No such file or directory"


@pytest.mark.parametrize(
    ("driver", "fit"),
    [((12, 2), {"cu121", "cu126", "cu129"}), ((13, 0), {"cu121", "cu126", "cu129", "cu130"}), ((11, 8), set())],
)
def test_the_major_version_of_cuda_binds_and_the_minor_does_not(driver: tuple[int, int], fit: set[str]) -> None:
    built = ((12, 1), (12, 6), (12, 9), (13, 0))
    assert {flavour(version) for version in built if runs(version, driver)} == fit


@pytest.mark.parametrize(
    ("offers", "verdict"), [((13, 2), "ok"), ((13, 0), "ok"), ((12, 9), "warn"), ((12, 2), "warn"), ((11, 8), "fail")]
)
def test_a_driver_is_judged_by_which_builds_of_the_engine_run_on_it(offers: tuple[int, int], verdict: str) -> None:
    assert check("driver.cuda", driven(cuda=offers)).verdict == verdict


def test_what_runs_on_a_driver_of_twelve_two_is_told_by_name() -> None:
    found = check("driver.cuda", driven(version="535.129.03", cuda=(12, 2))).found
    assert "cu121, cu126, cu129 run" in found
    assert "cu130, cu132 do not" in found


def test_newer_engine_builds_move_the_verdict_without_a_change_of_code() -> None:
    later = tuple(replace(wheel, cuda=(14, 0)) for wheel in wheels())
    assert verdict(cuda(DRIVER, later)) == "fail"
    assert verdict(cuda(DRIVER, (*wheels(), *later))) == "warn"
    assert verdict(cuda(DRIVER, ())) == "ok"


def verdict(found: Check) -> str:
    return found.verdict


@pytest.mark.parametrize("nvcc", ["", "12.1.105", "13.0.88"])
def test_no_exact_version_is_required_and_no_toolkit(nvcc: str) -> None:
    found = check("driver.exact-versions", around(nvcc=nvcc))
    assert found.verdict == "ok"
    assert "12.1.1" in found.why
    assert "No exact version" in found.why
    assert f"toolkit {nvcc or 'none'}" in found.found
    assert "torch 13.0" in found.found


@pytest.mark.parametrize(
    ("status", "word", "remedy"),
    [
        (100, "no device", "--gpus all"),
        (802, "system not ready", "fabric"),
        (803, "driver mismatch", "reboot"),
        (804, "forward compatibility", "library path"),
        (999, "unknown error", "nvidia-uvm"),
        (304, "operating system", "nvidia-modprobe"),
        (34, "stub", "LD_LIBRARY_PATH"),
        (102, "not licensed", "licence"),
        (4242, "seldom", "CUresult"),
    ],
)
def test_what_cuinit_answered_is_explained(status: int, word: str, remedy: str) -> None:
    found = check("driver.cuinit", driven(cuinit=status))
    assert found.verdict == "fail"
    assert str(status) in found.found
    assert word in found.found
    assert remedy in found.remedy


def test_a_management_library_that_answers_proves_nothing_of_cuda() -> None:
    assert "although NVML answers" in check("driver.cuinit", driven(cuinit=804)).found
    assert "although NVML" not in check("driver.cuinit", driven(cuinit=804, nvml=9)).found
    without = replace(driven(cuinit=None, libcuda=""), unknown=(("driver.cuinit", NOT_FOUND),))
    found = check("driver.cuinit", without)
    assert found.verdict == "fail"
    assert "libcuda.so.1 is not found although NVML answers" in found.found


@pytest.mark.parametrize("unknown", [(), (("driver.cuinit", "cuInit: ended with status -11"),)])
def test_a_libcuda_that_was_not_asked_or_crashed_is_unknown(unknown: tuple[tuple[str, str], ...]) -> None:
    found = check("driver.cuinit", replace(driven(cuinit=None), unknown=unknown))
    assert found.verdict == "unknown"
    assert all(words in found.found for _, words in unknown)


@pytest.mark.parametrize(
    ("module", "version", "nvml", "verdict"),
    [
        ("580.95.05", "580.95.05", 0, "ok"),
        ("580.95.05", "580.105.08", 0, "fail"),
        ("580.95.05", "", 18, "fail"),
        ("", "580.95.05", 0, "unknown"),
        ("580.95.05", "", None, "unknown"),
    ],
)
def test_a_half_done_upgrade_shows_in_two_versions(module: str, version: str, nvml: int | None, verdict: str) -> None:
    machine = driven(kernel_module=module, version=version, nvml=nvml)
    assert check("driver.whole", machine).verdict == verdict


@pytest.mark.parametrize(("nvml", "verdict"), [(0, "ok"), (None, "unknown"), (9, "fail"), (18, "fail"), (77, "fail")])
def test_a_management_library_that_does_not_answer_is_seen(nvml: int | None, verdict: str) -> None:
    assert check("driver.nvml", driven(nvml=nvml)).verdict == verdict


def test_an_engine_cannot_do_without_the_management_library() -> None:
    absent = replace(driven(nvml=None), unknown=(("driver.nvml", NOT_FOUND.replace("cuda", "nvidia-ml")),))
    assert check("driver.nvml", absent).verdict == "fail"
    crashed = replace(driven(nvml=None), unknown=(("driver.nvml", "nvmlInit: ended with status -11"),))
    assert check("driver.nvml", crashed).verdict == "unknown"


@pytest.mark.parametrize(("cuinit", "verdict"), [(0, "warn"), (803, "fail"), (804, "fail")])
def test_a_compatibility_library_before_the_drivers_own_is_a_warning_until_it_breaks_something(
    cuinit: int, verdict: str
) -> None:
    found = check("driver.compat", driven(cuinit=cuinit, compat_libcuda="/usr/local/cuda/compat/libcuda.so.575.1"))
    assert found.verdict == verdict
    assert "compat" in found.found


def test_where_libcuda_was_not_asked_nobody_knows_which_one_is_loaded() -> None:
    assert check("driver.compat", driven(cuinit=None, libcuda="")).verdict == "unknown"


@pytest.mark.parametrize(
    "machine",
    [replace(BOX, driver=None), around(replace(BARE, driver=None), pci_cards=(("0000:06:00.0", 0x2335),))],
    ids=["cards", "bus"],
)
def test_a_card_without_a_driver_fails(machine: Machine) -> None:
    found = check("driver.present", machine)
    assert found.verdict == "fail"
    assert "R580" in found.remedy


def test_a_host_without_card_and_driver_is_asked_nothing_about_them() -> None:
    for driver in (None, Driver(), Driver(libcuda="/opt/stubs/libcuda.so", cuinit=34)):
        assert not [item for item in ids(replace(BARE, driver=driver)) if item.startswith("driver.")]


def test_torch_is_named_where_it_is_installed_alone() -> None:
    assert "torch 12.9" in check("driver.exact-versions", holding(replace(TORCH, cuda=(12, 9)))).found
    assert "torch none" in check("driver.exact-versions", holding()).found
