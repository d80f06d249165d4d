"""The CUDA toolkit and the compilers that kernels made at run time need. An engine from wheels does without either."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from casemate.doctor.bounded import hear

_COMPILERS: Final = ("cc", "c++", "gcc", "g++", "clang", "clang++", "ninja")
_WHERE: Final = "/usr/local/cuda"
_RELEASE = re.compile(r"release \d+\.\d+, V(?P<version>\d+(?:\.\d+)+)")
_LIMIT_S: Final = 1.0
_LARGEST_TEXT: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Toolkit:
    """The CUDA compiler's release (`13.0.88`) and file, the folder it belongs to, and other compilers' names."""

    nvcc: str = ""
    nvcc_path: str = ""
    cuda_home: str = ""
    compilers: tuple[str, ...] = ()


def toolkit(variables: Mapping[str, str], *, root: Path = Path("/")) -> Toolkit:
    """Look for it where CUDA_HOME and PATH point, then where NVIDIA's packages put it.

    Args:
        variables: PATH, CUDA_HOME and CUDA_PATH of the environment.
        root: below which the folders are; nothing is run below any but the real one.
    """
    path = variables.get("PATH", "")
    home = variables.get("CUDA_HOME") or variables.get("CUDA_PATH", "")
    folders = [*([f"{home}/bin"] if home else []), *path.split(os.pathsep), f"{_WHERE}/bin"]
    nvcc = next(_programs("nvcc", folders, root=root), "")
    home = home or _home(nvcc, root)
    compilers = tuple(name for name in _COMPILERS if any(_programs(name, path.split(os.pathsep), root=root)))
    return Toolkit(_version(nvcc, path, root=root) if nvcc else "", nvcc, home, compilers)


def release(text: str) -> str:
    """The version in what `nvcc --version` prints; empty if it is not there."""
    found = _RELEASE.search(text)
    return found["version"] if found else ""


def program(name: str, variables: Mapping[str, str], *, others: tuple[str, ...] = ()) -> str:
    """The file of a program on PATH, or else in one of the other folders; empty if there is none."""
    folders = [*variables.get("PATH", "").split(os.pathsep), *others]
    return next(_programs(name, folders, root=Path("/")), "")


def _home(nvcc: str, root: Path) -> str:
    """The folder of a toolkit by its compiler, or the usual one where that is only a wrapper."""
    top = root.resolve()
    of_compiler = [(root / nvcc.lstrip("/")).resolve().parent.parent] if nvcc else []
    for folder in (*of_compiler, top / _WHERE.lstrip("/")):
        if folder.is_relative_to(top) and any((folder / part).exists() for part in ("version.json", "nvvm")):
            return f"/{folder.relative_to(top)}"
    return ""


def _programs(name: str, folders: list[str], *, root: Path) -> Iterator[str]:
    for folder in folders:
        if folder.startswith("/"):  # a relative entry would be looked for in the working folder
            file = root / folder.lstrip("/") / name
            if file.is_file() and os.access(file, os.X_OK):
                yield f"{folder}/{name}"


def _version(nvcc: str, path: str, *, root: Path) -> str:
    """From the toolkit's own table, which is there since 11.1; else from the compiler."""
    table = root / nvcc.lstrip("/")
    try:
        with (table.resolve().parent.parent / "version.json").open(encoding="utf-8") as file:
            return str(json.loads(file.read(_LARGEST_TEXT))["cuda_nvcc"]["version"])
    except (OSError, ValueError, LookupError, TypeError):
        pass
    if root != Path("/"):
        return ""
    return release(hear([nvcc, "--version"], limit_s=_LIMIT_S, environment={"PATH": path}).stdout)
