"""A notebook cell as Python: IPython's own lines become what they do, line by line, so that places stay right. Pure.

A shell line (`!cmd {name}`) is a command, with the values that it takes in; a line in front of Python (`%time x = f()`)
is taken off; what is no Python is left out. Grammar: IPython's documentation of its input transformations.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

SHELL = "_shell_of_notebook"
"""The name under which a command's module is known in a cell's Python."""
_PYTHON_CELLS = frozenset(
    {"time", "timeit", "capture", "prun", "memit", "mprun", "lprun", "debug", "python", "python3"}
)
"""Cell magics whose cell is Python of this notebook; of all others it is something else."""
_PYTHON_LINES = frozenset({"time", "timeit", "prun", "memit", "mprun", "lprun"})
_SHELL_LINES = frozenset({"sx", "system", "sc"})
_CELL_MAGIC = re.compile(r"\s*%%(\w+)[^\n]*")
_ASSIGNED = re.compile(r"(\s*)([\w.,\[\]'\" ]+?=\s*)(!{1,2}|%)(.*)")
_STARTED = re.compile(r"(\s*)()(!{1,2}|%)(.*)")
_HELP = re.compile(r"\s*(?:\?{1,2}\s*[\w.*]+|[\w.*]+(?:\[[^\]]*\])?\s*\?{1,2})\s*$")
_TAKEN_IN = re.compile(r"\{\{|\}\}|\{([^{}]+)\}|\$\$?(\w+)")


@dataclass(frozen=True, slots=True)
class Translated:
    """Python with as many lines as the cell; `language` is what else the cell holds, empty where it is Python."""

    text: str
    language: str = ""


def translated(cell: str) -> Translated:
    """A code cell as Python. It may still not parse; then it never was Python."""
    magic = _CELL_MAGIC.match(cell)
    if magic:
        if magic.group(1) not in _PYTHON_CELLS:
            return Translated("\n" * cell.count("\n"), magic.group(1))
        cell = cell[magic.end() :]
        cell = "\n" * magic.group().count("\n") + cell
    if _parses(cell):
        return Translated(cell)
    lines = cell.split("\n")
    python: list[str] = []
    while len(python) < len(lines):
        at = len(python)
        last = at
        if _line(lines[at]) is not None:
            while lines[last].endswith("\\") and last + 1 < len(lines):
                last += 1
        joined = " ".join(line.removesuffix("\\") for line in lines[at : last + 1])
        found = _line(joined)
        python.append(joined if found is None else found)
        python += [""] * (last - at)
    return Translated("\n".join(python))


def _line(line: str) -> str | None:
    """One line's Python; None where it is Python already."""
    if _HELP.match(line):
        return _indent(line) + "pass"
    found = _STARTED.match(line) or _ASSIGNED.match(line)
    if found is None:
        return None
    indent, target, mark, rest = found.groups()
    if mark != "%":
        return f"{indent}{target}{_command(rest)}"
    name, _, rest = rest.lstrip().partition(" ")
    if name in _SHELL_LINES:
        return f"{indent}{target}{_command(rest)}"
    if name in _PYTHON_LINES and not target and _parses(rest.strip()):
        taken_off = len(line.rstrip()) - len(rest.strip()) - len(indent)
        return f"{indent}{'0'.ljust(taken_off - 1)};{rest.strip()}"  # so that columns stay
    return f"{indent}{target}None" if target else f"{indent}pass"


def _command(line: str) -> str:
    """A call of the shell with a line: its own text, and the values that it takes in."""
    parts: list[str] = []
    end = 0
    for found in _TAKEN_IN.finditer(line):
        expression, name = found.groups()
        taken = expression or (name if not found.group().startswith("$$") else None)
        if taken and _parses(taken, mode="eval"):
            parts += [repr(line[end : found.start()]), f"str({taken})"]
            end = found.end()
    return f"{SHELL}.system({' + '.join([*parts, repr(line[end:])])})"


def _parses(text: str, mode: str = "exec") -> bool:
    try:
        ast.parse(text, mode=mode)
    except (SyntaxError, ValueError):
        return False
    return True


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
