"""Which engine wheels exist, for which CUDA: the rows of `engines.tsv` as values, and the rule that binds. Pure.

The rule (NVIDIA, CUDA Compatibility, "Minor Version Compatibility"): a program built with a toolkit runs on a driver
that offers the same CUDA major version or a newer one. The minor versions need not agree, and no toolkit is needed.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass

ENGINE = "vllm"
TABLE = "engines.tsv"
"""The file beside this one; a roof reads it and hands its text to `parsed`."""

Version = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Wheel:
    """One file of an install, as the package index or the release page tells it.

    Attributes:
        release: the engine's release that pins it; for the engine itself its own.
        cuda: what the install is built for.
        version: as an installer takes it, local part included (`0.30.0+cu129`).
        architecture: of the processor; `any` for pure Python.
        python: first and last version that it serves; None for any.
        glibc: oldest C library that it runs with; None for any.
        sha256: empty where no digest was found.
        address: where the file lies, if not on the package index.
        source: the page that publishes it, and `seen` when it was read: there, or `as quoted` by public lock files.
    """

    release: str
    cuda: Version
    package: str
    version: str
    architecture: str
    python: tuple[Version, Version] | None
    glibc: Version | None
    sha256: str
    address: str
    source: str
    seen: str

    @property
    def quoted(self) -> bool:
        """Whether the digest was read where somebody quotes it, not where it is published."""
        return bool(self.sha256) and "quoted" in self.seen

    def serves(self, architecture: str, python: Version) -> bool:
        """Whether it is for this processor and this Python."""
        fits = self.python is None or self.python[0] <= python <= self.python[1]
        return self.architecture in ("any", architecture) and fits


def parsed(table: str) -> tuple[Wheel, ...]:
    """The wheels of a table: a head line, tab-separated, no quoting."""
    return tuple(_wheel(row) for row in csv.DictReader(table.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))


def version(text: str) -> Version | None:
    """The first two numbers of a version text (`535.129.03`, `V13.0.88`, `12.9`); None if there are none."""
    numbers = "".join(character if character in "0123456789" else " " for character in text).split()[:2]
    return (int(numbers[0]), int(numbers[1])) if len(numbers) == 2 and all(len(n) <= 9 for n in numbers) else None


def runs(built: Version, driver: Version) -> bool:
    """Whether something built for a CUDA version starts on a driver that offers one: the major version decides."""
    return built[0] <= driver[0]


def flavour(cuda: Version) -> str:
    """(12, 9) as package indexes write it: `cu129`."""
    return f"cu{cuda[0]}{cuda[1]}"


def order(release: str) -> tuple[int, ...]:
    """A release as numbers that sort: `0.30.0` before `0.33.0`."""
    return tuple(int(part) for part in release.split(".") if part.isdigit())


def _wheel(row: dict[str, str]) -> Wheel:
    built, python = version(row["cuda"]), row["python"]
    if built is None:
        raise ValueError(f"no CUDA version in {row}")
    first, _, last = python.partition("-")
    low, high = version(first), version(last or first)
    return Wheel(
        release=row["release"],
        cuda=built,
        package=row["package"],
        version=row["version"],
        architecture=row["architecture"],
        python=(low, high) if low and high else None,
        glibc=version(row["glibc"]),
        sha256=row["sha256"],
        address=row["address"],
        source=row["source"],
        seen=row["seen"],
    )
