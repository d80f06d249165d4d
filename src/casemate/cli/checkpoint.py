"""`casemate checkpoint`: look into, check, rename and re-shard model folders by their headers; nothing of them runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import progress
from rich.console import Console

from casemate.checkpoint import inspecting, sheets, verifying
from casemate.checkpoint.assembling import assemble
from casemate.checkpoint.manifest import must_be_new, write_manifest
from casemate.checkpoint.remapping import Outcome, layout_of, remapped, stale_mentions
from casemate.checkpoint.rules import read_rules
from casemate.checkpoint.safetensors import read_folder
from casemate.checkpoint.sharding import parsed_size, sharded
from casemate.cli.output import Form, Json, TextOrJson, is_json, print_json, width
from casemate.errors import UsageError
from casemate.report import text
from casemate.report.document import Document

_FOUND, _INCOMPLETE, _REFUSED = 1, 2, 3

Folder = Annotated[Path, typer.Argument(help="A model folder with safetensors files.", show_default=False)]
Output = Annotated[Path | None, typer.Option(help="The new folder; it may not hold anything yet.", show_default=False)]

checkpoint = typer.Typer(
    help="Inspect, verify, rename or re-shard a model's files.",
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
)


@checkpoint.command()
def inspect(
    path: Annotated[Path, typer.Argument(help="A model folder, a safetensors or a GGUF file.", show_default=False)],
    *,
    form: TextOrJson = Form.TEXT,
    json: Json = False,
) -> int:
    """Say what a model folder or file holds, from its headers: types, parts, biggest tensors, licence, pickles.

    Exit code 1: there are only pickles, which are never opened. 2: some weight files are absent or damaged.
    """
    seen = inspecting.inspect(path)
    _told(sheets.inspection_sheet(seen), sheets.inspection_object(seen), as_json=is_json(form, json))
    if seen.unread:
        return _INCOMPLETE
    return _FOUND if seen.pickles and not seen.files and not seen.ggufs else 0


@checkpoint.command()
def verify(  # noqa: PLR0913 - each is an option of the command line
    folder: Folder,
    *,
    manifest: Annotated[Path | None, typer.Option(help="Check against this file, as sha256sum writes it.")] = None,
    write: Annotated[Path | None, typer.Option("--write-manifest", help="Write one, if nothing is wrong.")] = None,
    hashes: Annotated[bool, typer.Option(help="Hash every file; compare with what the hub's client noted.")] = False,
    form: TextOrJson = Form.TEXT,
    json: Json = False,
) -> int:
    """Check a model folder: shards and tensors against the index, sizes against the headers, hashes against a manifest.

    Exit code 0: clean. 1: something is wrong. 2: some files could not be read. 3: wrong usage.
    """
    if write:
        must_be_new(write)
    with _bar("hashing") as observe:
        seen = verifying.verify(folder, manifest=manifest, hashes=hashes or write is not None, observe=observe)
    written = ""
    if write and seen.is_clean:
        write_manifest(write, {digest.file: digest.sha256 for digest in seen.digests})
        written = str(write)
    sheet, plain = sheets.verification_sheet(seen, manifest=written), sheets.verification_object(seen, manifest=written)
    _told(sheet, plain, as_json=is_json(form, json))
    if seen.unread:
        return _INCOMPLETE
    return _FOUND if seen.found else 0


@checkpoint.command()
def remap(  # noqa: PLR0913 - each is an option of the command line
    folder: Folder,
    *,
    rules: Annotated[Path, typer.Option(help="A TOML file of [[rule]] tables, see above.", show_default=False)],
    output: Output = None,
    apply: Annotated[bool, typer.Option("--apply", help="Write the output; without this only tell.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Show every name, not the first of each kind.")] = False,
    form: TextOrJson = Form.TEXT,
    json: Json = False,
) -> int:
    r"""Rename and drop tensors by rules: tell what would change, and with --apply write it. Data is never converted.

    Each [[rule]] has `match`, a regular expression searched in the name, and either `replace` (groups as \1) or
    `drop = true`; each works on the names that the one before left. `max_bytes = "5GB"` at the top re-shards as well.
    What was interrupted goes on when the same command runs again. Files in which nothing changes stay byte-equal.

    Exit code 1: a rule matches no name, and nothing is written. 3: names collide, or a rule is wrong.
    """
    if apply and not output:
        raise UsageError("--apply needs --output", remedy="name the new folder")
    model = read_folder(folder)
    plan = remapped(model, read_rules(rules))
    outcome = Outcome(plan.difference)
    if apply or not plan.difference.collisions:
        layout, config = layout_of(model, plan), inspecting.config_of(folder)
        outcome = Outcome(plan.difference, layout.left_out, stale_mentions(config, plan))
        if apply and output and not plan.difference.idle:
            with _bar("writing") as observe:
                outcome = replace(outcome, written=assemble(layout, output, observe=observe))
    sheet, plain = sheets.remapping_sheet(outcome, everything=everything), sheets.remapping_object(outcome)
    _told(sheet, plain, as_json=is_json(form, json))
    if plan.difference.collisions:
        return _REFUSED
    return _FOUND if plan.difference.idle else 0


@checkpoint.command()
def shard(  # noqa: PLR0913 - each is an option of the command line
    folder: Folder,
    *,
    output: Annotated[Path, typer.Option(help="The new folder; it may not hold anything yet.", show_default=False)],
    size: Annotated[str, typer.Option("--max-bytes", help="Most bytes of a file, such as 5GB or 4GiB.")] = "5GB",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell which files there would be.")] = False,
    form: TextOrJson = Form.TEXT,
    json: Json = False,
) -> int:
    """Lay a model out in files of at most so many bytes, with an index; a large size merges all into one file.

    Tensors stay whole and byte-equal. Cutting them for tensor parallelism is the engine's task when it loads, and
    depends on the model; so there is no such option. What was interrupted goes on when the same command runs again.
    """
    layout = sharded(read_folder(folder), most_bytes=parsed_size(size))
    written = None
    if not dry_run:
        with _bar("writing") as observe:
            written = assemble(layout, output, observe=observe)
    _told(sheets.layout_sheet(layout, written), sheets.layout_object(layout, written), as_json=is_json(form, json))
    return 0


def _told(sheet: Document, plain: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(plain)
    else:
        typer.echo(text.render(sheet, width()), nl=False)


@contextmanager
def _bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr that appears with the first bytes, and only on a terminal."""
    console = Console(stderr=True)
    columns = (progress.TextColumn("{task.description}"), progress.BarColumn(bar_width=16), progress.DownloadColumn())
    bars = progress.Progress(*columns, progress.TimeRemainingColumn(), console=console, transient=True)
    tasks: list[progress.TaskID] = []

    def observe(done: int, total: int) -> None:
        if not console.is_terminal:
            return
        if not tasks:
            bars.start()
            tasks.append(bars.add_task(title, total=total))
        bars.update(tasks[0], completed=done)

    try:
        yield observe
    finally:
        if tasks:
            bars.stop()  # bars that never began would still print a line
