from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from casemate.doctor.probe import measure

MIB = 1 << 20
MEMINFO = "MemTotal:       24731708 kB\nMemFree:        20000000 kB\nMemAvailable:   23957920 kB\nBuffers: 3 kB\n"
PLAIN = {
    "proc/meminfo": MEMINFO,
    "proc/self/status": "Name:\tpython\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\n",
    "proc/self/cgroup": "0::/\n",
}
V2 = "sys/fs/cgroup"


def recorded(root: Path, *trees: dict[str, str]) -> Path:
    """A machine as its files tell it."""
    for tree in trees:
        for name, content in tree.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(content)
    return root


def test_a_plain_machine_has_what_the_system_says(tmp_path: Path) -> None:
    machine = measure(tmp_path, root=recorded(tmp_path, PLAIN))
    assert machine.cores == 8
    assert machine.memory_total_bytes == 24731708 * 1024
    assert machine.memory_available_bytes == 23957920 * 1024


@pytest.mark.parametrize(("ranges", "cores"), [("0", 1), ("0-1", 2), ("0-3,8", 5), ("1,3,5-7", 5)])
def test_only_cores_that_we_may_run_on_count(ranges: str, cores: int, tmp_path: Path) -> None:
    status = {"proc/self/status": f"Name:\tx\nCpus_allowed_list:\t{ranges}\n"}
    assert measure(tmp_path, root=recorded(tmp_path, PLAIN, status)).cores == cores


@pytest.mark.parametrize(
    ("quota", "cores"),
    [
        ("max 100000", 8),
        ("200000 100000", 2),
        ("250000 100000", 2),
        ("50000 100000", 1),
        ("1600000 100000", 8),
        ("1 0", 8),
    ],
)
def test_a_quota_of_version_2_bounds_the_cores_rounded_down(quota: str, cores: int, tmp_path: Path) -> None:
    assert measure(tmp_path, root=recorded(tmp_path, PLAIN, {f"{V2}/cpu.max": f"{quota}\n"})).cores == cores


@pytest.mark.parametrize(("quota", "cores"), [("-1", 8), ("300000", 3), ("10000", 1)])
def test_a_quota_of_version_1_bounds_the_cores(quota: str, cores: int, tmp_path: Path) -> None:
    tree = {
        "proc/self/cgroup": "4:cpu,cpuacct:/docker/abc\n2:memory:/docker/abc\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": f"{quota}\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
    }
    assert measure(tmp_path, root=recorded(tmp_path, PLAIN, tree)).cores == cores


def test_a_limit_of_version_2_leaves_what_is_not_taken_yet(tmp_path: Path) -> None:
    tree = {
        f"{V2}/memory.max": f"{1024 * MIB}\n",
        f"{V2}/memory.current": f"{600 * MIB}\n",
        f"{V2}/memory.stat": f"anon 1\ninactive_file {500 * MIB}\nactive_file 7\n",
    }
    machine = measure(tmp_path, root=recorded(tmp_path, PLAIN, tree))
    assert machine.memory_total_bytes == 1024 * MIB
    assert machine.memory_available_bytes == 924 * MIB


def test_a_limit_of_version_1_leaves_what_is_not_taken_yet(tmp_path: Path) -> None:
    tree = {
        "proc/self/cgroup": "2:memory:/docker/abc\n0::/\n",
        "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": f"{2048 * MIB}\n",
        "sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes": f"{1000 * MIB}\n",
        "sys/fs/cgroup/memory/docker/abc/memory.stat": f"inactive_file 1\ntotal_inactive_file {400 * MIB}\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    }
    machine = measure(tmp_path, root=recorded(tmp_path, PLAIN, tree))
    assert machine.memory_total_bytes == 2048 * MIB
    assert machine.memory_available_bytes == (2048 - 600) * MIB


@pytest.mark.parametrize("limit", ["max", "9223372036854771712"])
def test_no_limit_is_none(limit: str, tmp_path: Path) -> None:
    machine = measure(tmp_path, root=recorded(tmp_path, PLAIN, {f"{V2}/memory.max": f"{limit}\n"}))
    assert machine.memory_available_bytes == 23957920 * 1024


def test_the_tightest_of_the_groups_above_us_counts(tmp_path: Path) -> None:
    tree = {
        "proc/self/cgroup": "0::/user.slice/user-0.slice/app\n",
        f"{V2}/user.slice/user-0.slice/app/memory.max": "max\n",
        f"{V2}/user.slice/user-0.slice/memory.max": f"{512 * MIB}\n",
        f"{V2}/user.slice/memory.max": f"{4096 * MIB}\n",
        f"{V2}/user.slice/user-0.slice/cpu.max": "300000 100000\n",
    }
    machine = measure(tmp_path, root=recorded(tmp_path, PLAIN, tree))
    assert machine.memory_total_bytes == 512 * MIB
    assert machine.cores == 3


def test_a_group_that_has_taken_its_all_leaves_nothing(tmp_path: Path) -> None:
    tree = {f"{V2}/memory.max": f"{100 * MIB}\n", f"{V2}/memory.current": f"{101 * MIB}\n"}
    assert measure(tmp_path, root=recorded(tmp_path, PLAIN, tree)).memory_available_bytes == 0


def test_a_system_without_proc_is_measured_roughly(tmp_path: Path) -> None:
    machine = measure(tmp_path, root=tmp_path)
    assert machine.cores == os.cpu_count()
    assert machine.memory_available_bytes == machine.memory_total_bytes // 2 > 0


def test_the_disk_of_a_folder_that_is_not_there_yet_is_that_of_the_nearest_one(tmp_path: Path) -> None:
    here, there = (measure(folder).disk_free_bytes for folder in (tmp_path, tmp_path / "not" / "yet"))
    assert abs(here - there) < 1 << 30  # others may write meanwhile
    assert here > 0


def test_this_machine_can_be_measured(tmp_path: Path) -> None:
    machine = measure(tmp_path)
    assert 1 <= machine.cores <= (os.cpu_count() or 1)
    assert 0 < machine.memory_available_bytes <= machine.memory_total_bytes
    assert (machine.system, machine.architecture) == (platform.system(), platform.machine())
