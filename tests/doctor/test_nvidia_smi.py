from __future__ import annotations

import re

import pytest

from casemate.doctor import joining, nvidia_smi
from casemate.doctor.machine import Card

MIB = 1 << 20
DEPRECATED = """\
Driver Version  : [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]
KMD Version     : 610.43.02
CUDA Version    : [Deprecated; will be removed in CUDA 14.0. Use CUDA UMD Version instead]
CUDA UMD Version: 13.3
"""
COLUMNS = ("name", "memory.total", "memory.used", "clocks.max.sm")
MIXED = """\
NVIDIA H100L-2-24C, 24576, 100, [N/A]
NVIDIA H200, [Insufficient Permissions], [Insufficient Permissions], 1980
NVIDIA GB10, [N/A], [N/A], 2418
Tesla V100-SXM2-16GB, 16384, 5, 1530
"""


def test_cells_without_a_number_cost_no_card_and_never_become_zero() -> None:
    share, denied, shared, old = nvidia_smi.query(MIXED, COLUMNS)
    assert (share.memory_total_bytes, share.memory_used_bytes, share.sm_clock_max_hz) == (24576 * MIB, 100 * MIB, None)
    assert share.unknown == (("sm_clock_max_hz", "[N/A]"),)
    assert (denied.memory_total_bytes, denied.memory_used_bytes, denied.unified) == (None, None, False)
    assert dict(denied.unknown)["memory_total_bytes"] == "[Insufficient Permissions]"
    assert denied.sm_clock_max_hz == 1_980_000_000
    assert (shared.memory_total_bytes, shared.unified) == (None, True)
    assert (old.memory_total_bytes, old.memory_used_bytes, old.unknown) == (16384 * MIB, 5 * MIB, ())
    assert [card.index for card in (share, denied, shared, old)] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "cell",
    [
        "[N/A]", "N/A", "[Not Supported]", "[Insufficient Permissions]", "[Unknown Error]", "Unknown Error", "ERR!", "",
        "[GPU is lost]", "[GPU requires reset]", "Requested functionality has been deprecated", "Unknown", "12,5",
        "0x12", "nan", "1e9",
    ],
)  # fmt: skip
def test_what_is_no_number_keeps_its_words(cell: str) -> None:
    with pytest.raises(ValueError, match=re.escape(cell) if cell else "nothing was printed"):
        nvidia_smi.memory(cell)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("143771 MiB", 143771 * MIB),
        ("143771", 143771 * MIB),
        ("1 GiB", 1024 * MIB),
        ("0 MiB", 0),
        (" 512 KiB ", MIB // 2),
    ],
)
def test_memory_is_bytes_whatever_its_unit(cell: str, value: int) -> None:
    assert nvidia_smi.memory(cell) == value


def test_a_query_with_its_heading_names_its_own_columns() -> None:
    text = (
        "index, name, compute_cap, memory.total [MiB], pcie.link.gen.current, pcie.link.width.max, ecc.mode.current, "
        "power.draw [W], power.limit [W], mig.mode.current, utilization.gpu [%], uuid, pci.bus_id, compute_mode\n"
        "3, Made up, 12.0, 97887 MiB, 1, 16, Disabled, 77.15 W, [N/A], Enabled, 3 %, GPU-1, "
        "00000000:C1:00.0, Prohibited\n"
    )
    (card,) = nvidia_smi.query(text)
    assert (card.index, card.compute_capability, card.memory_total_bytes) == (3, (12, 0), 97887 * MIB)
    assert (card.pcie_generation, card.pcie_width_max, card.ecc_enabled) == (1, 16, False)
    assert (card.power_w, card.power_limit_w, card.mig_parent, card.bus) == (77.15, None, True, "00000000:c1:00.0")
    assert card.compute_mode == "prohibited"
    assert card.unknown == (("power_limit_w", "[N/A]"),)


def test_a_parent_of_slices_without_a_memory_is_no_card_with_shared_memory() -> None:
    (card,) = nvidia_smi.query("A100, [N/A], Enabled\n", ("name", "memory.total", "mig.mode.current"))
    assert (card.mig_parent, card.unified, card.memory_total_bytes) == (True, False, None)


