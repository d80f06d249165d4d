from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from casemate.doctor import driver
from casemate.doctor.libcuda import Cuda
from casemate.doctor.machine import Driver
from conftest import Optional
from fakes.nvidia import FakeLibrary, Refuses, build, compiler

GIB = 1 << 30
ATTRIBUTES = {16: 132, 18: 0, 36: 3_201_000, 37: 6144, 13: 1_980_000, 75: 9, 76: 0}


def answers(**changes: Any) -> dict[str, Any]:
    return {
        "cuInit": 0,
        "cuDriverGetVersion": 13000,
        "cuDeviceGetCount": 2,
        "cuDeviceGet": lambda index: index,
        "cuDeviceGetName": "NVIDIA H200",
        "cuDeviceTotalMem_v2": 150109880320,
        "cuDeviceGetAttribute": lambda number, _: ATTRIBUTES[number],
        "cuDeviceGetUuid_v2": lambda device: bytes([0x5C, device]) + bytes(14),
        "cuDeviceGetPCIBusId": lambda _, device: f"0000:00:0{6 + device}.0",
        "cuDeviceCanAccessPeer": 1,
    } | changes


def test_a_device_is_told_as_cuda_sees_it() -> None:
    first, second = Cuda(FakeLibrary(answers())).devices()
    assert (first.name, first.index, second.index) == ("NVIDIA H200", 0, 1)
    assert (first.memory_bytes, first.compute_capability, first.multiprocessors) == (150109880320, (9, 0), 132)
    assert (first.memory_clock_hz, first.memory_bus_bits, first.sm_clock_max_hz) == (3_201_000_000, 6144, 1_980_000_000)
    assert (first.uuid, second.bus) == ("GPU-5c000000-0000-0000-0000-000000000000", "00000000:00:07.0")
    assert (first.integrated, first.peers, second.peers) == (False, (1,), (0,))


def test_the_version_is_known_even_where_cuda_does_not_start() -> None:
    cuda = Cuda(FakeLibrary(answers(cuInit=Refuses(803), cuGetErrorName=b"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH")))
    assert (cuda.version(), cuda.start()) == ((13, 0), 803)
    assert cuda.words(803) == "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"


def test_an_old_library_without_a_function_loses_that_fact_alone() -> None:
    older = answers(cuDeviceGetUuid=lambda device: bytes([0x5C, device]) + bytes(14))
    del older["cuDeviceGetUuid_v2"], older["cuDeviceTotalMem_v2"]
    first, _ = Cuda(FakeLibrary(older)).devices()
    assert first.uuid.startswith("GPU-5c00")
    assert (first.memory_bytes, first.multiprocessors) == (None, 132)


def test_a_library_with_nothing_in_it_starts_nothing() -> None:
    cuda = Cuda(FakeLibrary({}))
    assert (cuda.start(), cuda.version(), list(cuda.devices())) == (500, None, [])
    assert cuda.words(500) == "error 500"


def asked(folder: Path, optional: Optional, fate: str = "", *, limit_s: float = 20.0, **which: bool) -> driver.Answers:
    """What a child process learns from libraries that were compiled for it."""
    optional("a C compiler to build stand-ins for the driver's libraries", compiler())
    variables = build(folder, **which) | ({"FAKE_NVIDIA": fate} if fate else {})
    return driver.ask(variables, limit_s=limit_s)


def test_a_child_process_asks_both_libraries_and_joins_what_they_say(tmp_path: Path, optional: Optional) -> None:
    told = asked(tmp_path, optional)
    assert told.driver == Driver(
        version="580.1.2", cuda=(13, 0), cuda_from="libcuda", cuinit=0, nvml=0, libcuda=str(tmp_path / "libcuda.so.1")
    )
    first, second = told.cards
    assert (first.memory_total_bytes, first.memory_used_bytes, first.memory_cuda_bytes) == (96 * GIB, 5 * GIB, 95 * GIB)
    assert (first.multiprocessors, first.memory_bus_bits, first.compute_capability) == (78, 5120, (9, 0))
    assert (first.processes, second.processes) == (((4242, 5 * GIB),), ())
    (pair,) = told.pairs
    assert (pair.link, pair.peer_access, pair.why) == ("SYS", False, "CNS")
    assert told.unknown == ()


