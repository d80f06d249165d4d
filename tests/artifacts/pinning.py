"""Small artefacts for tests, pinned like the large ones; wheels and an index that carries them."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping

from artifacts.origin import Origin
from casemate.artifacts.lock import Artifact, Carrier, Part, Url

CODE = "from pathlib import Path\nPath('code-of-a-carrier-ran').touch()\n"


def pinned(content: bytes, *sources: Url | Carrier) -> Artifact:
    return Artifact(
        name="thing",
        group="model",
        file="thing.bin",
        size_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        licence="MIT",
        upstream="nobody",
        revision="",
        sources=sources,
    )


def part(number: int, content: bytes) -> Part:
    """The pin of one stretch, as `wheel(number, …)` carries it."""
    return Part(
        package=f"carrier-part{number}",
        version="1.0",
        member=f"carrier_part{number}/data.bin",
        size_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )


def archive(members: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return packed.getvalue()


def wheel(number: int, content: bytes) -> tuple[str, bytes]:
    """A wheel's file name and bytes. Its code leaves a file behind where it is run."""
    name, folder = f"carrier_part{number}", f"carrier_part{number}-1.0.dist-info"
    members = {
        f"{name}/__init__.py": CODE.encode(),
        f"{name}/data.bin": content,
        f"{folder}/METADATA": f"Metadata-Version: 2.1\nName: carrier-part{number}\nVersion: 1.0\n".encode(),
        f"{folder}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{folder}/RECORD": b"",
    }
    return f"{name}-1.0-py3-none-any.whl", archive(members)


def index(contents: Mapping[int, bytes]) -> Origin:
    """A package index (PEP 503) with one wheel for each number."""
    files: dict[str, bytes] = {}
    for number, content in contents.items():
        name, packed = wheel(number, content)
        files[f"/simple/carrier-part{number}/"] = f"<!DOCTYPE html><a href='/{name}'>{name}</a>".encode()
        files[f"/{name}"] = packed
    return Origin(files)


def wheels_asked(origin: Origin) -> list[str]:
    return [path.lstrip("/").split("-")[0] for path, _ in origin.asked if path.endswith(".whl")]
