"""Data through objects: attributes, methods, inheritance, properties, data classes."""

from __future__ import annotations

import pytest

from agents.audit.flow.programs import difference, programs

PROGRAMS = programs(
    r"""
#### an attribute set in another method
import sqlite3
class Store:
    def __init__(self, p): self.cur = sqlite3.connect(p).cursor()
    def find(self, v): self.cur.execute(f"SELECT id FROM link WHERE url = '{v}'")  # bad
    def safe(self, v): self.cur.execute("SELECT id FROM link WHERE url = ?", (v,))
store = Store("x.db")
@app.route("/")
def h():
    store.find(request.args["v"])
    store.safe(request.args["v"])

#### attributes are kept apart
class Box:
    def __init__(self, a, b):
        self.a = a
        self.b = b
    def go(self): run(self.a)  # bad
    def stay(self): run(self.b)
def h():
    box = Box(Q, "ls")
    box.go()
    box.stay()
    run(box.a)  # bad
    run(box.b)

#### an attribute set from outside
class Box:
    cmd = "ls"
    def go(self): run(self.cmd)  # bad
class Other:
    cmd = "ls"
    def go(self): run(self.cmd)
def h():
    b = Box()
    b.cmd = Q
    b.go()
    Other().go()

#### an instance passed around
class Job:
    def __init__(self, cmd): self.cmd = cmd
def work(job): run(job.cmd)  # bad
def start(job): work(job)
def h(): start(Job(Q))

#### an instance passed around that is harmless
class Job:
    def __init__(self, cmd, note):
        self.cmd = cmd
        self.note = note
def work(job): run(job.cmd)
def h(): work(Job("ls", Q))

#### class attributes
class Conf:
    cmd = "ls"
    bad = None
def h():
    Conf.bad = Q
    run(Conf.bad)  # bad
    run(Conf.cmd)
def i():
    run(Conf.bad)  # bad

#### methods that return what is stored
class Box:
    def __init__(self, v): self._v = v
    def get(self): return self._v
    def fixed(self): return "ls"
def h():
    box = Box(Q)
    run(box.get())  # bad
    run(box.fixed())
    run(Box(Q).get())  # bad

#### setters
class Box:
    def __init__(self): self._v = ""
    def set(self, v): self._v = v
    def get(self): return self._v
def h():
    box = Box()
    box.set(Q)
    run(box.get())  # bad

#### chained setters
class Query:
    def __init__(self): self.parts = []
    def where(self, x):
        self.parts.append(x)
        return self
    def text(self): return " ".join(self.parts)
def h():
    run(Query().where("a").where(Q).text())  # bad

#### data classes
from dataclasses import dataclass, field
@dataclass
class Job:
    cmd: str
    note: str = ""
    tags: list = field(default_factory=list)
def h():
    j = Job(Q, "x")
    run(j.cmd)  # bad
    run(j.note)
    k = Job(cmd="ls", note=Q)
    k.tags.append("x")
    run(k.note)  # bad
    run(k.tags[0])

#### data class read in a method
from dataclasses import dataclass
@dataclass(frozen=True)
class Job:
    cmd: str
    note: str
    def go(self): run(self.cmd)  # bad
    def stay(self): run(self.note)
def h():
    j = Job(Q, "x")
    j.go()
    j.stay()

#### named tuples
from typing import NamedTuple
from collections import namedtuple
class Job(NamedTuple):
    cmd: str
    note: str
Pair = namedtuple("Pair", "cmd note")
Trio = namedtuple("Trio", ["cmd", "note", "x"])
def h():
    j = Job(Q, "x")
    run(j.cmd)  # bad
    run(j.note)
    p = Pair("ls", Q)
    run(p.cmd)
    run(p.note)  # bad
    t = Trio(Q, "x", "y")
    run(t.cmd)  # bad
    run(t.x)

#### simple namespaces
from types import SimpleNamespace
import argparse
def h():
    n = SimpleNamespace(cmd=Q, note="x")
    run(n.cmd)  # bad
    run(n.note)
    m = argparse.Namespace()
    m.a = Q
    m.b = "ls"
    run(m.a)  # bad
    run(m.b)

#### an attribute that is overwritten
class Box: pass
def h():
    b = Box()
    b.cmd = Q
    b.cmd = "ls"
    run(b.cmd)

#### an attribute of an instance in a global
class State:
    last = None
STATE = State()
def put(): STATE.last = Q
def get(): run(STATE.last)  # bad

#### setattr and getattr
class Box: pass
def h():
    b = Box()
    setattr(b, "cmd", Q)
    setattr(b, "other", "ls")
    run(getattr(b, "cmd"))  # bad
    run(getattr(b, "other"))
    run(getattr(b, "none", Q))  # bad

#### a method kept in a variable
class Tool:
    def go(self, x): run(x)  # bad
def h():
    f = Tool().go
    f(Q)
"""
)


@pytest.mark.parametrize("title", PROGRAMS)
def test_exactly_the_marked_lines_are_flagged(title: str) -> None:
    missed, false_alarms = difference(PROGRAMS[title])
    assert (missed, false_alarms) == (set(), set())
