"""Git checkouts that tests make."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_ENVIRONMENT = {
    **{name: os.environ[name] for name in ("PATH",) if name in os.environ},
    **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "test"),
    **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "test@example.org"),
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
}


def git(folder: Path, *arguments: str) -> str:
    """Run git as a user would."""
    argv = ["git", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always", *arguments]
    return subprocess.run(
        argv, cwd=folder, env=_ENVIRONMENT, check=True, capture_output=True, text=True, timeout=60
    ).stdout


def commit(folder: Path, files: dict[str, str | bytes]) -> None:
    """Write files and commit all that is there, ignored or not; the first commit makes the checkout."""
    folder.mkdir(exist_ok=True)
    if not (folder / ".git").exists():
        git(folder, "init", "--quiet")
    write(folder, files)
    git(folder, "add", "--all", "--force", ".")
    git(folder, "commit", "--quiet", "--message", "a change")


def write(folder: Path, files: dict[str, str | bytes]) -> None:
    """Write files only."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
