"""The material of an audit with its archives opened, for as long as it is looked at.

Archives are unpacked in workers into a folder of our own. For an archive inside a tree that folder shows the whole
tree: the archive as a folder of its name and `!`, everything beside it through links that we make ourselves.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from casemate.agents.audit.reading.archives import Unpacked, is_archive, unpack
from casemate.agents.audit.reading.material import ARCHIVE, Material, walk
from casemate.errors import UsageError
from casemate.finding import Unread
from casemate.process import Broken, Limits, each

_LIMITS = Limits(time_s=120.0, memory_bytes=2 << 30, processes=1)
_MAX_NESTED = 3
"""How deep archives in archives are opened."""
_MAX_ARCHIVES = 1000


@dataclass(frozen=True, slots=True)
class Options:
    """What of a tree is looked at: files that git leaves alone are not, archives are not opened, unless asked."""

    ignore: bool = True
    archives: bool = False


@contextmanager
def gathered(root: Path, options: Options) -> Iterator[Material]:
    """The material below a root; an archive as the root is always opened. Its files are there until the context ends.

    Raises:
        UsageError: the path is not there, cannot be read, or holds no file.
    """
    material = walk(root, ignore=options.ignore)
    closed = [unread.path for unread in material.skipped if unread.reason == ARCHIVE]
    if not closed or not (options.archives or (root.is_file() and is_archive(root.name))):
        yield material
        return
    with tempfile.TemporaryDirectory(prefix="casemate-audit-", ignore_cleanup_errors=True) as folder:
        shown = Path(folder)
        if root.is_dir():
            _mirror(root, shown, archives=closed)
        yield _opened(replace(material, root=shown), {path: material.root / path for path in closed})


def is_temporary(material: Material, root: Path) -> bool:
    """Whether gathered material lies in a folder that goes with it."""
    return material.root not in {root, root.parent}


def _mirror(root: Path, shown: Path, *, archives: list[str]) -> None:
    """Show a tree in another folder: real folders down to each archive, and links for what lies beside."""
    needed = {Path()} | {above for path in archives for above in Path(path).parents}
    hidden = {Path(path) for path in archives}
    for folder in sorted(needed, key=lambda path: len(path.parts)):
        if folder.parts:
            (shown / folder).mkdir(mode=0o700)
        for entry in (root / folder).iterdir():
            inner = folder / entry.name
            if inner not in needed and inner not in hidden and not entry.is_symlink():
                (shown / inner).symlink_to(entry.absolute())


def _opened(material: Material, waiting: dict[str, Path]) -> Material:
    """The material with its archives, and those in them, in place of their lines in the ledger."""
    files, skipped, failed = list(material.files), list(material.skipped), list(material.failed)
    opened = 0
    for _ in range(_MAX_NESTED):
        asked = [(str(source), str(material.root / f"{path}!"), path) for path, source in waiting.items()]
        asked = asked[: _MAX_ARCHIVES - opened]
        opened += len(asked)
        waiting = {}
        for (_, target, path), outcome in each(unpack, asked, limits=_LIMITS):
            skipped = [unread for unread in skipped if unread.path != path]
            if not isinstance(outcome, Unpacked):
                failed.append(Unread(path, outcome.reason if isinstance(outcome, Broken) else outcome))
                continue
            inner = _inside(Path(target), path, root=material.root)
            files += inner.files
            skipped += (*outcome.skipped, *inner.skipped)
            failed += inner.failed
            waiting |= {found.path: material.root / found.path for found in inner.skipped if found.reason == ARCHIVE}
    return replace(material, files=tuple(files), skipped=tuple(skipped), failed=tuple(failed))


def _inside(target: Path, path: str, *, root: Path) -> Material:
    """What one unpacked archive holds, under its path; of an empty one, that it is empty."""
    try:
        found = walk(target, ignore=False)
    except UsageError:
        return Material(root, skipped=(Unread(path, "archive without files"),))
    return Material(
        root,
        tuple(f"{path}!/{file}" for file in found.files),
        tuple(Unread(f"{path}!/{unread.path}", unread.reason) for unread in found.skipped),
        tuple(Unread(f"{path}!/{unread.path}", unread.reason) for unread in found.failed),
    )
