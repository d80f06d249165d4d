"""Small programs from text files: bodies of a page handler by weakness, and whole files by framework."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from casemate.agents.audit.facts.syntax import parse
from casemate.agents.audit.flow.statements import summarize
from casemate.agents.audit.rules import RULES
from casemate.agents.audit.scan import linked

_HERE = Path(__file__).parent
_HANDLER = """\
{imports}
from flask import Flask, request

app = Flask(__name__)

@app.post("/")
async def view():
    x = request.args["x"]
    body = request.get_json()
{lines}
    return {{"ok": True}}
"""


def bodies(folder: str) -> list[ParameterSet]:
    """A weakness and a program for each block of the files of a folder.

    A block is the body of a handler with a text `x` and a JSON `body` of the client's. Blocks are set apart by empty
    lines and named by a comment; their imports come first.
    """
    return [
        pytest.param(path.stem, _handler(code), id=f"{path.stem}-{name.removeprefix('# ')}")
        for path in sorted((_HERE / "bodies" / folder).glob("*.txt"))
        for name, _, code in (block.partition("\n") for block in path.read_text(encoding="utf-8").split("\n\n"))
    ]


def wholes(folder: str) -> list[ParameterSet]:
    """Whole programs, set apart by lines of three dashes and named by a comment."""
    return [
        pytest.param(code + "\n", id=f"{path.stem}-{name.removeprefix('# ')}")
        for path in sorted((_HERE / "sources" / folder).glob("*.txt"))
        for name, _, code in (
            program.strip().partition("\n") for program in path.read_text(encoding="utf-8").split("\n---\n")
        )
    ]


def weaknesses(code: str) -> set[str]:
    """The CWE ids that are found in a file of a project, whose callers are all known."""
    reached, _ = linked([summarize(parse(code, "app.py"))])
    return {RULES[real.hit.rule].cwe for real in reached}


def _handler(code: str) -> str:
    lines = code.splitlines()
    imports = [line for line in lines if line.startswith(("import ", "from "))]
    rest = [line for line in lines if line not in imports]
    return _HANDLER.format(imports="\n".join(imports), lines=textwrap.indent("\n".join(rest), "    "))
