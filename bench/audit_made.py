"""A made project of any size: views, services and stores in packages.

Request data crosses two modules before it reaches a sink, and about half of the ways are made safe. Equal sizes give
equal projects.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

_STORE = '''"""Rows of {noun}s."""
import sqlite3
from dataclasses import dataclass

_CONNECTION = sqlite3.connect("{noun}.db")


@dataclass
class Row:
    number: int
    title: str
    price: float = 0.0

    def total(self, amount):
        return round(self.price * amount, 2)


'''
_STORE_PARTS = (
    '''def find_{noun}_{n}(title, limit=20):
    """Rows by title."""
    rows = []
    query = "SELECT number, title, price FROM {noun} WHERE title = '" + title + "'"
    for number, name, price in _CONNECTION.execute(query):
        rows.append(Row(number, name, price))
        if len(rows) >= limit:
            break
    return rows


''',
    '''def find_{noun}_{n}(title, limit=20):
    """Rows by title."""
    query = "SELECT number, title, price FROM {noun} WHERE title = ? LIMIT ?"
    found = _CONNECTION.execute(query, (title, limit)).fetchall()
    return [Row(*row) for row in found if row[0] is not None]


''',
    '''def find_{noun}_{n}(title, limit=20):
    """Rows by number."""
    number = int(title)
    if number < 0 or limit < 1:
        raise ValueError("out of range")
    return _CONNECTION.execute(f"SELECT title FROM {noun} WHERE number = {{number}}").fetchall()


''',
    '''class Cache{n}:
    """Keeps what was asked last."""

    def __init__(self, size={n}):
        self.size = size
        self.held = {{}}
        self.order = []

    def get(self, key, default=None):
        if key in self.held:
            self.order.remove(key)
            self.order.append(key)
        return self.held.get(key, default)

    def put(self, key, value):
        while len(self.order) >= self.size:
            self.held.pop(self.order.pop(0), None)
        self.held[key] = value
        self.order.append(key)


''',
    '''def summary_{n}(rows, *, by="title", skip=()):
    """Totals by a field."""
    totals = {{}}
    for row in rows:
        name = getattr(row, by, "")
        if not name or name in skip:
            continue
        try:
            totals[name] = totals.get(name, 0) + row.total({n})
        except (TypeError, ValueError) as error:
            totals.setdefault("failed", []).append(str(error))
    return sorted(totals.items(), key=lambda pair: (-len(str(pair[1])), pair[0]))


''',
)
_SERVICE = '''"""What is done with {noun}s."""
import logging
import os
import shlex

from {package}.store_{number} import find_{noun}_{n} as find

log = logging.getLogger(__name__)


'''
_SERVICE_PARTS = (
    '''def {noun}_{n}(asked, options):
    """Look up, with defaults."""
    settings = {{"limit": 10, "title": asked, "strict": False}}
    settings.update(limit=options.get("limit", {n}))
    if settings["strict"]:
        raise PermissionError("strict")
    return find(settings["title"], limit=settings["limit"])


''',
    '''def export_{n}(name, folder="/srv/out"):
    """Pack a folder."""
    target = os.path.join(folder, "out-{n}.tar")
    os.system(f"tar cf {{target}} {{name}}")
    log.info("packed %s", target)
    return target


''',
    '''def export_{n}(name, folder="/srv/out"):
    """Pack a folder."""
    target = os.path.join(folder, "out-{n}.tar")
    os.system(f"tar cf {{target}} {{shlex.quote(name)}}")
    return target


''',
    '''def schedule_{n}(items, retries={n}):
    """Order by weight, heavy ones first."""
    waiting = [item for item in items if item]
    done = []
    while waiting and retries:
        heaviest = max(waiting, key=lambda item: (len(str(item)), str(item)))
        waiting.remove(heaviest)
        if not str(heaviest).isalnum():
            retries -= 1
            continue
        done.append(heaviest)
    return {{"done": done, "left": waiting}}


''',
)
_VIEW = '''"""Pages of {noun}s."""
import flask
from flask import request

from {package} import service_{number} as service

app = flask.Flask(__name__)


'''
_VIEW_PARTS = (
    """@app.route("/{noun}/{n}")
def page_{n}():
    asked = request.args.get("q", "").strip()
    options = dict(request.args)
    rows = service.{noun}_{m}(asked, options)
    return {{"rows": [str(row) for row in rows], "page": {n}}}


""",
    """@app.route("/{noun}/{n}/export", methods=["POST"])
def export_page_{n}():
    names = [name for name in request.form.getlist("name") if name]
    made = []
    for name in names[:{n}]:
        made.append(service.export_{m}(name))
    return {{"made": made, "left": max(0, len(names) - {n})}}


""",
)
_NOUNS = ("order", "parcel", "ticket", "invoice", "sensor", "meter", "route", "tenant")
_BLOCKS = 16
"""Functions or classes of a module."""


def make(folder: Path, lines: int) -> int:
    """Write a project of about so many lines; how many it has."""
    chance, written, number = random.Random(11), 0, 0
    while written < lines:
        package, noun = f"part{number // 20}", _NOUNS[number % len(_NOUNS)]
        (folder / package).mkdir(parents=True, exist_ok=True)
        for room, head, parts in (
            ("store", _STORE, _STORE_PARTS),
            ("service", _SERVICE, _SERVICE_PARTS),
            ("view", _VIEW, _VIEW_PARTS),
        ):
            facts = {"noun": noun, "package": package, "number": number}
            text = head.format(**facts, n=chance.randrange(_BLOCKS)) + "".join(_blocks(parts, facts, chance=chance))
            (folder / package / f"{room}_{number}.py").write_text(text)
            written += text.count("\n")
        number += 1
    return written


def _blocks(parts: Sequence[str], facts: dict[str, object], *, chance: random.Random) -> Iterator[str]:
    for n in range(_BLOCKS):
        yield chance.choice(parts).format(**facts, n=n, m=chance.randrange(_BLOCKS))
