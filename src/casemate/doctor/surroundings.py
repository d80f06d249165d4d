"""What the system around an engine allows: shared memory, limits, container, device nodes, mandatory access control.

Everything comes from files below one root, so that a recorded tree can be read like the real one. The environment is
handed in by the roof, by the names in `VARIABLES` and no others.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from casemate.doctor import pci
from casemate.doctor.machine import Surroundings

VARIABLES: Final = (
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_HOME", "CUDA_PATH", "CUDA_MODULE_LOADING",
    "CUDA_LAUNCH_BLOCKING", "CUDA_CACHE_PATH", "CUDA_MPS_PIPE_DIRECTORY", "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_DISABLE_REQUIRE", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
    "TORCH_CUDA_ARCH_LIST", "TORCHINDUCTOR_CACHE_DIR", "TORCH_SYMM_MEM_DISABLE_MULTICAST", "TRITON_CACHE_DIR",
    "FLASHINFER_WORKSPACE_BASE", "FLASHINFER_CUDA_ARCH_LIST", "DG_JIT_CACHE_DIR", "MAX_JOBS", "OMP_NUM_THREADS",
    "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE", "NCCL_NVLS_ENABLE",
    "NCCL_CUMEM_ENABLE", "NCCL_SOCKET_IFNAME", "NCCL_DEBUG", "NCCL_ALGO", "NCCL_PROTO", "GLOO_SOCKET_IFNAME",
    "VLLM_HOST_IP",
    "VLLM_ATTENTION_BACKEND", "VLLM_CACHE_ROOT", "VLLM_ENABLE_CUDA_COMPATIBILITY", "VLLM_CUDA_COMPATIBILITY_PATH",
    "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", "VLLM_WORKER_MULTIPROC_METHOD", "VLLM_USE_DEEP_GEMM", "VLLM_USE_V1",
    "VLLM_NCCL_SO_PATH", "VLLM_TARGET_DEVICE", "VLLM_SKIP_P2P_CHECK", "VLLM_DISABLE_PYNCCL", "VLLM_LOGGING_LEVEL",
    "HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "XDG_CACHE_HOME", "VIRTUAL_ENV",
    "CONDA_PREFIX", "KUBERNETES_SERVICE_HOST", "WSL_DISTRO_NAME", "PATH", "HOME",
)  # fmt: skip
"""What an engine, its libraries or this room heed. None holds a secret; `PATH` and `HOME` are used, not kept."""

_NOT_KEPT: Final = ("PATH", "HOME", "KUBERNETES_SERVICE_HOST", "WSL_DISTRO_NAME", "VLLM_HOST_IP")
KEPT: Final = tuple(name for name in VARIABLES if name not in _NOT_KEPT)
"""Those that stand in a Machine."""

_LIMIT = re.compile(r"^(?P<name>Max [a-z ]+?)\s{2,}(?P<soft>\d+|unlimited)\s", re.MULTILINE)
_MODULE = re.compile(r"Kernel Module(?: for \S+)?\s+(?P<version>\d+(?:\.\d+)+)")
_GROUPS: Final = (
    ("kubepods", "kubernetes"),
    ("libpod", "podman"),
    ("docker", "docker"),
    ("containerd", "containerd"),
    ("lxc", "lxc"),
)
_MARKS: Final = (
    ("var/run/secrets/kubernetes.io", "kubernetes"),
    ("run/.containerenv", "podman"),
    (".dockerenv", "docker"),
)
_FABRIC_MANAGERS: Final = ("nv-fabricmanage", "nvlsm")
"""As the kernel shortens a process's name."""


def surroundings(variables: Mapping[str, str], *, root: Path = Path("/")) -> Surroundings:
    """Look around.

    Args:
        variables: those of the environment that are in `VARIABLES`.
        root: where `proc`, `sys` and `dev` are; another one for a recording.
    """
    limits = {match["name"]: match["soft"] for match in _LIMIT.finditer(_text(root / "proc/self/limits"))}
    container = _container(variables, root)
    nodes = _nodes(root)
    release = _text(root / "proc/sys/kernel/osrelease") or platform.release()
    facts: dict[str, Any] = {
        "memlock_bytes": _limit(limits.get("Max locked memory")),
        "open_files": _limit(limits.get("Max open files")),
        "core_bytes": _limit(limits.get("Max core file size")),
        "container": container,
        "wsl": "microsoft" in release.lower() or "WSL_DISTRO_NAME" in variables,
        "device_nodes": tuple(f"/{node.relative_to(root)}" for node in nodes),
        "device_nodes_denied": tuple(f"/{node.relative_to(root)}" for node in nodes if not _may_open(node)),
        "python": platform.python_version(),
        "glibc": _glibc(),
        "kernel": release,
        "variables": tuple((name, variables[name]) for name in sorted(variables) if name in KEPT),
        "hugging_face_cache": _hugging_face(variables),
    }
    facts |= _shared_memory(root) | _mandatory_access(root, nodes) | _bus(root, nodes, contained=bool(container))
    return Surroundings(**facts)


