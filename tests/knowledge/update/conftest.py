"""Homes to update: one where nothing was brought yet, one where something was."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from casemate import settings
from casemate.cli import updating
from casemate.knowledge import build as builder
from knowledge.update.desk import ENTRY, PINNED, SMALL, WITHDRAWN, Desk, kev


@pytest.fixture(scope="session")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("furnished")
    (folder / "artifacts").mkdir()
    for name, pinned in PINNED.items():
        text = (SMALL / name).read_text().replace('Version="9.1"', 'Version="4.14"')  # older than the facts that ship
        (folder / "artifacts" / pinned).write_text(text)
    builder.build(builder.sources(folder / "artifacts"), folder / "graph.sqlite")
    return folder


@pytest.fixture(scope="session")
def updated(furnished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("updated") / "home"
    shutil.copytree(furnished, folder)
    (folder / "sources").mkdir(mode=0o700)
    (folder / "sources" / "kev.first.json").write_text(kev(ENTRY, WITHDRAWN))
    builder.build(builder.sources(folder / "artifacts", folder / "sources"), folder / "graph.sqlite")
    return folder


@pytest.fixture
def desk(home: Path, furnished: Path, tmp_path: Path) -> Desk:
    """Nothing was brought yet."""
    shutil.copytree(furnished, home / ".casemate")
    return Desk(settings.load(), tmp_path)


@pytest.fixture
def stocked(home: Path, updated: Path, tmp_path: Path) -> Desk:
    """`first.json` was brought before."""
    shutil.copytree(updated, home / ".casemate")
    return Desk(settings.load(), tmp_path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    app = typer.Typer(add_completion=False)
    app.command("update")(updating.update)
    app.command("diff")(updating.diff)

    def go(*arguments: str) -> tuple[int, str]:
        code = typer.main.get_command(app).main(list(arguments), standalone_mode=False)
        return code, capsys.readouterr().out

    return go
