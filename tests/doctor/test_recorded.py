from __future__ import annotations

import json
from pathlib import Path

import pytest

from casemate.doctor import codec
from casemate.doctor.machine import Pair
from casemate.doctor.recorded import recorded
from casemate.errors import UsageError
from conftest import Optional
from doctor.test_nvidia_smi_report import TEXT
from house.source import ROOT

HOST = ROOT.parent / "shared" / "gpu" / "recordings" / "host"
GIB = 1 << 30
MIB = 1 << 20

HEAD = "| NVIDIA-SMI 570.1   Driver Version: 570.1   CUDA Version: 12.8 |\n"
CARDS = """\
index, name, uuid, compute_cap, memory.total [MiB], mig.mode.current
0, Made-up A, GPU-a, 12.0, 97887 MiB, [N/A]
1, Made-up B, GPU-b, 9.0, [Insufficient Permissions], Disabled
"""
MATRIX = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPHB\t0-31\nGPU1\tPHB\t X \t0-31\n"
HOST_TEXTS = """\
Architecture:                            aarch64
CPU(s):                                  72
               total        used        free      shared  buff/cache   available
Mem:             480           9         400           0          70         470
tmpfs                     64M     0   64M   0% /dev/shm
/dev/nvme0n1p2          1.8T  1.2T  512G  70% /
crw-rw-rw- 1 root root 195, 0 Nov 30 11:54 /dev/nvidia0
NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  565.9  Release Build
Cuda compilation tools, release 12.8, V12.8.61
max locked memory           (kbytes, -l) 8192
open files                          (-n) 1024
CUDA_VISIBLE_DEVICES=0
HF_TOKEN=hidden
torch                   2.9.0+cu128
vllm                    0.20.0
"""


