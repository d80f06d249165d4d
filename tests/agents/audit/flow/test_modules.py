"""Data across files: imports in all forms, globals of other modules, re-exports."""

from __future__ import annotations

import pytest

from agents.audit.flow.programs import difference, programs

PROGRAMS = programs(
    r"""
#### import in all forms
=== pkg/__init__.py
from .tools import go as launch
from . import deep
=== pkg/tools.py
def go(x): run(x)  # bad
def go2(x): run(x)  # bad
def go3(x): run(x)  # bad
def go4(x): run(x)  # bad
def go5(x): run(x)  # bad
def stay(x): run(x)
=== pkg/deep/__init__.py
from ..tools import go5
=== main.py
import pkg.tools
import pkg.tools as t
from pkg.tools import go2, stay as quiet
from pkg import launch, tools
import pkg
def h():
    launch(Q)
    go2(Q)
    t.go3(Q)
    pkg.tools.go4(Q)
    pkg.deep.go5(Q)
    quiet("ls")

#### star imports
=== a.py
def go(x): run(x)  # bad
def same(x): return x
CMD = "ls"
=== b.py
from a import *
def h():
    go(Q)
    run(same(Q))  # bad
    run(CMD)

#### star imports through a package
=== pkg/__init__.py
from .a import *
=== pkg/a.py
def go(x): run(x)  # bad
=== main.py
from pkg import go
def h(): go(Q)

#### wrappers across files
=== a.py
def go(x): run(x)  # bad
=== b.py
from a import go
def mid(x): go("ls " + x)
=== c.py
import b
def top(x): b.mid(x)
=== d.py
from c import top
def h(): top(Q)

#### a source in another file
=== source.py
from flask import request
def get(): return request.args["q"]
def fixed(): return "ls"
=== main.py
from source import get, fixed
def h():
    run(get())  # bad
    run(fixed())

#### a validator in another file
=== check.py
import re
def ok(x): return bool(re.fullmatch(r"\w+", x))
def must(x):
    if not ok(x):
        raise ValueError
def clean(x): return re.sub(r"\W", "", x)
=== main.py
from check import ok, must, clean
import check
def a():
    q = Q
    if not ok(q):
        return
    run(q)
def b():
    q = Q
    must(q)
    run(q)
def c():
    run(clean(Q))
    run(check.clean(Q))
def d(): run(Q)  # bad

#### fixed values in another file
=== conf.py
ALLOWED = {"a", "b"}
TABLE = {"a": "ls"}
DEBUG = False
CMD = "ls"
LEVEL = 3
=== main.py
import conf
from conf import ALLOWED, TABLE
def a():
    q = Q
    if q not in ALLOWED:
        return
    run(q)
def b():
    q = Q
    if q in conf.ALLOWED:
        run(q)
def c():
    run(TABLE[Q])
    run(conf.TABLE.get(Q, "ls"))
    run(conf.CMD)

#### globals of a module set in a function
=== state.py
current = None
fixed = "ls"
def put(x):
    global current
    current = x
=== main.py
import state
from state import put
def h():
    put(Q)
def i():
    run(state.current)  # bad
    run(state.fixed)

#### globals of another module set from outside
=== state.py
current = None
other = "ls"
=== main.py
import state
def h():
    state.current = Q
=== use.py
import state
from state import other
def i():
    run(state.current)  # bad
    run(other)

#### classes across files
=== base.py
class Base:
    def __init__(self, v): self.v = v
    def go(self): run(self.v)  # bad
class Quiet:
    def go(self, x): return x
=== child.py
from base import Base
class Child(Base):
    def more(self): self.go()
=== main.py
from child import Child
def h(): Child(Q).more()

#### an instance made in another file
=== db.py
class Db:
    def q(self, x): run(x)  # bad
db = Db()
=== main.py
from db import db
import db as database
def h():
    db.q(Q)

#### an application factory
=== ext.py
class Runner:
    def go(self, x): run(x)  # bad
runner = Runner()
def get_runner(): return runner
=== main.py
from ext import get_runner
def h(): get_runner().go(Q)

#### functions of the same name in two files
=== a.py
def go(x): run(x)  # bad
=== b.py
def go(x): run(x)
=== main.py
import a, b
def h():
    a.go(Q)
    b.go("ls")

#### imports inside functions and under conditions
=== a.py
def go(x): run(x)  # bad
=== main.py
def h():
    from a import go
    go(Q)
try:
    import a as tool
except ImportError:
    tool = None
def i(): tool.go(Q)

#### returned members across files
=== a.py
def load(x): return {"cmd": x, "dir": "/tmp"}
def pair(x): return x, "ls"
class Conf:
    def __init__(self, x):
        self.cmd = x
        self.dir = "/tmp"
def make(x): return Conf(x)
=== main.py
from a import load, pair, make, Conf
def h():
    c = load(Q)
    run(c["cmd"])  # bad
    run(c["dir"])
    a, b = pair(Q)
    run(a)  # bad
    run(b)
    m = make(Q)
    run(m.cmd)  # bad
    run(m.dir)
def use(c: Conf):
    run(c.cmd)  # bad
    run(c.dir)
def i(): use(make(Q))
"""
)


@pytest.mark.parametrize("title", PROGRAMS)
def test_exactly_the_marked_lines_are_flagged(title: str) -> None:
    missed, false_alarms = difference(PROGRAMS[title])
    assert (missed, false_alarms) == (set(), set())
