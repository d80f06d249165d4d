"""Which packages that touch the card are installed, found without importing any.

Importing torch costs seconds, and on a broken host everything.

Versions and pins come from `*.dist-info/METADATA`, the CUDA that a package was built for from its version's local part
or from torch's own `version.py` (parsed as text), and the architectures from the headers of its binaries.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from email.parser import HeaderParser
from pathlib import Path
from typing import Final

from casemate.doctor import fatbin
from casemate.doctor.machine import Package
from casemate.errors import CasemateError

_LIBRARIES: Final = {
    "torch": ("torch/lib/libtorch_cuda.so",),
    "vllm": ("vllm/_C*.so", "vllm/_moe_C*.so"),
    "flashinfer-python": (),
    "flashinfer-jit-cache": (),
    "flashinfer-cubin": (),
    "triton": (),
    "humming-kernels": ("humming/*.so",),
    "deep-gemm": ("deep_gemm/*.so",),
    "flash-attn": ("flash_attn_2_cuda*.so",),
    "flash-mla": ("flash_mla/*.so",),
    "xformers": ("xformers/_C*.so",),
    "sgl-kernel": ("sgl_kernel/*.so",),
    "tilelang": (),
    "nvidia-nccl-cu12": (),
    "nvidia-nccl-cu13": (),
    "nvidia-cudnn-cu12": (),
    "nvidia-cudnn-cu13": (),
    "ray": (),
    "transformers": (),
}
"""Packages that decide what runs on a card, and where their device code lies, if it is compiled ahead."""

_PINNED: Final = ("torch", "triton", "flashinfer", "transformers", "nvidia-nccl-cu", "humming-kernels")
_LARGEST_TEXT: Final = 1 << 20
_LOCAL = re.compile(r"\+.*?cu(?P<major>\d{2})(?P<minor>\d)")
_TORCH_CUDA = re.compile(r"^cuda\s*(?::[^=]*)?=\s*['\"](?P<major>\d+)\.(?P<minor>\d+)", re.MULTILINE)
_FOLDER = re.compile(r"(?P<name>[A-Za-z0-9._]+?)-(?P<version>[^-]+)\.dist-info")


@dataclass(frozen=True, slots=True)
class Installed:
    """The packages that were found, each name once, and why a fact about one is not known."""

    packages: tuple[Package, ...] = ()
    unknown: tuple[tuple[str, str], ...] = ()


def installed(folders: Iterable[Path], *, limit_s: float = 0.5) -> Installed:
    """Look for packages.

    Args:
        folders: those of `sys.path` of the Python that runs the engine; the first that has a package wins.
        limit_s: how long all the listing of binaries may take.
    """
    deadline = time.monotonic() + limit_s
    found: dict[str, Package] = {}
    unknown: list[tuple[str, str]] = []
    for folder in folders:
        for name, entry in _dist_infos(folder):
            if name in found:
                continue
            package, whys = _looked_into(_described(name, entry), folder, deadline=deadline)
            unknown += [(f"packages.{name}.capabilities", why) for why in whys]
            found[name] = package
    return Installed(tuple(found[name] for name in sorted(found)), tuple(unknown))


def listed(text: str) -> tuple[Package, ...]:
    """The packages in what `pip list` or `pip freeze` printed; of these nobody knows what is inside."""
    pairs = (line.replace("==", " ").split() for line in text.splitlines())
    rows = {normal(words[0]): words[1][:80] for words in pairs if len(words) >= 2 and words[1][:1].isdigit()}
    return tuple(_named(name, rows[name]) for name in sorted(rows.keys() & _LIBRARIES.keys()))


def built_for(version: str) -> tuple[int, int] | None:
    """The CUDA in a version's local part: (13, 0) for `2.11.0+cu130`; None where there is none."""
    local = _LOCAL.search(version)
    return (int(local["major"]), int(local["minor"])) if local else None


def site_folders(environment: Path) -> tuple[Path, ...]:
    """Where a virtual environment keeps its packages: `lib/python3.12/site-packages` and its like."""
    found = (folder for lib in ("lib", "lib64") for folder in environment.glob(f"{lib}/python3*/site-packages"))
    return tuple(dict.fromkeys(folder.resolve() for folder in found))


def normal(name: str) -> str:
    """A package's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _dist_infos(folder: Path) -> Iterator[tuple[str, Path]]:
    try:
        entries = sorted(folder.glob("*.dist-info"))
    except OSError:
        return
    for entry in entries:
        match = _FOLDER.fullmatch(entry.name)
        if match and (name := normal(match["name"])) in _LIBRARIES:
            yield name, entry


def _described(name: str, entry: Path) -> Package:
    metadata = HeaderParser().parsestr(_text(entry / "METADATA").partition("\n\n")[0])
    version = str(metadata.get("Version") or entry.name.removesuffix(".dist-info").partition("-")[2])
    package = _named(name, version)
    if name == "torch" and (noted := _TORCH_CUDA.search(_text(entry.parent / "torch" / "version.py"))):
        package = replace(package, cuda=(int(noted["major"]), int(noted["minor"])), cuda_major=int(noted["major"]))
    requires = [_bare(str(line)) for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in str(line)]
    return replace(package, requires=tuple(line for line in requires if normal(line).startswith(_PINNED)))


def _bare(requirement: str) -> str:
    """`torch==2.11.0` of `torch (==2.11.0) ; platform_system == "Linux"`."""
    return re.sub(r"[\s()]", "", requirement.partition(";")[0])


def _looked_into(package: Package, folder: Path, *, deadline: float) -> tuple[Package, list[str]]:
    """With what the package's binaries hold code for, all of them together; and why some were not listed."""
    patterns = _LIBRARIES[package.name]
    files = [path for pattern in patterns for path in sorted(folder.glob(pattern))]
    found: set[str] = set()
    why = []
    for path in files:
        try:
            found.update(fatbin.capabilities(path, deadline=deadline))
        except CasemateError as error:
            why.append(f"{path.name}: {error}")
    if patterns and not files:
        why.append("it has none of the binaries that such a package has")
    elif files and not found and not why:
        why.append("there is no code for a card in it")
    major = package.cuda_major or next(filter(None, map(fatbin.runtime, files)), None)
    known = replace(package, capabilities=tuple(sorted(found, key=_order)), cuda_major=major, location=str(folder))
    return known, why


def _named(name: str, version: str) -> Package:
    cuda = built_for(version)
    return Package(name, version, cuda, cuda_major=cuda[0] if cuda else None)


def _order(capability: str) -> tuple[int, int, str]:
    major, minor = re.findall(r"\d+", capability)[:2]
    return int(major), int(minor), capability


def _text(path: Path) -> str:
    """The start of a file; nothing if there is none, or we may not read it."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_LARGEST_TEXT)
    except OSError:
        return ""
