"""Every error Casemate raises on purpose, as one tree.

    CasemateError            what happened, where, and the remedy; one line, never a traceback
    ├── UsageError           the request cannot mean anything: a path that is not there, an unknown name
    ├── SettingsError        a setting is unknown or malformed; names key, value and source
    ├── ArtifactError        pinned bytes could not be had or are not what was pinned
    ├── EngineError          the engine cannot start, or broke
    │   └── EngineDied       its process ended; carries the exit code and the last lines it wrote
    ├── ModelError           a chat endpoint refused, broke off, or answered nonsense
    ├── KnowledgeError       the graph is absent, damaged or foreign
    └── PlatformError        the platform (up, down, status) is in the wrong state: port taken, not running

A bad *outcome* (findings, a refusal, a failed check) is a result and never raised. Exit codes and HTTP statuses are
set at the roofs alone (`cli/main.py`, `web/`).
"""


class CasemateError(Exception):
    """An expected failure of the world, told in one line.

    Args:
        what: what went wrong, as a sentence without a full stop.
        where: file, address or name that it concerns; empty where there is none.
        remedy: what the reader can do now; empty where nothing helps.
    """

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        super().__init__(what)

    def __str__(self) -> str:
        line = self.what + (f" ({self.where})" if self.where else "")
        line += f": {self.remedy}" if self.remedy else ""
        return " ".join(line.split())


class UsageError(CasemateError):
    """The request cannot mean anything."""


class SettingsError(CasemateError):
    """A setting is unknown or malformed."""


class ArtifactError(CasemateError):
    """Pinned bytes could not be had, or are not what was pinned."""


class EngineError(CasemateError):
    """The engine cannot start, or broke."""


class EngineDied(EngineError):  # noqa: N818 - it is a fact that the supervisor reports, and reads as one
    """The engine's process ended while it was needed.

    Args:
        what: see CasemateError.
        exit_code: the process's status; negative for a signal.
        tail: the last lines that it wrote, oldest first.
    """

    def __init__(self, what: str, *, exit_code: int, tail: tuple[str, ...] = (), where: str = "") -> None:
        last = tail[-1].strip() if tail else ""
        super().__init__(what, where=where, remedy=f"its last line was {last!r}" if last else "")
        self.exit_code = exit_code
        self.tail = tail


class ModelError(CasemateError):
    """A chat endpoint refused, broke off, or answered nonsense.

    Args:
        what: see CasemateError.
        status: HTTP status that the endpoint gave; 0 where there was none.
    """

    def __init__(self, what: str, *, status: int = 0, where: str = "", remedy: str = "") -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.status = status


class KnowledgeError(CasemateError):
    """The graph is absent, damaged or foreign."""


class PlatformError(CasemateError):
    """The platform is in the wrong state for what was asked."""
