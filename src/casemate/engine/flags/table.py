"""The recorded tables: one line for each flag and each span of versions in which it did not change.

The file holds names, kinds and values as released wheels have them, no text of the engine. `scripts/record_flags.py`
writes it; a version is added by naming its wheel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from typing import TypeVar, cast

from casemate.plan.recipe.flags import Arity, Flag, FlagTable, Form, History, Span, numbers

_FILE = "vllm.tsv"
_HEAD = ("name", "first", "last", "form", "arity", "aliases", "values", "default", "deprecated")
_INTRODUCTION = (
    "# Command-line flags of vLLM by version: names, kinds and values as facts of the released wheels.",
    "# Recorded by scripts/record_flags.py from the wheels' source as syntax; nothing of it was imported or run.",
    "# first, last: recorded versions, both included. form: what it takes (plan/recipe/flags.py). arity: ? + *.",
    "# values: separated by |, with … at the end where a plugin may bring more. module:, env: are programs, variables.",
)
_OPEN = "…"
_T = TypeVar("_T")


@cache
def recorded() -> History:
    """What ships with the package."""
    return parsed((resources.files(__package__) / _FILE).read_text(encoding="utf-8"))


def parsed(text: str) -> History:
    """A history from the text of its file.

    Raises:
        ValueError: a line has not as many cells as the head; the file is ours, so this is a fault of ours.
    """
    lines = [line for line in text.splitlines() if line]
    versions = next(tuple(line.split()[2:]) for line in lines if line.startswith("# versions:"))
    rows = [line.split("\t") for line in lines if not line.startswith("#")][1:]
    spans: list[Span] = []
    named: dict[str, list[tuple[str, str, str]]] = {"module": [], "env": []}
    for row in rows:
        name, first, last, *cells = row
        kind, colon, rest = name.partition(":")
        if colon:
            named[kind].append((rest, first, last))
        else:
            spans.append(Span(_flag(name, *cells), first, last))
    return History(versions, tuple(spans), tuple(named["module"]), tuple(named["env"]))


def written(tables: Iterable[FlagTable]) -> str:
    """The file's text for these versions, one line a flag and span, in an order that makes differences small."""
    ordered = sorted(tables, key=lambda table: numbers(table.version))
    versions = [table.version for table in ordered]
    rows = [
        *_rows(versions, [{flag.name: _cells(flag) for flag in table.flags} for table in ordered]),
        *_rows(versions, [{f"module:{name}": () for name in table.modules} for table in ordered]),
        *_rows(versions, [{f"env:{name}": () for name in table.variables} for table in ordered]),
    ]
    lines = [*_INTRODUCTION, f"# versions: {' '.join(versions)}", "\t".join(_HEAD)]
    return "\n".join([*lines, *("\t".join(row) for row in sorted(rows))]) + "\n"


def _rows(versions: list[str], held: list[dict[str, tuple[str, ...]]]) -> Iterator[tuple[str, ...]]:
    for name in sorted({name for one in held for name in one}):
        for first, last, cells in _runs([one.get(name) for one in held]):
            yield (name, versions[first], versions[last], *cells)


def _runs(states: list[_T | None]) -> Iterator[tuple[int, int, _T]]:
    """Stretches of equal states that are something: first and last position, state."""
    start = 0
    for at in range(1, len(states) + 1):
        if at == len(states) or states[at] != states[start]:
            if (state := states[start]) is not None:
                yield start, at - 1, state
            start = at


def _cells(flag: Flag) -> tuple[str, ...]:
    values = sorted(flag.values, key=_natural) + ([] if flag.closed or not flag.values else [_OPEN])
    default = "" if any(mark in flag.default for mark in "\t\n") else flag.default
    plain = (flag.form, flag.arity, " ".join(flag.aliases), "|".join(values), default)
    return (*plain, "deprecated" if flag.deprecated else "")


def _natural(value: str) -> tuple[int, str]:
    return (int(value), "") if value.isdigit() else (0, value)


def _flag(name: str, *cells: str) -> Flag:
    form, arity, aliases, values, default, deprecated = cells
    listed = tuple(values.split("|")) if values else ()
    return Flag(
        name=name,
        form=cast("Form", form),
        arity=cast("Arity", arity),
        aliases=tuple(aliases.split()),
        values=tuple(value for value in listed if value != _OPEN),
        closed=bool(listed) and listed[-1] != _OPEN,
        default=default,
        deprecated=bool(deprecated),
    )
