"""Tests of what a text is made of: kinds of characters, patterns, numbers."""

from __future__ import annotations

import pytest

from agents.audit.flow.programs import difference, programs

PROGRAMS = programs(
    r"""
#### kinds of text
def a():
    q = Q
    if q.isdigit():
        run(q)
    else:
        run(q)  # bad
def b():
    q = Q
    if not q.isalnum():
        abort(400)
    run(q)
def c():
    q = Q
    if not q.isidentifier():
        raise ValueError
    run(q)
def d():
    q = Q
    if q.isprintable():
        run(q)  # bad
def e():
    q = Q
    if not all(c.isalnum() for c in q):
        return
    run(q)
def f():
    q = Q
    if all(c in "abcdef0123456789" for c in q):
        run(q)
    if any(c in ";&|" for c in q):
        run(q)  # bad
def g():
    q = Q
    if not set(q) <= set("abc"):
        return
    run(q)
import string
def i():
    q = Q
    if set(q) <= set(string.ascii_letters):
        run(q)
    if not set(q).issubset("abc"):
        run(q)  # bad
def j():
    q = Q
    if not q.replace("-", "").isalnum():
        return
    run(q)

#### numbers
from uuid import UUID
from enum import Enum
class Mode(Enum):
    A = "a"
def a():
    q = Q
    try:
        int(q)
    except ValueError:
        return
    run(q)
def b():
    q = Q
    try:
        int(q)
    except ValueError:
        pass
    run(q)  # bad
def c():
    q = Q
    try:
        UUID(q)
    except ValueError:
        abort(400)
    run(q)
def d():
    q = Q
    try:
        Mode(q)
    except ValueError:
        abort(400)
    run(q)
def e():
    q = Q
    if not isinstance(q, int):
        return
    run(f"kill {q}")
def f():
    q = Q
    if isinstance(q, str):
        run(q)  # bad
def g():
    n = max(1, min(int(Q), 100))
    run(f"ping -c {n}")

#### regular expressions
import re
from re import fullmatch
SAFE = re.compile(r"[a-z]+")
def a():
    q = Q
    if re.fullmatch(r"[a-z]+", q):
        run(q)
def b():
    q = Q
    if not re.match(r"^[a-z]+$", q):
        return
    run(q)
def c():
    q = Q
    if re.match(r"[a-z]+", q):
        run(q)  # bad
def d():
    q = Q
    if not SAFE.fullmatch(q):
        abort(400)
    run(q)
def e():
    q = Q
    if SAFE.match(q):
        run(q)  # bad
def f():
    q = Q
    if re.fullmatch(r".+", q):
        run(q)  # bad
def g():
    q = Q
    m = re.fullmatch(r"([a-z]+)", q)
    if m is None:
        return
    run(q)
    run(m.group(1))
    run(m[1])
def h():
    q = Q
    if (m := re.fullmatch(r"[a-z]+", q)) is not None:
        run(q)
        run(m.group())
def i():
    q = Q
    if re.search(r"[;&|]", q):
        return
    run("ls $" + q)  # bad
def j():
    q = Q
    if fullmatch(r"\w+", q) is None:
        raise ValueError
    run(q)
def k():
    q = Q
    if re.search(r"[^a-z0-9]", q):
        return
    run(q)
def l():
    q = re.compile(r"[a-z]+").fullmatch(Q)
    if q:
        run(q.group(0))
def m():
    m = re.match(r"(.*)", Q)
    run(m.group(1))  # bad
def n():
    run(re.findall(r"[a-z]+", Q)[0])
    run(re.findall(r"\S+", Q)[0])  # bad
"""
)


@pytest.mark.parametrize("title", PROGRAMS)
def test_exactly_the_marked_lines_are_flagged(title: str) -> None:
    missed, false_alarms = difference(PROGRAMS[title])
    assert (missed, false_alarms) == (set(), set())
