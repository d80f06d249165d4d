"""Which table a command is judged by: a help text, the version that was asked for, or what is known of the engine."""

from __future__ import annotations

from dataclasses import dataclass

from casemate.doctor.machine import Machine
from casemate.engine.flags.helptext import from_help
from casemate.engine.flags.table import recorded
from casemate.errors import UsageError
from casemate.plan.recipe.flags import FlagTable, numbers

_ENGINE = "vllm"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user said of the engine: a version (empty: nothing), the text of its help, the host's facts."""

    version: str = ""
    help_text: str | None = None
    machine: Machine | None = None


def chosen(asked: Asked, tagged: str = "") -> tuple[FlagTable, str]:
    """The table to judge by, and a note where it is not exactly the version in question.

    A help text counts before all else, then the version that was asked for, the one in an image's tag, the one that is
    installed on the machine, the newest that is recorded.

    Raises:
        UsageError: the version is none, or older than all recorded ones; or the text is no full help.
    """
    history = recorded()
    if asked.help_text is not None:
        return from_help(asked.help_text, history), ""
    wanted = asked.version or tagged or _installed(asked.machine) or history.versions[-1]
    parts = numbers(wanted)
    if len(parts) < 2:
        raise UsageError("this is no version of vLLM", where=wanted, remedy=f"one of {', '.join(history.versions)}")
    oldest = history.versions[0]
    if parts < numbers(oldest) and not asked.version:
        return history.table(oldest), f"{wanted} is older than all that is recorded: judged by {oldest}"
    if parts < numbers(oldest):
        raise UsageError(
            f"nothing is recorded before {oldest}",
            where=wanted,
            remedy="give its --help text: --help-file",
        )
    nearest = history.nearest(wanted)
    exact = numbers(nearest) == parts
    note = f"{wanted} is not recorded: judged by {nearest}; --help-file takes the installed engine's own help"
    return history.table(nearest), "" if exact else note


def _installed(machine: Machine | None) -> str:
    packages = machine.packages if machine else ()
    return next((package.version for package in packages if package.name == _ENGINE), "")