def kernel_module(root: Path = Path("/")) -> str:
    """The version of the driver's kernel module that is loaded; empty if there is none."""
    loaded = _text(root / "sys/module/nvidia/version")
    told = _MODULE.search(_text(root / "proc/driver/nvidia/version"))
    return loaded or (told["version"] if told else "")


def _shared_memory(root: Path) -> dict[str, Any]:
    if root != Path("/"):  # in a recorded tree it would be the disk that the recording lies on
        return {}
    try:
        found = os.statvfs("/dev/shm")  # noqa: S108 - it is measured, nothing is put there
    except OSError:
        return {}
    return {
        "shm_total_bytes": found.f_blocks * found.f_frsize,
        "shm_free_bytes": found.f_bavail * found.f_frsize,
    }


def _limit(soft: str | None) -> int | None:
    return int(soft) if soft and soft.isdigit() else None


def _container(variables: Mapping[str, str], root: Path) -> str:
    if "KUBERNETES_SERVICE_HOST" in variables:
        return "kubernetes"
    for mark, name in _MARKS:
        if _exists(root / mark):
            return name
    if told := _text(root / "run/systemd/container"):
        return told.split()[0]
    mounts = _text(root / "proc/self/mountinfo").splitlines()
    ours = [line for line in mounts if line.split(maxsplit=5)[4:5] == ["/"]]  # others' mounts are seen from a host too
    groups = "\n".join((_text(root / "proc/1/cgroup"), _text(root / "proc/self/cgroup"), *ours))
    for word, name in _GROUPS:
        if re.search(rf"[/:.]{word}[-/.](?!service)", groups):
            return name
    started = re.search(r"(?:^|\0)container=([a-z-]+)", _text(root / "proc/1/environ"))
    return started[1] if started else ""


def _nodes(root: Path) -> list[Path]:
    """The driver's device nodes, those of MIG among them; under WSL the one of the host's driver."""
    try:
        found = [*root.glob("dev/nvidia*"), *root.glob("dev/nvidia-caps/*"), *root.glob("dev/dxg")]
        return sorted(node for node in found if not node.is_dir())
    except OSError:
        return []


def _may_open(node: Path) -> bool:
    """By its rights alone: to open it might wake a driver that never answers. `driver_child` really opens them.

    A MIG capability is for reading; the first one lets its holder make slices, and belongs to root.
    """
    wanted = os.R_OK if node.parent.name == "nvidia-caps" else os.R_OK | os.W_OK
    return node.name == "nvidia-cap1" or os.access(node, wanted)


def _mandatory_access(root: Path, nodes: list[Path]) -> dict[str, Any]:
    modes = []
    enforce = _text(root / "sys/fs/selinux/enforce")
    if enforce:
        modes.append("selinux enforcing" if enforce == "1" else "selinux permissive")
    label = _text(root / "proc/self/attr/apparmor/current") or _text(root / "proc/self/attr/current")
    label = label.strip("\0")
    if _text(root / "sys/module/apparmor/parameters/enabled") == "Y":
        mode = re.search(r"\((\w+)\)$", label)
        modes.append(f"apparmor {mode[1] if mode else 'unconfined'}")
    labels = tuple(_labels(root, nodes)) if enforce else ()
    return {"mandatory_access": "; ".join(modes), "process_label": label if modes else "", "device_labels": labels}


def _labels(root: Path, nodes: list[Path]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        try:
            context = os.getxattr(node, "security.selinux")
        except (OSError, AttributeError):  # macOS has no such call
            continue
        yield f"/{node.relative_to(root)}", context.decode(errors="replace").strip("\0")


def _bus(root: Path, nodes: list[Path], *, contained: bool) -> dict[str, Any]:
    bus = pci.look(root)
    switch = bus.switches > 0 or any(node.name.startswith("nvidia-nvswitch") for node in nodes)
    manager = _runs(root, _FABRIC_MANAGERS)
    # Another namespace's processes cannot be seen, so from inside a container "not seen" says nothing.
    return {
        "nvswitch": switch if bus.seen or switch else None,
        "fabric_manager": True if manager else False if switch and not contained else None,
        "iommu": bus.iommu,
        "acs_redirect": bus.acs_redirect,
        "pci_cards": bus.cards,
    }


def _runs(root: Path, names: tuple[str, ...]) -> bool:
    if any(
        _exists(root / place) for place in ("run/nvidia-fabricmanager/socket", "var/run/nvidia-fabricmanager/socket")
    ):
        return True
    return any(_text(comm) in names for comm in root.glob("proc/[0-9]*/comm"))


def _glibc() -> str:
    name, version = platform.libc_ver()
    return version if name == "glibc" else ""


def _hugging_face(variables: Mapping[str, str]) -> str:
    if cache := variables.get("HF_HUB_CACHE"):
        return cache
    above = variables.get("XDG_CACHE_HOME") or (f"{variables['HOME']}/.cache" if "HOME" in variables else "")
    home = variables.get("HF_HOME") or (f"{above}/huggingface" if above else "")
    return f"{home}/hub" if home else ""


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _text(path: Path) -> str:
    """What a file says; nothing if there is none, or we may not ask."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
