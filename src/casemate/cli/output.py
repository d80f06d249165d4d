"""How verbs print: the two common options, and JSON with its schema version."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from casemate.errors import UsageError
from casemate.report.visible import as_json

SCHEMA_VERSION = 1


class Form(StrEnum):
    """What most verbs can print."""

    TEXT = "text"
    JSON = "json"


TextOrJson = Annotated[Form, typer.Option("--format", help="Form of the output.")]
Json = Annotated[bool, typer.Option("--json", help="The same as --format json.")]


def is_json(form: Form, json_wanted: bool) -> bool:
    """Whether either option asks for JSON."""
    return json_wanted or form is Form.JSON


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON object on stdout, `schema_version` first."""
    typer.echo(as_json({"schema_version": SCHEMA_VERSION, **value}))


def emit(content: str, path: Path | None) -> None:
    """The content on stdout, or in a file that was asked for; an older file stays until the new one is whole.

    Raises:
        UsageError: the file cannot be written.
    """
    if path is None:
        typer.echo(content)
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        draft.write_text(content + "\n", encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        why = f"cannot write the output: {error.strerror}"
        raise UsageError(why, where=str(path), remedy="name a file in a folder that can be written") from error


def width() -> int:
    """Columns of the terminal; 100 where there is none, never more than 120."""
    return min(shutil.get_terminal_size((100, 24)).columns, 120)
