from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from casemate import settings
from casemate.doctor import pci
from casemate.doctor.machine import Surroundings
from casemate.doctor.surroundings import KEPT, VARIABLES, kernel_module, surroundings
from casemate.doctor.toolkit import toolkit
from conftest import Optional

LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max core file size        0                    unlimited            bytes
Max open files            1024                 524288               files
Max locked memory         8388608              8388608              bytes
"""
BUS = "sys/bus/pci/devices"


def tree(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def around(root: Path, files: dict[str, str | bytes], **variables: str) -> Surroundings:
    return surroundings(variables, root=tree(root, files))


def test_limits_are_the_soft_ones_and_unlimited_is_none(tmp_path: Path) -> None:
    found = around(tmp_path, {"proc/self/limits": LIMITS})
    assert (found.core_bytes, found.open_files, found.memlock_bytes) == (0, 1024, 8 << 20)
    free = around(tmp_path, {"proc/self/limits": LIMITS.replace("8388608 ", "unlimited ")})
    assert free.memlock_bytes is None


@pytest.mark.parametrize(
    ("files", "variables", "container"),
    [
        ({}, {}, ""),
        ({".dockerenv": ""}, {}, "docker"),
        ({"run/.containerenv": "engine=podman"}, {}, "podman"),
        ({"run/systemd/container": "lxc\n"}, {}, "lxc"),
        ({"proc/1/cgroup": "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-1.scope\n"}, {}, "kubernetes"),
        ({"proc/self/cgroup": "5:memory:/docker/0123\n"}, {}, "docker"),
        ({"proc/self/mountinfo": "1 2 0:1 / / rw - overlay o lowerdir=/var/lib/docker/overlay2/l/A\n"}, {}, "docker"),
        ({"proc/self/mountinfo": "9 2 0:1 / /var/lib/docker/overlay2/x/merged rw - overlay o rw\n"}, {}, ""),
        ({"proc/self/cgroup": "0::/system.slice/docker.service\n"}, {}, ""),
        ({"proc/1/environ": "TERM=x\0container=systemd-nspawn\0"}, {}, "systemd-nspawn"),
        ({".dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
    ],
)
def test_a_container_is_known_by_its_marks(
    files: dict[str, str | bytes], variables: dict[str, str], container: str, tmp_path: Path
) -> None:
    assert around(tmp_path, files, **variables).container == container


def test_device_nodes_that_may_not_be_opened_are_named(tmp_path: Path, optional: Optional) -> None:
    optional("rights bind root to nothing, so only another user can be denied", os.geteuid())
    nodes: dict[str, str | bytes] = {f"dev/{name}": "" for name in ("nvidia0", "nvidiactl", "nvidia-uvm", "null")}
    root = tree(tmp_path, nodes)
    (root / "dev/nvidia0").chmod(0)
    found = surroundings({}, root=root)
    assert found.device_nodes == ("/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidiactl")
    assert found.device_nodes_denied == ("/dev/nvidia0",)


def test_device_nodes_are_listed_with_those_of_slices_and_switches(tmp_path: Path) -> None:
    names = ("nvidia0", "nvidiactl", "nvidia-caps/nvidia-cap2", "nvidia-nvswitch0", "sda")
    found = around(tmp_path, {f"dev/{name}": "" for name in names})
    assert found.device_nodes == (
        "/dev/nvidia-caps/nvidia-cap2", "/dev/nvidia-nvswitch0", "/dev/nvidia0", "/dev/nvidiactl",
    )  # fmt: skip
    assert (found.nvswitch, found.fabric_manager) == (True, False)


@pytest.mark.parametrize(
    ("files", "told", "label"),
    [
        ({}, "", ""),
        (
            {"sys/fs/selinux/enforce": "1", "proc/self/attr/current": "a:b:container_t:s0\0"},
            "selinux enforcing",
            "a:b:container_t:s0",
        ),
        ({"sys/fs/selinux/enforce": "0"}, "selinux permissive", ""),
        (
            {"sys/module/apparmor/parameters/enabled": "Y\n", "proc/self/attr/current": "docker-default (enforce)\n"},
            "apparmor enforce",
            "docker-default (enforce)",
        ),
        (
            {"sys/module/apparmor/parameters/enabled": "Y\n", "proc/self/attr/apparmor/current": "unconfined\n"},
            "apparmor unconfined",
            "unconfined",
        ),
        ({"sys/module/apparmor/parameters/enabled": "N\n", "proc/self/attr/current": "x"}, "", ""),
    ],
)
def test_mandatory_access_control_is_told_with_what_it_calls_us(
    files: dict[str, str | bytes], told: str, label: str, tmp_path: Path
) -> None:
    found = around(tmp_path, files)
    assert (found.mandatory_access, found.process_label) == (told, label)


def device(vendor: int, kind: int, number: int) -> dict[str, str]:
    return {"vendor": f"0x{vendor:04x}\n", "class": f"0x{kind:06x}\n", "device": f"0x{number:04x}\n"}


def bus(*devices: tuple[str, dict[str, str]]) -> dict[str, str | bytes]:
    return {f"{BUS}/{address}/{name}": text for address, facts in devices for name, text in facts.items()}


SWITCH = ("0000:05:00.0", device(0x10DE, 0x068000, 0x22A3))
CARD = ("0000:c1:00.0", device(0x10DE, 0x030200, 0x2335))
OTHERS = (("0000:00:00.0", device(0x8086, 0x060000, 1)), ("0000:c1:00.1", device(0x10DE, 0x040300, 2)))


def test_accelerators_are_seen_on_the_bus_without_any_driver(tmp_path: Path) -> None:
    found = around(tmp_path, bus(CARD, *OTHERS))
    assert (found.pci_cards, found.nvswitch, found.fabric_manager) == ((("0000:c1:00.0", 0x2335),), False, None)


@pytest.mark.parametrize(
    ("more", "runs"),
    [
        ({}, False),
        ({"proc/77/comm": "nv-fabricmanage\n"}, True),
        ({"run/nvidia-fabricmanager/socket": ""}, True),
        ({"proc/77/comm": "nv-hostengine\n"}, False),
        ({".dockerenv": ""}, None),
        ({".dockerenv": "", "proc/77/comm": "nv-fabricmanage\n"}, True),
    ],
)
def test_a_switch_needs_a_manager_that_cannot_be_missed_but_from_a_container(
    more: dict[str, str | bytes],
    runs: bool | None,  # noqa: FBT001 - a case of the table
    tmp_path: Path,
) -> None:
    found = around(tmp_path, bus(CARD, SWITCH) | more)
    assert (found.nvswitch, found.fabric_manager) == (True, runs)


def config(control: int) -> bytes:
    """A bridge's extended space: some other capability, then ACS with this control word."""
    space = bytearray(4096)
    struct.pack_into("<I", space, 0x100, 0x0001 | 1 << 16 | 0x140 << 20)
    struct.pack_into("<IHH", space, 0x140, 0x000D | 1 << 16, 0x7F, control)
    return bytes(space)


