"""Whether code inside a binary runs on a card: CUDA's rules for cubins, family code and PTX.

Sources: CUDA C++ Programming Guide, "Binary Compatibility" and "PTX Compatibility"; "Family-Specific Features".
"""

from __future__ import annotations

import re
from typing import Literal

Reach = Literal["native", "compiled by the driver", "too new", "none", "unknown"]
"""`too new`: there is PTX that would do, but this driver is older than the toolkit that wrote it."""

_WRITTEN = re.compile(r"(\d{1,2})\.(\d)([af]?)(\+PTX)?")


def reach(
    capabilities: tuple[str, ...],
    card: tuple[int, int],
    *,
    built: tuple[int, int] | None,
    driver: tuple[int, int] | None,
) -> Reach:
    """How a binary reaches a card.

    Args:
        capabilities: what is inside: `9.0` serves 9.x from there on, `9.0a` 9.0 alone, `10.0f` its family, `8.0+PTX`
            all that came later, compiled by the driver.
        card: its compute capability.
        built: CUDA version of the toolkit that wrote it.
        driver: CUDA version that the driver offers: it compiles PTX of its own version and older.
    """
    inside = [match for text in capabilities if (match := _WRITTEN.fullmatch(text.strip()))]
    if not inside:
        return "unknown"
    if any(_serves((int(match[1]), int(match[2])), card, kind=match[3]) for match in inside if not match[4]):
        return "native"
    if not any(_compiles((int(match[1]), int(match[2])), card, kind=match[3]) for match in inside if match[4]):
        return "none"
    if built is None or driver is None:
        return "unknown"
    return "compiled by the driver" if built <= driver else "too new"


def _serves(code: tuple[int, int], card: tuple[int, int], *, kind: str) -> bool:
    if kind == "a":
        return code == card
    return code[0] == card[0] and code[1] <= card[1]


def _compiles(code: tuple[int, int], card: tuple[int, int], *, kind: str) -> bool:
    if kind:
        return _serves(code, card, kind=kind)
    return code <= card