def test_cuda_that_does_not_start_leaves_the_cards_and_says_why(tmp_path: Path, optional: Optional) -> None:
    told = asked(tmp_path, optional, "fail-cuInit-803")
    assert told.driver is not None
    assert (told.driver.cuinit, told.driver.nvml, len(told.cards)) == (803, 0, 2)
    assert told.cards[0].memory_cuda_bytes is None
    assert dict(told.unknown)["driver.cuinit"].startswith("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: system has unsupported")


def test_without_the_management_library_the_cards_are_those_of_cuda(tmp_path: Path, optional: Optional) -> None:
    told = asked(tmp_path, optional, nvml=False)
    assert [(card.memory_total_bytes, card.compute_capability) for card in told.cards] == [(95 * GIB, (9, 0))] * 2
    assert told.driver is not None
    assert (told.driver.nvml, told.driver.cuinit, told.driver.cuda) == (None, 0, (13, 0))
    assert "libnvidia-ml.so.1" in dict(told.unknown)["driver.nvml"]
    assert [pair.peer_access for pair in told.pairs] == [True]


@pytest.mark.parametrize(
    ("fate", "step", "cards"),
    [
        ("hang-cuInit", "cuInit", 2),
        ("hang-nvmlInit_v2", "nvmlInit", 0),
        ("hang-second-uuid", "the card after card 0", 1),
        ("die-cuInit", "cuInit", 2),
        ("die-nvmlDeviceGetCount_v2", "the cards", 0),
    ],
)
def test_a_driver_that_hangs_or_crashes_costs_what_it_had_not_told_yet(
    fate: str, step: str, cards: int, tmp_path: Path, optional: Optional
) -> None:
    told = asked(tmp_path, optional, fate, limit_s=0.7)
    assert len(told.cards) == cards
    reason = dict(told.unknown)["driver.cuinit"]
    assert reason.startswith(f"{step}: ")
    assert reason.endswith("no end within 0.7 s" if fate.startswith("hang") else "ended with status -11")
    assert told.driver is None or told.driver.cuinit is None
    assert ("cards" in dict(told.unknown)) is (cards < 2)


def test_where_neither_library_is_nothing_is_known_and_the_loader_says_why(tmp_path: Path) -> None:
    told = driver.told('{"unknown": ["driver.nvml", "no such file"]}\n{"unknown": ["driver.cuinit", "no such file"]}\n')
    assert told == driver.Answers(unknown=(("driver.nvml", "no such file"), ("driver.cuinit", "no such file")))


def test_what_a_library_prints_between_the_answers_is_passed_over() -> None:
    told = driver.told(
        'hello\n{"card": {"index": 0}}\n{"card": 7}\n[1]\n{"driver": {"version": "1.2"}}\n{"card": {"index"'
    )
    assert told.cards == ()
    assert told.driver == Driver(version="1.2")


@pytest.mark.parametrize(
    ("path", "module", "compat"),
    [
        ("/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04", "580.159.04", False),
        ("/usr/lib/x86_64-linux-gnu/libcuda.so.590.44", "580.159.04", True),
        ("/usr/local/cuda-13.0/compat/libcuda.so.580.159.04", "580.159.04", True),
        ("/usr/local/nvidia/lib64/libcuda.so.1", "580.159.04", False),
        ("/usr/lib/x86_64-linux-gnu/libcuda.so.590.44", "", False),
        ("", "580.159.04", False),
    ],
)
def test_a_libcuda_that_is_not_the_drivers_own_is_named(path: str, module: str, *, compat: bool) -> None:
    told = driver.of_kernel(Driver(libcuda=path), module)
    assert told.compat_libcuda == (path if compat else "")
    assert told.kernel_module == module


def test_cards_that_cuda_shows_and_nvml_does_not_are_told() -> None:
    lines = '{"card": {"index": 0, "name": "x", "uuid": "GPU-a"}, "told": "cards"}\n'
    lines += '{"device": {"index": 0, "uuid": "GPU-b"}}\n'
    assert dict(driver.told(lines).unknown)["cards"] == "CUDA shows GPU-b, which NVML does not"
