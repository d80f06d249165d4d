"""A project of forty files whose flows cross modules, and the edits that a day's work makes in one."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

_HELPER = '''"""Values on their way."""
import shlex
from .part{next} import passed as later


def passed(value):
    return later(value){cleaned}


def last(value):
    return {last}
'''
_END = "def passed(value):\n    return value\n"
_VIEW = """import os
import sqlite3

import flask
from flask import request

from app.part{number} import last, passed

app = flask.Flask(__name__)
KEY = "{secret}"


@app.route("/{number}")
def page():
    db = sqlite3.connect("x.db")
    db.execute("SELECT a FROM t WHERE b = '" + passed(request.args["q"]) + "'")
    os.system("ls " + last(request.args["p"]))
    return {{"rows": 1}}
"""
_PARTS = 20


def build(root: Path) -> None:
    """Twenty views, each handing request data to a chain of helpers."""
    for number in range(_PARTS):
        _write(root / "app" / f"part{number}.py", _helper(number, random.Random(number)))
        secret = f"{number:02d}qX7vK2mR9tB4wZ8pL"
        _write(root / "views" / f"view{number}.py", _VIEW.format(number=number, secret=secret))


def _helper(number: int, chance: random.Random) -> str:
    if number == _PARTS - 1:
        return _END + "\n\ndef last(value):\n    return value\n"
    last = chance.choice(["value", "shlex.quote(value)", "str(int(value))", "'fixed'"])
    cleaned = chance.choice(["", "", "", ".strip()"])
    return _HELPER.format(next=number + 1, last=last, cleaned=cleaned)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _any(root: Path, chance: random.Random) -> Path:
    return chance.choice(sorted(path for path in root.rglob("*.py")))


def _rewrite_a_helper(root: Path, chance: random.Random) -> None:
    number = chance.randrange(_PARTS - 1)
    _write(root / "app" / f"part{number}.py", _helper(number, chance))


def _add(root: Path, chance: random.Random) -> None:
    _write(root / "more" / f"new{chance.randrange(9)}.py", "import os\nos.system(input())\n")


def _remove(root: Path, chance: random.Random) -> None:
    _any(root, chance).unlink()


def _rename(root: Path, chance: random.Random) -> None:
    path = _any(root, chance)
    path.rename(path.with_name(f"moved{chance.randrange(99)}.py"))


def _swap(root: Path, chance: random.Random) -> None:
    one, other = _any(root, chance), _any(root, chance)
    first, second = one.read_text(), other.read_text()
    one.write_text(second)
    other.write_text(first)


def _move_lines(root: Path, chance: random.Random) -> None:
    path = _any(root, chance)
    path.write_text(f"# {chance.random()}\n\n{path.read_text()}")


def _break(root: Path, chance: random.Random) -> None:
    _any(root, chance).write_text("def broken(:\n")


def _touch(root: Path, chance: random.Random) -> None:
    _any(root, chance).touch()


def _ignore(root: Path, chance: random.Random) -> None:
    (root / ".gitignore").write_text(chance.choice(["more/\n", "views/view1*.py\n", "", "*.txt\n"]))


def _add_text(root: Path, chance: random.Random) -> None:
    (root / f"notes{chance.randrange(5)}.txt").write_text("nothing\n")


def _nothing(root: Path, chance: random.Random) -> None:
    del root, chance


EDITS: tuple[Callable[[Path, random.Random], None], ...] = (
    _rewrite_a_helper,
    _rewrite_a_helper,
    _add,
    _remove,
    _rename,
    _swap,
    _move_lines,
    _break,
    _touch,
    _ignore,
    _add_text,
    _nothing,
)
"""Each changes a project in its own way, by chance."""
