"""Options of `audit` that say which files are looked at, and which findings are shown."""

from __future__ import annotations

from typing import Annotated

import typer

Diff = Annotated[
    str, typer.Option("--diff", metavar="REV", help="Only findings on lines changed since this git revision.")
]
Archives = Annotated[bool, typer.Option("--archives", help="Open archives that lie in the folder.")]
NoIgnore = Annotated[bool, typer.Option("--no-ignore", help="Audit what .gitignore leaves out, too.")]
