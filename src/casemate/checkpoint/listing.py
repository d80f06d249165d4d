"""What a model folder holds, file by file, without opening a model: kinds by name, and where links lead.

A snapshot of the hub's cache is a folder of links into the `blobs` beside it (huggingface_hub's cache layout), so a
link may leave the folder as long as it stays in that repository's own cache. Any other link out of the folder is not
followed. Only regular files are opened: a FIFO would wait for ever, a device may act.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from casemate.checkpoint.jsonscan import shown_path
from casemate.errors import UsageError

PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
"""How files end whose formats run code when loaded, or may."""

_MOST_FILES = 100_000
_MOST_DEEP = 8


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of one folder (not of its subfolders), by name, sorted.

    `pickles` are files whose formats run code when loaded, `outside` are links that lead out of what belongs to the
    folder, `odd` is what is neither file nor folder (FIFO, socket, device, dangling link); these two are in no other
    field.
    """

    path: Path
    files: tuple[str, ...]
    folders: tuple[str, ...]
    outside: tuple[str, ...]
    odd: tuple[str, ...]

    @property
    def safetensors(self) -> tuple[str, ...]:
        """The weight files in the safe format."""
        return self.ending(".safetensors")

    @property
    def pickles(self) -> tuple[str, ...]:
        """Files that would run code when loaded."""
        return self.ending(*PICKLES)

    def ending(self, *suffixes: str) -> tuple[str, ...]:
        """The files whose names end so, in any case of letters."""
        return tuple(name for name in self.files if name.lower().endswith(suffixes))


def listed(folder: Path) -> Listing:
    """List a folder.

    Raises:
        UsageError: it is no folder, cannot be read, or holds more than a model folder would.
    """
    return _listed(folder, _own_or_refused(folder))


def walked(folder: Path) -> Iterator[tuple[str, Listing]]:
    """A folder and its subfolders, each with its path from the first (`""`, `sub`, `sub/sub`), in order.

    Folders whose names begin with a dot are passed over (`.git`, `.cache`), and so are links to folders: what they lead
    to is seen where it lies.

    Raises:
        UsageError: see `listed`; or folders lie deeper in each other than any model's would.
    """
    own, waiting = _own_or_refused(folder), [""]
    while waiting:
        below = waiting.pop()
        if below.count("/") >= _MOST_DEEP:
            raise UsageError(f"more than {_MOST_DEEP} folders in each other", where=shown_path(folder))
        listing = _listed(folder / below, own)
        yield below, listing
        deeper = [name for name in listing.folders if not name.startswith(".")]
        waiting += [
            f"{below}/{name}".lstrip("/") for name in reversed(deeper) if not (folder / below / name).is_symlink()
        ]


@contextmanager
def opened(path: Path) -> Iterator[BufferedReader]:
    """A regular file for reading, and never anything that waits or acts.

    Raises:
        UsageError: it cannot be opened or read, or is no regular file.
    """
    try:
        # Without waiting: a FIFO between the look and the opening would block for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UsageError("not a regular file", where=shown_path(path))
            yield file
    except OSError as error:
        raise UsageError(f"the file cannot be read: {error.strerror}", where=shown_path(path)) from error
    except ValueError as error:  # a zero byte in the name
        raise UsageError("the file's name is no name", where=shown_path(path)) from error


def _own_or_refused(folder: Path) -> Path:
    try:
        return _own(folder)
    except OSError as error:
        raise UsageError(f"the folder cannot be read: {error.strerror}", where=shown_path(folder)) from error
    except (ValueError, RuntimeError) as error:  # a zero byte in the name, links in a circle
        raise UsageError("the folder's path leads nowhere", where=shown_path(folder)) from error


def _listed(folder: Path, own: Path) -> Listing:
    kinds: dict[str, list[str]] = {"files": [], "folders": [], "outside": [], "odd": []}
    try:
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if number >= _MOST_FILES:
                    raise UsageError(f"more than {_MOST_FILES} files: not a model folder", where=shown_path(folder))
                kinds[_kind(entry, own)].append(entry.name)
    except OSError as error:
        raise UsageError(f"the folder cannot be read: {error.strerror}", where=shown_path(folder)) from error
    return Listing(folder, **{kind: tuple(sorted(names)) for kind, names in kinds.items()})


def _own(folder: Path) -> Path:
    """The folder that links may lead into: this one, or the cache of the repository that it is a snapshot of."""
    real = folder.resolve(strict=True)
    is_snapshot = real.parent.name == "snapshots" and (real.parent.parent / "blobs").is_dir()
    return real.parent.parent if is_snapshot else real


def _kind(entry: os.DirEntry[str], own: Path) -> str:
    if entry.is_symlink():
        try:
            if not Path(entry.path).resolve(strict=True).is_relative_to(own):
                return "outside"
        except (OSError, RuntimeError):  # leads nowhere, or in a circle
            return "odd"
    if entry.is_file():
        return "files"
    return "folders" if entry.is_dir() else "odd"
