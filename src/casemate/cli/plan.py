"""`casemate plan`: how to run a model on these cards, why so, and the files that do it; or why it cannot."""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from casemate import settings
from casemate.checkpoint.facts import Checkpoint, Gguf
from casemate.cli import corrections, planning, writing
from casemate.cli.output import Form, Json, TextOrJson, is_json, print_json, width
from casemate.doctor.machine import Machine
from casemate.errors import UsageError
from casemate.plan import cpu, planner, sheet, telling
from casemate.plan import environment as around
from casemate.plan.argv import DEFAULT_PORT, Serving, argv
from casemate.plan.calibration import pace_of
from casemate.plan.decision import GIB, CardsPlan, Intent, Purpose, Refusal
from casemate.plan.dialect import dialect
from casemate.plan.predicting import predicted
from casemate.plan.rates import rates
from casemate.plan.units.deployment import Deployment, File
from casemate.plan.units.files import Emit, files
from casemate.report import text
from casemate.report.document import Document
from casemate.report.visible import visible

_REFUSED = 1
_MOST_CONTEXT, _MOST_REQUESTS, _MOST_NODES, _MOST_GIB = 1 << 30, 1 << 16, 64, 1 << 20
_CPU_CONTEXT = 4096


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was asked for beside machine and model."""

    model: str
    intent: Intent
    engine_version: str
    emit: Emit | None
    output: Path | None
    as_json: bool


@dataclass(frozen=True, slots=True)
class _Planned:
    """A plan for cards with all that is printed of it."""

    plan: CardsPlan
    start: telling.Start
    deployment: Deployment


def plan(  # noqa: PLR0913 - each is an option of the command line
    model: Annotated[
        str, typer.Argument(help="A folder, a config.json, a .gguf file, or a hub id in the local cache.")
    ],
    *,
    machine: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Plan for what `doctor --json` printed elsewhere.")
    ] = None,
    gpus: Annotated[str, typer.Option(metavar="CARDS", help="Plan for named cards, such as 2xH20-96GB.")] = "",
    context: Annotated[
        int, typer.Option(min=0, max=_MOST_CONTEXT, help="Tokens of one request; 0 takes the longest that fits.")
    ] = 0,
    concurrency: Annotated[int, typer.Option(min=1, max=_MOST_REQUESTS, help="Requests at once.")] = 2,
    purpose: Annotated[Purpose, typer.Option(help="What it is for.")] = Purpose.CHAT,
    nodes: Annotated[int, typer.Option(min=1, max=_MOST_NODES, help="Hosts alike, joined by Ray.")] = 1,
    memory_cap: Annotated[
        float | None, typer.Option(metavar="GIB", help="Plan as if each card had no more memory.")
    ] = None,
    engine_version: Annotated[str, typer.Option(metavar="VERSION", help="Plan for this vLLM.")] = "",
    emit: Annotated[Emit | None, typer.Option(help="Print what runs the plan instead of the plan.")] = None,
    output: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write that into a folder.")] = None,
    form: TextOrJson = Form.TEXT,
    json: Json = False,
) -> int:
    """Plan how to run a model on these cards, or say why it cannot."""
    if output is not None and emit is None:
        raise UsageError("--output needs --emit: what to write", remedy="give --emit all")
    intent = Intent(context, concurrency, purpose=purpose, memory_cap_bytes=_cap(memory_cap), nodes=nodes)
    asked = _Asked(model, intent, engine_version, emit, output, is_json(form, json))
    host, notes = planning.machine_of(machine, gpus, model=model)
    found = planning.model_of(model)
    _say(notes)
    if not isinstance(found, Gguf):
        return _for_cards(host, found, asked=asked)
    if gpus or emit:
        raise UsageError("a GGUF file runs on the CPU, by `casemate up` itself", remedy="leave out --gpus and --emit")
    return _for_cpu(host, found, asked=asked)


def _for_cards(host: Machine, checkpoint: Checkpoint, *, asked: _Asked) -> int:
    release = planning.release_of(asked.engine_version, host)
    corrected = corrections.of_plan(settings.load().root, host, checkpoint=checkpoint, version=release.version)
    _say((release.note, *corrected.notes))
    decided = planner.plan(
        host, checkpoint, intent=asked.intent, engine_version=release.version, correction=corrected.correction
    )
    if isinstance(decided, Refusal):
        return _refuse(decided, as_json=asked.as_json)
    known = rates(host, decided.cards, known=planning.chips(), nodes=decided.nodes)
    told = predicted(decided, checkpoint, known=known, intent=asked.intent, pace=pace_of(corrected.correction))
    planned = _planned(told, checkpoint, host=host, release=release, model=asked.model)
    made = _made(planned.deployment, asked.emit, output=asked.output)
    if asked.as_json:
        value = telling.of_cards(planned.plan, planned.start)
        print_json(value | {"files": {file.name: file.text for file in made}} if asked.emit else value)
    elif asked.emit is None:
        card_bytes = around.smallest_bytes(decided, host, correction=corrected.correction)
        typer.echo(_rendered(sheet.of_cards(planned.plan, planned.start, card_gib=card_bytes / GIB)), nl=False)
    else:
        _say(tuple(f"the linter: {problem}" for problem in planned.start.problems))
        if asked.output is None:
            typer.echo(_joined(made), nl=False)
    return 0


def _for_cpu(host: Machine, model: Gguf, *, asked: _Asked) -> int:
    context = asked.intent.context or min(_CPU_CONTEXT, model.context_length)
    decided = cpu.plan(host, model, intent=replace(asked.intent, context=context))
    if isinstance(decided, Refusal):
        return _refuse(decided, as_json=asked.as_json)
    _print(telling.of_cpu(decided), sheet.of_cpu(decided), as_json=asked.as_json)
    return 0


def _refuse(refusal: Refusal, *, as_json: bool) -> int:
    _print(telling.of_refusal(refusal), sheet.of_refusal(refusal), as_json=as_json)
    return _REFUSED


def _planned(
    decided: CardsPlan, checkpoint: Checkpoint, *, host: Machine, release: planning.Release, model: str
) -> _Planned:
    name = _served_name(model, checkpoint)
    here = _folder(checkpoint)
    serving = Serving(
        table=release.table,
        dialect=dialect(checkpoint, release.table),
        folder=here or f"/models/{name}",
        port=DEFAULT_PORT,
        served_name=name,
        peer_writes_lost=around.peer_writes_lost(decided, host),
        dtype=around.dtype(decided, checkpoint, machine=host),
    )
    words, variables = argv(decided, serving), around.environment(decided, serving, machine=host)
    pairs = tuple((variable.name, variable.value) for variable in variables)
    problems = planning.remarks(words, pairs, ground=planning.ground_of(release, checkpoint, machine=host))
    absent = () if here else (f"the weights are not here: put the model's folder in place of {serving.folder}",)
    extra = (*serving.dialect.notes, *around.cautions(decided, serving, machine=host), *absent)
    used = around.used_cards(decided, host)
    deployment = Deployment(
        words=words,
        variables=variables,
        engine_version=release.version,
        folder=serving.folder,
        port=serving.port,
        served_name=name,
        card_ids=tuple(card.uuid or str(card.index) for card in used) if around.is_subset(decided, host) else (),
        cards=len(decided.cards),
        nodes=decided.nodes,
        switched=host.surroundings.nvswitch is True,
    )
    start = telling.Start(words, pairs, release.table.version, problems)
    return _Planned(replace(decided, notes=(*decided.notes, *extra)), start, deployment)


def _made(deployment: Deployment, emit: Emit | None, *, output: Path | None) -> tuple[File, ...]:
    """The files that were asked for, written where a folder was named, then with a fresh key in the secret ones."""
    if emit is None:
        return ()
    made = files(deployment, emit)
    if output is not None:
        keyed = files(replace(deployment, key=secrets.token_hex(32)), emit)
        for path in writing.write(output, keyed):
            typer.echo(visible(f"casemate: wrote {path}"), err=True)
    return made


def _print(value: dict[str, Any], document: Document, *, as_json: bool) -> None:
    if as_json:
        print_json(value)
    else:
        typer.echo(_rendered(document), nl=False)


def _rendered(document: Document) -> str:
    return text.render(document, width())


def _joined(made: tuple[File, ...]) -> str:
    """One file as it is; several behind one another, each under its name."""
    if len(made) == 1:
        return made[0].text
    return "\n".join(f"# file: {file.name}\n{file.text}" for file in made)


def _say(notes: tuple[str, ...]) -> None:
    for note in filter(None, notes):
        typer.echo(visible(f"casemate: {note}"), err=True)


def _cap(gib: float | None) -> int | None:
    if gib is None:
        return None
    if not math.isfinite(gib) or not 0 < gib <= _MOST_GIB:
        raise UsageError(f"a memory cap of {gib:g} GiB means nothing", remedy="give GiB of one card, such as 80")
    return int(gib * GIB)


def _folder(checkpoint: Checkpoint) -> str:
    """Where the model's files lie; empty if only its config is here."""
    path = Path(checkpoint.path).absolute()
    folder = path if path.is_dir() else path.parent
    return str(folder) if checkpoint.weights_from == "headers" else ""


def _served_name(model: str, checkpoint: Checkpoint) -> str:
    """What requests call it: the folder's or the repository's name, in characters that a name may have."""
    found = "-".join(_pieces(Path(model).name if model.endswith(".json") else model.rstrip("/"), checkpoint))
    return found[:64].rstrip("-") or "model"


def _pieces(typed: str, checkpoint: Checkpoint) -> Iterator[str]:
    stem = re.sub(r"[-_.]?config\.json$|\.json$", "", typed.rpartition("/")[2])
    found = re.findall(r"[A-Za-z0-9._]+", stem) or re.findall(r"[A-Za-z0-9._]+", checkpoint.name)
    yield from (piece for piece in (part.strip("._") for part in found) if piece)