@pytest.mark.parametrize(
    ("space", "redirects"), [(config(0x1D), True), (config(0x01), False), (bytes(4096), False), (bytes(64), None)]
)
def test_a_bridge_that_sends_traffic_up_to_the_root_is_told_if_root_may_read_it(
    space: bytes,
    redirects: bool | None,  # noqa: FBT001 - a case of the table
    tmp_path: Path,
) -> None:
    place = "sys/devices/pci0000:c0/0000:c0:01.0"
    below = f"{place}/{CARD[0]}"
    files: dict[str, str | bytes] = {f"{place}/class": "0x060400\n", f"{place}/config": space}
    root = tree(tmp_path, files | {f"{below}/{name}": text for name, text in CARD[1].items()})
    (root / BUS).mkdir(parents=True)
    (root / BUS / CARD[0]).symlink_to(root / below)
    assert pci.look(root).acs_redirect is redirects


def test_the_processors_beside_a_card_are_known_by_its_address_however_long(tmp_path: Path) -> None:
    root = tree(tmp_path, {f"{BUS}/0000:c1:00.0/numa_node": "1\n", f"{BUS}/0000:c2:00.0/numa_node": "-1\n"})
    assert [pci.numa_node(address, root) for address in ("00000000:C1:00.0", "0000:c1:00.0")] == [1, 1]
    assert [pci.numa_node(address, root) for address in ("0000:c2:00.0", "0000:c3:00.0", "")] == [None, None, None]


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"sys/module/nvidia/version": "580.159.04\n"}, "580.159.04"),
        (
            {"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.1.2  R\n"},
            "580.1.2",
        ),
        (
            {"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue\n"},
            "535.54.03",
        ),
        ({}, ""),
    ],
)
def test_the_kernel_module_names_its_own_version(files: dict[str, str | bytes], version: str, tmp_path: Path) -> None:
    assert kernel_module(tree(tmp_path, files)) == version


