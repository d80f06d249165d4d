"""Reads an engine's source where it lies: in a site-packages folder or in a wheel. Text only; nothing is imported."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from casemate.errors import UsageError

_MOST_BYTES = 4 << 20
"""A module of source is smaller; a larger member is not read."""
_MOST_MODULES = 20_000
_PACKAGE = "vllm"
_LEFT_OUT = re.compile(r"/(?:third_party|tests|model_executor/models|model_executor/kernels|v1/spec_decode)/")
_VERSION = re.compile(r"^Version: (\S+)", re.MULTILINE)
_DISTRIBUTION = re.compile(r"vllm[\w.]*-([\w.+]+)\.dist-info/METADATA")


def source(place: Path) -> tuple[str, dict[str, str]]:
    """The version of vLLM in a folder or wheel, and the text of its modules by dotted name.

    Raises:
        UsageError: there is no vLLM in it, or it cannot be read.
    """
    try:
        members = dict(_zipped(place) if place.is_file() else _unpacked(place))
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise UsageError(f"it cannot be read: {error}", where=str(place), remedy="name a wheel or its folder") from None
    version = next((found[1] for name in members if (found := _DISTRIBUTION.fullmatch(name))), "")
    told = next((_VERSION.search(text) for name, text in members.items() if _DISTRIBUTION.fullmatch(name)), None)
    texts = dict(_modules(members))
    if not texts:
        raise UsageError("no vLLM is in it", where=str(place), remedy="name the folder that holds vllm/, or a wheel")
    return (told[1] if told else version) or "unknown", texts


def _modules(members: dict[str, str]) -> Iterator[tuple[str, str]]:
    for name, text in members.items():
        if name.endswith(".py"):
            module = ".".join(PurePosixPath(name).with_suffix("").parts)
            yield module, text
            if module.endswith(".__init__"):
                yield module.removesuffix(".__init__"), text


def _wanted(name: str) -> bool:
    if _DISTRIBUTION.fullmatch(name):
        return True
    return name.startswith(f"{_PACKAGE}/") and name.endswith(".py") and not _LEFT_OUT.search(name)


def _zipped(wheel: Path) -> Iterator[tuple[str, str]]:
    with zipfile.ZipFile(wheel) as archive:
        members = [member for member in archive.infolist() if _wanted(member.filename)]
        for member in members[:_MOST_MODULES]:
            if member.file_size <= _MOST_BYTES:
                with archive.open(member) as opened:
                    yield member.filename, opened.read(_MOST_BYTES).decode("utf-8", errors="replace")


def _unpacked(folder: Path) -> Iterator[tuple[str, str]]:
    root = folder.resolve()
    found = (*root.glob(f"{_PACKAGE}*.dist-info/METADATA"), *(root / _PACKAGE).rglob("*.py"))
    for path in found[:_MOST_MODULES]:
        name = path.relative_to(root).as_posix()
        inside = path.resolve().is_relative_to(root)  # a link out of the folder is not followed
        if _wanted(name) and inside and path.stat().st_size <= _MOST_BYTES:
            yield name, path.read_text(encoding="utf-8", errors="replace")
