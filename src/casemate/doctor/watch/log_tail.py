"""Follows an engine's log for lines that tell of compiling; what else it says is for `doctor --log`.

Only what is appended after the start is read, so that an old line accuses nobody. A log that was rotated is read anew.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from casemate.doctor.watch.sample import LogSample
from casemate.errors import UsageError

_READ_BYTES: Final = 1 << 20
_LINE_BYTES: Final = 4096
_COMPILES: Final = re.compile(
    rb"JIT compilation during inference|begins? to compile|Autotuning kernel|Compiling (?:a |the )?(?:graph|kernel)"
    rb"|torch\.compile takes|Building extension|JIT (?:compil|build)ing",
    re.IGNORECASE,
)
"""vLLM's monitor of compilations, TileLang, Triton's autotuner, torch.compile, DeepGEMM and FlashInfer."""
_BEGUN: Final = re.compile(rb"begins? to compile", re.IGNORECASE)
_ENDED: Final = re.compile(rb"completes? to compile", re.IGNORECASE)


class LogTail:
    """A log that grows.

    Args:
        path: the file.

    Raises:
        UsageError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rest = b""
        self._open_kernels = 0
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
        except OSError as error:
            raise UsageError(f"cannot be read: {error.strerror}", where=str(path)) from error
        self._file = (status.st_dev, status.st_ino)
        self._place = status.st_size

    def sample(self) -> LogSample:
        """What was added since the last call; a log that is gone adds nothing."""
        count, last = 0, b""
        for line in self._lines():
            self._open_kernels += bool(_BEGUN.search(line)) - bool(_ENDED.search(line))
            self._open_kernels = max(0, self._open_kernels)
            if _COMPILES.search(line):
                count, last = count + 1, line
        shown = last.decode(errors="replace").strip()[-200:]
        return LogSample(compile_lines=count, compiling=self._open_kernels > 0, last=shown)

    def _lines(self) -> list[bytes]:
        try:
            with self._path.open("rb") as file:
                status = os.fstat(file.fileno())
                if (status.st_dev, status.st_ino) != self._file or status.st_size < self._place:
                    self._file, self._place, self._rest = (status.st_dev, status.st_ino), 0, b""
                file.seek(max(self._place, status.st_size - _READ_BYTES))
                data = file.read(_READ_BYTES)
                self._place = file.tell()
        except OSError:
            return []
        *whole, rest = re.split(rb"[\r\n]", self._rest + data)
        self._rest = rest[-_LINE_BYTES:]
        return [line[:_LINE_BYTES] for line in whole]
