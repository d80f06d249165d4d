"""The machine that a verb speaks of: this host as it is now, or what `casemate doctor --json` printed elsewhere."""

from __future__ import annotations

from pathlib import Path

from casemate import settings
from casemate.doctor import codec, probe, surroundings
from casemate.doctor.machine import Machine
from casemate.errors import UsageError

_MOST_BYTES = 64 << 20


def this_host(model: Path | None) -> Machine:
    """This host, measured with its cards; `model` is where the model lies or is to lie."""
    variables = settings.of_environment(surroundings.VARIABLES)
    return probe.examine(settings.load().root, model_folder=model, variables=variables)


def told(file: Path) -> tuple[Machine, tuple[str, ...]]:
    """The machine in a file, with notes on what in it was not understood.

    Raises:
        UsageError: it cannot be read, is too large, or holds no machine.
    """
    try:
        with file.open("rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"cannot be read: {why}", where=str(file), remedy="name what `doctor --json` wrote") from error
    if len(data) > _MOST_BYTES:
        raise UsageError("too large for a machine's recording", where=str(file))
    return codec.parse(data, where=str(file))
