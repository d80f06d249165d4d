from __future__ import annotations

from pathlib import Path

import pytest

from casemate.doctor import packages
from casemate.doctor.machine import Package
from fakes.nvidia_code import CHIP, CUBIN, elf, region

TORCH = """\
Metadata-Version: 2.4
Name: torch
Version: {version}
Requires-Dist: filelock
Requires-Dist: triton==3.6.0 ; platform_system == "Linux"
Requires-Dist: nvidia-nccl-cu13 (==2.28.9) ; platform_system == "Linux"
Requires-Dist: transformers>=4 ; extra == "all"

Requires-Dist: torch==0.0.1 is written in the description, which is no header
"""
VERSION_PY = """\
from typing import Optional
__version__ = '2.11.0'
debug = False
cuda: Optional[str] = '13.0'
git_version = 'x'
"""
VLLM = """\
Name: vllm
Version: 0.33.0
Requires-Dist: torch==2.14.0
Requires-Dist: flashinfer-python==0.7.2.post1
Requires-Dist: humming-kernels[cu13]==0.1.19
"""


def install(folder: Path, name: str, metadata: str, **files: bytes | str) -> None:
    entry = folder / f"{name}.dist-info"
    entry.mkdir(parents=True)
    (entry / "METADATA").write_text(metadata)
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)


def test_torch_is_told_with_its_cuda_its_pins_and_the_code_inside(tmp_path: Path) -> None:
    library = elf({".nv_fatbin": region([(CUBIN, 80, 0), (CUBIN, 90, CHIP), (CUBIN, 100, 0)])})
    files: dict[str, bytes | str] = {"torch/version.py": VERSION_PY, "torch/lib/libtorch_cuda.so": library}
    install(tmp_path, "torch-2.11.0", TORCH.format(version="2.11.0"), **files)
    assert packages.installed([tmp_path]) == packages.Installed(
        (
            Package(
                "torch",
                "2.11.0",
                cuda=(13, 0),
                capabilities=("8.0", "9.0a", "10.0"),
                requires=("triton==3.6.0", "nvidia-nccl-cu13==2.28.9"),
                location=str(tmp_path),
                cuda_major=13,
            ),
        ),
    )


def test_a_build_names_its_cuda_in_the_local_part_of_its_version(tmp_path: Path) -> None:
    install(tmp_path, "torch-2.10.0+cu128", TORCH.format(version="2.10.0+cu128"))
    (torch,) = packages.installed([tmp_path]).packages
    assert (torch.version, torch.cuda, torch.cuda_major) == ("2.10.0+cu128", (12, 8), 12)


def test_a_build_for_no_card_says_so(tmp_path: Path) -> None:
    bare: dict[str, bytes | str] = {"torch/version.py": "cuda = None\n"}
    install(tmp_path, "torch-2.10.0+cpu", TORCH.format(version="2.10.0+cpu"), **bare)
    found = packages.installed([tmp_path])
    assert found.packages[0].cuda is None
    assert dict(found.unknown)["packages.torch.capabilities"] == "it has none of the binaries that such a package has"


def test_an_engine_whose_version_names_no_cuda_tells_its_major_by_the_runtime_it_asks_for(tmp_path: Path) -> None:
    code = {".nv_fatbin": region([(CUBIN, 90, 0)]), ".dynstr": b"\0libcudart.so.13\0", ".dynamic": needed(1)}
    files: dict[str, bytes | str] = {
        "vllm/_C_stable_libtorch.abi3.so": elf(code),
        "vllm/_moe_C.abi3.so": elf({".nv_fatbin": region([(CUBIN, 120, 0)])}),
    }
    install(tmp_path, "vllm-0.33.0", VLLM, **files)
    (vllm,) = packages.installed([tmp_path]).packages
    assert (vllm.cuda, vllm.cuda_major, vllm.capabilities) == (None, 13, ("9.0", "12.0"))
    assert vllm.requires == ("torch==2.14.0", "flashinfer-python==0.7.2.post1", "humming-kernels[cu13]==0.1.19")


def needed(place: int) -> bytes:
    return (1).to_bytes(8, "little") + place.to_bytes(8, "little") + bytes(16)


def test_a_binary_that_cannot_be_listed_costs_its_architectures_alone(tmp_path: Path) -> None:
    files: dict[str, bytes | str] = {
        "vllm/_C.abi3.so": elf({".nv_fatbin": region([(CUBIN, 90, 0)])}),
        "vllm/_moe_C.abi3.so": "cut off",
    }
    install(tmp_path, "vllm-0.33.0", VLLM, **files)
    found = packages.installed([tmp_path])
    assert found.packages[0].capabilities == ("9.0",)
    assert found.unknown == (("packages.vllm.capabilities", "_moe_C.abi3.so: it is no ELF file of 64 bits"),)


def test_the_first_folder_that_has_a_package_wins_and_strangers_are_passed_over(tmp_path: Path) -> None:
    install(tmp_path / "one", "vllm-0.33.0", VLLM)
    install(tmp_path / "two", "vllm-0.20.0", VLLM.replace("0.33.0", "0.20.0"))
    install(tmp_path / "two", "Triton-3.6.0", "Name: triton\nVersion: 3.6.0\n")
    install(tmp_path / "two", "requests-2.0", "Name: requests\nVersion: 2.0\n")
    found = packages.installed([tmp_path / "none", tmp_path / "one", tmp_path / "two"]).packages
    assert [(package.name, package.version) for package in found] == [("triton", "3.6.0"), ("vllm", "0.33.0")]


@pytest.mark.parametrize("metadata", ["", "no header", "\x00\xff", "Version:\n"])
def test_a_package_whose_metadata_is_broken_is_told_by_its_folder(metadata: str, tmp_path: Path) -> None:
    install(tmp_path, "triton-3.6.0", metadata)
    assert packages.installed([tmp_path]).packages == (Package("triton", "3.6.0", location=str(tmp_path)),)


def test_packages_are_found_in_a_virtual_environment(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "python3.12" / "site-packages"
    site.mkdir(parents=True)
    (tmp_path / "lib64").symlink_to("lib")
    assert packages.site_folders(tmp_path) == (site.resolve(),)
    assert packages.site_folders(tmp_path / "none") == ()


@pytest.mark.parametrize(
    "form", ["torch {0}\nrequests 2.34.2\n", "torch=={0}\nrequests==2.34.2\n", "Package Version\ntorch   {0}\n"]
)
def test_what_pip_lists_is_read_in_both_forms(form: str) -> None:
    assert packages.listed(form.format("2.11.0+cu130")) == (
        Package("torch", "2.11.0+cu130", cuda=(13, 0), cuda_major=13),
    )


@pytest.mark.parametrize(
    ("version", "cuda"),
    [
        ("2.11.0+cu130", (13, 0)),
        ("0.20.0+cu129", (12, 9)),
        ("2.3.1+precompiled.cu118", (11, 8)),
        ("2.11.0", None),
        ("2.1+cpu", None),
    ],
)
def test_the_local_part_of_a_version_names_cuda(version: str, cuda: tuple[int, int] | None) -> None:
    assert packages.built_for(version) == cuda
