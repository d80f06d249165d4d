"""What nvidia-smi prints where it cannot tell of any card: words that stand for a state of the driver. Pure.

It asks NVML, so each of its messages is one of NVML's answers (nvmlReturn_t), or that there is nothing to list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from casemate.doctor.machine import Driver

_SAID: Final = (
    (0, re.compile(r"^No devices were found\b.*$", re.MULTILINE)),
    (9, re.compile(r"^NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.*$", re.MULTILINE)),
    (9, re.compile(r"^Failed to initialize NVML: Driver Not Loaded.*$", re.MULTILINE)),
    (18, re.compile(r"^(?:Failed to initialize NVML: )?Driver/library version mismatch.*$", re.MULTILINE)),
    (4, re.compile(r"^Failed to initialize NVML: Insufficient Permissions.*$", re.MULTILINE)),
    (15, re.compile(r"^(?:Unable to determine the device handle for|Failed to).*GPU is lost.*$", re.MULTILINE)),
    (999, re.compile(r"^(?:Failed to initialize NVML|Unable to determine the device handle for).*$", re.MULTILINE)),
)
"""NVML's answer, and the line that stands for it; the particular before the general."""
_LIBRARY: Final = re.compile(r"^NVML library version:\s*(\d{1,6}(?:\.\d{1,6}){1,4})", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A driver that is there and shows no card: what is known of it, and nvidia-smi's words."""

    driver: Driver
    words: str


def refused(text: str) -> Refusal | None:
    """The refusal in what nvidia-smi printed, on either of its outputs; None if there is none."""
    for answer, line in _SAID:
        if match := line.search(text):
            library = _LIBRARY.search(text)
            return Refusal(Driver(version=library[1] if library else "", nvml=answer), match[0].strip()[:200])
    return None
