"""All checks of a machine, and what they come to."""

from __future__ import annotations

from casemate.doctor.checks import cards, container, driver, health, limits, links, model, packages
from casemate.doctor.checks.check import Check, Verdict
from casemate.doctor.checks.model import Model
from casemate.doctor.engines import Wheel
from casemate.doctor.machine import Machine

ESSENTIAL = frozenset(
    {cards.PRESENT.id, cards.MEMORY.id, cards.CAPABILITY.id, driver.PRESENT.id, driver.CUDA.id, driver.STARTS.id}
)
"""What must be known before anybody may say that an engine runs on these cards."""


def judge(machine: Machine, wheels: tuple[Wheel, ...], *, model_: Model | None = None) -> tuple[Check, ...]:
    """Every check that this machine calls for, theme by theme.

    Args:
        machine: its facts.
        wheels: the engine builds that exist (`engines.parsed`).
        model_: the model's folder as it was read; None where none was named.

    Returns:
        The checks. A host without cards gets those of a host only: that is a normal case, not a fault.
    """
    return (
        *cards.checks(machine),
        *driver.checks(machine, wheels),
        *links.checks(machine),
        *health.checks(machine),
        *packages.checks(machine),
        *container.checks(machine),
        *limits.checks(machine),
        *model.checks(machine, model_),
    )


def overall(checks: tuple[Check, ...]) -> Verdict:
    """What they come to: `fail`, `unknown` (something essential is not known), `warn`, or `ok`."""
    if any(check.verdict == "fail" for check in checks):
        return "fail"
    if any(check.verdict == "unknown" and check.id in ESSENTIAL for check in checks):
        return "unknown"
    return "warn" if any(check.verdict == "warn" for check in checks) else "ok"