def folder(place: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (place / name.replace("__", ".")).write_text(text)
    return place


def test_the_recorded_box_is_what_its_texts_say(optional: Optional) -> None:
    optional("recordings of a real box beside the repository", HOST.is_dir())
    machine = recorded(HOST)
    assert [card.memory_total_bytes for card in machine.cards] == [143771 * MIB] * 2
    for card in machine.cards:
        assert (card.name, card.compute_capability, card.multiprocessors) == ("NVIDIA H200", (9, 0), 132)
        assert card.memory_cuda_bytes == 150109880320
        assert (card.nvlinks_active, card.nvlink_bytes_per_s) == (18, 478_116_000_000)
        assert (card.fabric_state, card.passthrough, card.mig_parent, card.unknown) == ("completed", True, False, ())
    assert machine.pairs == (Pair(0, 1, "NV18", peer_access=True),)
    assert machine.driver is not None
    assert (machine.driver.version, machine.driver.cuda, machine.driver.kernel_module) == (
        "580.159.04", (13, 0), "580.159.04",
    )  # fmt: skip
    torch = next(package for package in machine.packages if package.name == "torch")
    assert (torch.version, torch.cuda, torch.cuda_major) == ("2.11.0+cu130", (13, 0), 13)
    assert (machine.cores, machine.memory_total_bytes, machine.disk_free_bytes) == (32, 251 * GIB, 128 * GIB)
    assert (machine.surroundings.shm_total_bytes, machine.surroundings.nvcc) == (256 * GIB, "13.0.88")
    assert machine.unknown == ()
    assert codec.parse(json.dumps(codec.to_json(machine))) == (machine, ())


def test_a_box_is_read_from_a_query_and_the_usual_tools_in_one_text(tmp_path: Path) -> None:
    machine = recorded(folder(tmp_path, all__txt=HEAD + CARDS + MATRIX + HOST_TEXTS))
    first, second = machine.cards
    assert (first.memory_total_bytes, first.compute_capability, first.uuid) == (97887 * MIB, (12, 0), "GPU-a")
    assert (second.memory_total_bytes, second.unified) == (None, False)
    assert machine.pairs == (Pair(0, 1, "PHB"),)
    assert (machine.architecture, machine.cores) == ("aarch64", 72)
    assert (machine.memory_total_bytes, machine.memory_available_bytes) == (480 * GIB, 470 * GIB)
    assert machine.disk_free_bytes == 512 * GIB
    around = machine.surroundings
    assert (around.shm_total_bytes, around.memlock_bytes, around.open_files) == (64 * MIB, 8 * MIB, 1024)
    assert (around.nvcc, around.device_nodes) == ("12.8.61", ("/dev/nvidia0",))
    assert around.variables == (("CUDA_VISIBLE_DEVICES", "0"),)
    assert machine.driver is not None
    assert (machine.driver.version, machine.driver.cuda, machine.driver.kernel_module) == ("570.1", (12, 8), "565.9")
    assert [(one.name, one.version, one.cuda) for one in machine.packages] == [
        ("torch", "2.9.0+cu128", (12, 8)),
        ("vllm", "0.20.0", None),
    ]
    assert "hidden" not in repr(machine)


def test_the_same_texts_in_many_files_say_the_same(tmp_path: Path) -> None:
    one, many = tmp_path / "one", tmp_path / "many"
    one.mkdir()
    many.mkdir()
    folder(one, all__txt=HEAD + CARDS + MATRIX + HOST_TEXTS)
    folder(many, a__log=HOST_TEXTS, smi=HEAD, query__csv=CARDS, topo__out=MATRIX)
    assert recorded(one) == recorded(many)


@pytest.mark.parametrize(
    ("line", "total", "available"),
    [
        ("Mem:             251           0         250           0           0         251", 251 * GIB, 251 * GIB),
        ("Mem:           251Gi       1.0Gi       250Gi       1.0Mi       1.0Gi       249Gi", 251 * GIB, 249 * GIB),
        (
            "Mem:          257000        1000      250000           1        1000      256000",
            257000 * MIB,
            256000 * MIB,
        ),
        (
            "Mem:       263450112     1000000   250000000           1     1000000   262000000",
            263450112 << 10,
            262000000 << 10,
        ),
        ("MemTotal:       24731708 kB\nMemAvailable:   23957920 kB", 24731708 << 10, 23957920 << 10),
    ],
    ids=["g", "h", "m", "k", "meminfo"],
)
def test_memory_is_read_whatever_option_free_was_given(line: str, total: int, available: int, tmp_path: Path) -> None:
    machine = recorded(folder(tmp_path, free__txt=line + "\n"))
    assert (machine.memory_total_bytes, machine.memory_available_bytes) == (total, available)


def test_facts_that_no_text_tells_are_named_as_unknown(tmp_path: Path) -> None:
    machine = recorded(folder(tmp_path, smi=HEAD))
    unknown = dict(machine.unknown)
    assert {"cores", "memory_total_bytes", "disk_free_bytes", "cards"} <= set(unknown)
    assert (machine.cards, machine.memory_total_bytes, machine.surroundings.shm_total_bytes) == ((), 0, None)


def test_a_measurement_speaks_of_every_card_only_if_all_are_of_one_kind(tmp_path: Path) -> None:
    same = "index, name, memory.total [MiB]\n0, A, 1000 MiB\n1, A, 1000 MiB\n"
    measured = '{"sm": "9.0", "sms": 132, "mem": 1040000000, "n": 2}'
    both = recorded(folder(tmp_path, q=same, limits__json=measured)).cards
    assert [(card.multiprocessors, card.memory_cuda_bytes) for card in both] == [(132, 1040000000)] * 2
    mixed = recorded(folder(tmp_path, q=same.replace("1, A, 1000", "1, B, 500"))).cards
    assert [card.multiprocessors for card in mixed] == [None, None]


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"sm": 9, "sms": true, "mem": -5}', '{"sm": "9.0.0", "mem": "x"}', "[" * 99999]
)
def test_a_foreign_json_is_passed_over(text: str, tmp_path: Path) -> None:
    (card, _) = recorded(folder(tmp_path, q=CARDS, other__json=text)).cards
    assert (card.multiprocessors, card.memory_cuda_bytes) == (None, None)


def test_links_and_large_files_are_not_read(tmp_path: Path) -> None:
    outside = folder(tmp_path, secret=HOST_TEXTS)
    inside = tmp_path / "in"
    inside.mkdir()
    folder(inside, smi=HEAD, big="CPU(s): 4\n" + "x" * (9 << 20))
    (inside / "link").symlink_to(outside / "secret")
    machine = recorded(inside)
    assert (machine.cores, machine.packages) == (1, ())
    assert dict(machine.unknown)["big"].startswith("left out")


def test_a_folder_that_tells_nothing_of_a_machine_is_refused(tmp_path: Path) -> None:
    for place in (tmp_path, folder(tmp_path, story="Once upon a time\n"), tmp_path / "none", tmp_path / "story"):
        with pytest.raises(UsageError):
            recorded(place)


def test_a_report_that_is_cut_off_is_left_out_with_a_note_where_another_one_is_whole(tmp_path: Path) -> None:
    whole = folder(tmp_path, q__txt=TEXT, q__xml="<nvidia_smi_log><gpu>")
    machine = recorded(whole)
    assert machine.cards
    assert dict(machine.unknown)["q.xml"].startswith("left out: this is no report of nvidia-smi")


def test_a_broken_report_is_refused_by_its_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no report of nvidia-smi") as caught:
        recorded(folder(tmp_path, q__xml="<nvidia_smi_log><gpu>"))
    assert caught.value.where == "q.xml"
