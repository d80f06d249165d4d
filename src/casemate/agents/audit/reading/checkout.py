"""What git knows of a tree, asked so that nothing of the tree is run.

A repository's own configuration can name programs: hooks, fsmonitor, filters, textconv, external diffs, transports. So
git is never shown the work tree (where filters and fsmonitor come in); it only lists its index and prints objects. No
transport is allowed, and nobody's configuration but the repository's own is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from casemate import process, settings
from casemate.errors import CasemateError, UsageError

_TIMEOUT_S = 60.0
_OPTIONS = (
    *("--no-pager", "--no-optional-locks", "--no-replace-objects", "--literal-pathspecs", "--work-tree=/"),
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.untrackedCache=false"),
    *("-c", "protocol.allow=never", "-c", "core.pager=cat"),
)
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


@dataclass(frozen=True, slots=True)
class Blob:
    """A file as a revision has it: its object's name."""

    name: str


@dataclass(frozen=True, slots=True)
class Link:
    """A submodule as a revision has it: the commit that it stood at."""

    commit: str


@dataclass(frozen=True, slots=True)
class Checkout:
    """A folder with its `.git`. Git is given that very place, so it neither searches nor trusts what lies around."""

    top: Path

    def tracked(self) -> frozenset[str] | None:
        """Every path of the index, from the top; None where git cannot tell.

        Raises:
            UsageError: there is no git.
        """
        listed = self._ask("ls-files", "-z", "--cached")
        return None if listed is None else frozenset(map(os.fsdecode, listed.split(b"\0"))) - {""}

    def commit(self, revision: str) -> str | None:
        """The commit that a revision names; None where there is none. Raises as `tracked` does."""
        if revision.startswith("-") or "\0" in revision:
            return None
        named = self._ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        return named.decode().strip() if named else None

    def files(self, commit: str) -> dict[str, Blob | Link]:
        """Every file of a commit by its path from the top.

        Raises:
            UsageError: the repository is damaged.
        """
        found: dict[str, Blob | Link] = {}
        for row in self._told("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
            facts, tab, path = row.partition(b"\t")
            if tab:
                mode, _, name = facts.decode().split()
                found[os.fsdecode(path)] = Link(name) if mode == "160000" else Blob(name)
        return found

    def contents(self, blobs: Iterable[str]) -> Iterator[bytes]:
        """The bytes of each blob, by its name, in order. Raises as `files` does."""
        return (self._told("cat-file", "blob", blob) for blob in blobs)

    def _told(self, *arguments: str) -> bytes:
        told = self._ask(*arguments)
        if told is None:
            raise UsageError("git cannot read this repository", where=str(self.top), remedy="see `git fsck`")
        return told

    def _ask(self, *arguments: str) -> bytes | None:
        argv = ["git", f"--git-dir={self.top / '.git'}", *_OPTIONS, *arguments]
        environment = settings.of_environment(("PATH",)) | _ENVIRONMENT
        try:
            # Not in the tree: the search path for programs may hold relative folders.
            done = process.run(argv, timeout_s=_TIMEOUT_S, environment=environment, cwd=Path("/"))
        except CasemateError as error:
            raise UsageError(error.what, remedy="install git, or leave out --diff") from error
        return done.stdout if done.code == 0 and not done.timed_out else None


def checkout_of(folder: Path) -> Checkout | None:
    """The checkout that a folder lies in: the nearest folder from it upwards that has a `.git`."""
    real = Path(os.path.realpath(folder))
    return next((Checkout(above) for above in (real, *real.parents) if is_top(above)), None)


def is_top(folder: Path) -> bool:
    """Whether a folder is the top of a checkout or submodule."""
    return os.path.lexists(folder / ".git")