@pytest.mark.parametrize(
    ("text", "version", "cuda"),
    [
        ("| NVIDIA-SMI 580.159.04   Driver Version: 580.159.04   CUDA Version: 13.0     |", "580.159.04", (13, 0)),
        ("| NVIDIA-SMI 610.43.02   KMD Version: 610.43.02   CUDA UMD Version: 13.3     |", "610.43.02", (13, 3)),
        ("| NVIDIA-SMI 470.82.01   Driver Version: 470.82.01   CUDA Version: N/A  |", "470.82.01", None),
        ("| NVIDIA-SMI 535.1   Driver Version: 535.1   CUDA Version: ERR!  |", "535.1", None),
        ("Driver Version                            : 450.66\nCUDA Version           : 11.0\n", "450.66", (11, 0)),
        (DEPRECATED, "610.43.02", (13, 3)),
        ("CUDA Version : 13.3 [Deprecated; will be removed in CUDA 14.0. Use CUDA UMD Version instead]", "", (13, 3)),
        ("<driver_version>580.1</driver_version>\n<cuda_version>13.0</cuda_version>", "580.1", (13, 0)),
        ("<kmd_version>610.4</kmd_version> <cuda_umd_version>13.3</cuda_umd_version>", "610.4", (13, 3)),
    ],
)
def test_versions_are_read_in_the_words_of_every_release(text: str, version: str, cuda: tuple[int, int] | None) -> None:
    driver = nvidia_smi.driver(text)
    assert driver is not None
    assert (driver.version, driver.cuda, driver.cuda_from) == (version, cuda, "nvidia-smi" if cuda else "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "CUDA Version : [Deprecated; will be removed in CUDA 14.0.]",
        "Failed to initialize NVML: Unknown Error",
        "14.0",
    ],
)
def test_a_text_without_versions_has_none(text: str) -> None:
    assert nvidia_smi.driver(text) is None


SLICED = """\
GPU 0: A100-SXM4-40GB (UUID: GPU-2ac434d3-0000-0000-0000-000000000000)
  MIG 3g.20gb Device 0: (UUID: MIG-GPU-2ac434d3-0000-0000-0000-000000000000/1/0)
  MIG 3g.20gb     Device  1: (UUID: MIG-GPU-2ac434d3-0000-0000-0000-000000000000/2/0)
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-11111111-0000-0000-0000-000000000000)
"""


def test_a_listing_holds_every_slice_as_a_device_and_its_parent_as_none() -> None:
    parent, first, second, whole = nvidia_smi.listing(SLICED)
    assert [card.mig_parent for card in (parent, first, second, whole)] == [True, False, False, False]
    assert [card.mig for card in (parent, first, second, whole)] == ["", "3g.20gb", "3g.20gb", ""]
    assert [card.uuid.split("/", 1)[-1] for card in (first, second)] == ["1/0", "2/0"]
    assert [card.index for card in (first, second, whole)] == [0, 0, 1]


def test_a_listing_without_slices_is_just_the_cards() -> None:
    cards = nvidia_smi.listing("GPU 0: NVIDIA (odd) name (UUID: GPU-1)\nGPU 12: B (UUID: GPU-2)\nnothing else\n")
    assert [(card.index, card.name, card.uuid) for card in cards] == [
        (0, "NVIDIA (odd) name", "GPU-1"),
        (12, "B", "GPU-2"),
    ]


def test_profiles_that_only_the_listing_names_are_given_to_the_slices_of_a_report() -> None:
    report = (
        Card(0, "A100", "GPU-2ac434d3-0000-0000-0000-000000000000", memory_total_bytes=40 << 30),
        Card(0, "A100", mig="unknown", memory_total_bytes=20 << 30),
        Card(1, "H100", "GPU-1", memory_total_bytes=80 << 30),
    )
    parent, first, second, whole = joining.with_slices(report, nvidia_smi.listing(SLICED))
    assert (parent.mig_parent, first.mig, first.memory_total_bytes) == (True, "3g.20gb", 20 << 30)
    assert (second.mig, second.memory_total_bytes, second.uuid[-3:]) == ("3g.20gb", None, "2/0")
    assert whole == report[2]


def test_cards_are_joined_by_uuid_first_and_by_place_where_one_source_has_none() -> None:
    exact = (Card(0, "a", "GPU-1", memory_total_bytes=5), Card(1, "b", "GPU-2", unknown=(("compute_capability", "?"),)))
    swapped = (Card(0, "", "GPU-2", compute_capability=(9, 0)), Card(1, "", "GPU-1", compute_capability=(8, 0)))
    first, second = joining.joined(exact, swapped)
    assert (first.compute_capability, second.compute_capability, second.unknown) == ((8, 0), (9, 0), ())
    (one, _) = joining.joined(exact, [Card(0, "z", memory_total_bytes=7, memory_used_bytes=1)])
    assert (one.name, one.memory_total_bytes, one.memory_used_bytes) == ("a", 5, 1)
    assert joining.joined((), swapped) == swapped
