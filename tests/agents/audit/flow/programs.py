"""Small programs that say for themselves what should be found: a line with `# bad` is flagged, every other is not.

In a program `Q` stands for a field of a web request and `run(` for a call that starts a shell. Several files of one
project are parted by lines `=== path`.
"""

from __future__ import annotations

import re

from casemate.agents.audit.facts.syntax import parse
from casemate.agents.audit.flow.statements import summarize
from casemate.agents.audit.scan import linked

_HEAD = "import os\nfrom flask import Flask, abort, request\napp = Flask(__name__)\n"
_TITLE = re.compile(r"^#### (.+)\n", re.MULTILINE)
_FILE = re.compile(r"^=== (\S+)\n", re.MULTILINE)


def programs(text: str) -> dict[str, str]:
    """Programs by title; a title stands on a line of its own, `#### title`."""
    parts = _TITLE.split(text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def difference(program: str) -> tuple[set[str], set[str]]:
    """Lines that should have been flagged and were not, and lines that were and should not have been."""
    parts = _FILE.split(program)
    files = dict(zip(parts[1::2], parts[2::2], strict=True)) or {"app.py": program}
    texts = {path: _HEAD + _written(text) for path, text in files.items()}
    wanted = {
        f"{path}:{number} {line.strip()}"
        for path, text in texts.items()
        for number, line in enumerate(text.splitlines(), 1)
        if line.endswith("# bad")
    }
    reached, cut = linked([summarize(parse(text, path)) for path, text in texts.items()])
    assert not cut
    found = set()
    for real in reached:
        place = real.hit.location
        found.add(f"{place.path}:{place.line} {texts[place.path].splitlines()[place.line - 1].strip()}")
    return wanted - found, found - wanted


def _written(text: str) -> str:
    return re.sub(r"\bQ\b", 'request.args["q"]', text).replace("run(", "os.system(")