def test_windows_below_is_noticed(tmp_path: Path) -> None:
    found = around(tmp_path, {"proc/sys/kernel/osrelease": "5.15.90.1-microsoft-standard-WSL2\n", "dev/dxg": ""})
    assert (found.wsl, found.kernel, found.device_nodes) == (True, "5.15.90.1-microsoft-standard-WSL2", ("/dev/dxg",))


def test_variables_are_kept_by_name_and_no_secret_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {"HF_TOKEN": "hidden-1", "VLLM_API_KEY": "hidden-2", "AWS_SECRET_ACCESS_KEY": "hidden-3"}
    for name, value in {**secrets, "CUDA_VISIBLE_DEVICES": "", "NCCL_DEBUG": "INFO", "PATH": "/hidden-4"}.items():
        monkeypatch.setenv(name, value)
    found = surroundings(settings.of_environment(VARIABLES), root=tmp_path)
    assert {"CUDA_VISIBLE_DEVICES": "", "NCCL_DEBUG": "INFO"}.items() <= dict(found.variables).items()
    assert "hidden" not in repr(found)
    assert not [name for name in KEPT if any(word in name for word in ("TOKEN", "SECRET", "PASSWORD", "API_KEY"))]


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"HOME": "/h"}, "/h/.cache/huggingface/hub"),
        ({"HOME": "/h", "XDG_CACHE_HOME": "/x"}, "/x/huggingface/hub"),
        ({"HOME": "/h", "HF_HOME": "/f"}, "/f/hub"),
        ({"HOME": "/h", "HF_HOME": "/f", "HF_HUB_CACHE": "/c"}, "/c"),
        ({}, ""),
    ],
)
def test_the_hubs_cache_is_where_its_own_library_would_look(
    variables: dict[str, str], folder: str, tmp_path: Path
) -> None:
    assert surroundings(variables, root=tmp_path).hugging_face_cache == folder


def program(root: Path, path: str, text: str = "#!/bin/sh\n") -> None:
    tree(root, {path: text})
    (root / path).chmod(0o755)


def test_a_toolkit_is_found_where_it_points_and_told_by_its_own_table(tmp_path: Path) -> None:
    program(tmp_path, "opt/cuda/bin/nvcc")
    program(tmp_path, "usr/bin/gcc")
    tree(
        tmp_path,
        {"opt/cuda/version.json": '{"cuda_nvcc": {"name": "CUDA NVCC", "version": "13.0.88"}}', "usr/bin/cc": "no"},
    )
    by_path = toolkit({"PATH": "relative:/usr/bin:/opt/cuda/bin"}, root=tmp_path)
    assert (by_path.nvcc, by_path.nvcc_path, by_path.cuda_home) == ("13.0.88", "/opt/cuda/bin/nvcc", "/opt/cuda")
    assert by_path.compilers == ("gcc",)
    by_home = toolkit({"CUDA_HOME": "/opt/cuda"}, root=tmp_path)
    assert (by_home.nvcc, by_home.nvcc_path, by_home.cuda_home) == ("13.0.88", "/opt/cuda/bin/nvcc", "/opt/cuda")


def test_a_host_without_toolkit_has_none(tmp_path: Path) -> None:
    found = toolkit({"PATH": "/usr/bin"}, root=tmp_path)
    assert (found.nvcc, found.nvcc_path, found.cuda_home, found.compilers) == ("", "", "", ())


def test_a_compiler_without_a_table_is_asked_itself_and_may_not_keep_us_waiting(tmp_path: Path) -> None:
    said = "echo 'Cuda compilation tools, release 12.4, V12.4.131'"
    program(tmp_path, "a/nvcc", f"#!/bin/sh\n{said}\n")
    program(tmp_path, "b/nvcc", f"#!/bin/sh\nsleep 30\n{said}\n")
    assert toolkit({"PATH": f"{tmp_path}/a:/usr/bin:/bin"}).nvcc == "12.4.131"
    assert toolkit({"PATH": f"{tmp_path}/b:/usr/bin:/bin"}).nvcc == ""
